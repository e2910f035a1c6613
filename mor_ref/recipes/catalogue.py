"""The catalogue of recipes, which a user adds to."""

from mor_ref.definitions.catalogue import Catalogue
from mor_ref.recipes.floats import Delayed, Mor, Mx, Nvfp4, Scaled, Unquantized
from mor_ref.recipes.other_representations import Integers, Levels, Mixture, Row, Shared
from mor_ref.recipes.tensor_recipe import TensorRecipe

TENSOR_RECIPES: Catalogue[TensorRecipe] = Catalogue(
    "recipe",
    TensorRecipe,
    (
        Unquantized(),
        Mor(),
        Scaled(),
        Delayed(),
        Mx(),
        Nvfp4(),
        Shared(),
        Levels(),
        Integers(),
        Mixture(),
        Row(),
    ),
)
