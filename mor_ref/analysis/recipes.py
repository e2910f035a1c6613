"""Recipes for the tensors of a user, by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mor_ref.analysis.analyze_tensor import Settings
from mor_ref.api.border import public
from mor_ref.argument_checks import known_name
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.roles import KINDS, Kind
from mor_ref.former_names import FormerAttribute, with_former_field
from mor_ref.policies import Policy, Thresholds
from mor_ref.recipes import (
    RecipeLike,
    Situation,
    TensorRecipe,
    as_tensor_recipe,
    short_text,
    words_or_table,
)
from mor_ref.schemes import in_schemes

# Without a recipe: of each width that hardware has, the usual ones.
USUAL = (
    "e4m3:fp32:tensor",
    "e4m3:gam:128x128",
    "mxfp8:rceil",
    "mxfp6_e2m3",
    "mxfp4",
    "nvfp4",
    "mor:tensor",
    "mor:three_way",
)

# The usual ones of every representation.
OF_ALL_REPRESENTATIONS = (
    *(text for module in in_schemes("representation") for text in module.USUAL),
    "mxfp8:rceil",
    "mor:tensor",
    "mor:three_way",
    "mor:nvfp4",
    "e4m3:fp32:tensor",
    "e4m3:e8m0:tensor",
    "e5m2:fp32:tensor",
    "mxint8",
    "mxfp6_e2m3",
    "nvfp4",
    "nvfp4:te_4over6_mse",
    "mxfp4",
)


@with_former_field("treatment", "tensor_recipe")
@dataclass(frozen=True)
class NamedRecipe:
    """A recipe, and its name in tables."""

    name: str
    tensor_recipe: TensorRecipe

    treatment = FormerAttribute("tensor_recipe")


def recipes_from(given: Iterable[RecipeLike]) -> tuple[NamedRecipe, ...]:
    """Return recipes with their names; refuse one that needs the steps of a training.

    >>> [recipe.name for recipe in recipes_from(["nvfp4", '{"representation": "mx"}'])]
    ['nvfp4', 'mxfp8_e4m3:floor:32']
    """
    if isinstance(given, str | Mapping | BlockFormat | Policy | TensorRecipe):
        raise TypeError(f"recipes is {given!r}; give a list of recipes, such as ['mxfp8:rceil']")
    found: dict[str, NamedRecipe] = {}
    for one in given:
        tensor_recipe = as_tensor_recipe(one)
        is_short = isinstance(one, str) and words_or_table(one) == one
        name = str(one) if is_short else tensor_recipe.title or short_text(tensor_recipe)
        if tensor_recipe.needs_steps:
            raise ValueError(
                f"recipe is {name}, which needs the steps of a training; give a recipe that rounds "
                "to nearest, with scales of the tensor itself"
            )
        if name in found:
            raise ValueError(f"recipe {name} is given twice; give it once")
        same = next(
            (other.name for other in found.values() if other.tensor_recipe == tensor_recipe), None
        )
        if same is not None:
            raise ValueError(f"recipe {name} is the same as {same}; give one of them")
        found[name] = NamedRecipe(name, tensor_recipe)
    return tuple(found.values())


@public
def settings_under(
    given: RecipeLike,
    *,
    threshold: Thresholds | None = None,
    threads: int | None = None,
    kind: Kind = "weight",
) -> Settings:
    """Return the settings of an analysis with a recipe.

    >>> settings_under("mor:three_way:64x64").policy.names
    ('e4m3', 'e5m2', 'bf16')
    """
    (recipe,) = recipes_from([given])
    tensor_recipe = recipe.tensor_recipe
    policy = tensor_recipe.policy_in(Situation())
    if policy is None:
        raise ValueError(f"recipe is {recipe.name}, which decides nothing; give one with a format")
    if threshold is not None:
        policy = policy.with_threshold(threshold)
    partition((1, 1), tensor_recipe.cut)  # refuses sides of 0
    known_name("kind", kind, KINDS)
    return Settings(policy, tensor_recipe.cut, tensor_recipe.scales, threads, kind)
