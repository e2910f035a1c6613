"""The catalogue of recipes, which a user adds to."""

from collections.abc import Iterator

from mor_ref.definitions.catalogue import Catalogue
from mor_ref.recipes.block_formats import Blocks
from mor_ref.recipes.floats import Delayed, Mor, Mx, Nvfp4, Scaled, Unquantized
from mor_ref.recipes.row import Row
from mor_ref.recipes.tensor_recipe import TensorRecipe
from mor_ref.schemes import in_schemes


def _recipes() -> Iterator[TensorRecipe]:
    yield from (Unquantized(), Mor(), Scaled(), Delayed(), Mx(), Nvfp4())
    yield from (module.RECIPE for module in in_schemes("recipe"))
    yield from (Row(), Blocks())


TENSOR_RECIPES: Catalogue[TensorRecipe] = Catalogue("recipe", TensorRecipe, _recipes())
