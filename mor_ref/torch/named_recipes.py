"""The named recipes."""

from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.recipes import (
    Delayed,
    Mor,
    Mx,
    Nvfp4,
    Scaled,
    TensorRecipe,
    Unquantized,
)
from mor_ref.torch.recipe import Operand, Recipe


def _alike(name: str, tensor_recipe: TensorRecipe, *, each: bool = False) -> Recipe:
    """Return a recipe that treats all operands alike: once, or in each direction."""
    operand = Operand(tensor_recipe, tensor_recipe if each else None)
    return Recipe(name, operand, operand, operand)


def _of_tensor(block: Cut) -> Mor:
    return Mor("tensor", block)


def _hybrid(name: str, forward: TensorRecipe, backward: TensorRecipe) -> Recipe:
    """Return a recipe that treats the forward operands in one way, and gradients in another."""
    return Recipe(name, Operand(forward), Operand(forward), Operand(backward))


def _fp8(**arguments: object) -> Recipe:
    forward, backward = (Delayed(fmt, **arguments) for fmt in ("e4m3", "e5m2"))  # type: ignore[arg-type]
    return _hybrid("", forward, backward)


_BY_ROW = Nvfp4()
_WEIGHT = Operand(Nvfp4(tile=(16, 16)))  # a tensor and its transpose have the same codes
_TURNED = Nvfp4(hadamard=16)

# TRN-003. The directions of mor_channel are decided apart, which the paper leaves open.
recipes: Catalogue[Recipe] = Catalogue(
    "recipe",
    Recipe,
    (
        _alike("bf16", Unquantized()),
        _alike("mor_tensor", _of_tensor("tensor")),
        _alike("mor_channel", _of_tensor("row"), each=True),
        _alike("mor_block", _of_tensor((128, 128))),
        _alike("mor_two_way", Mor("two_way")),
        _alike("mor_three_way", Mor("three_way")),
        _hybrid("fp8_current", Scaled("e4m3"), Scaled("e5m2")),
        _fp8().named("fp8_delayed"),
        _fp8(history=16, scaling="e8m0").named("fp8_lm"),
        _alike("mxfp8", Mx("e4m3", "rceil"), each=True),
        Recipe("nvfp4", Operand(_BY_ROW, _BY_ROW), _WEIGHT, Operand(_BY_ROW, _BY_ROW)),
        Recipe(
            "nvfp4_random",
            Operand(_BY_ROW, _TURNED),
            _WEIGHT,
            Operand(Nvfp4(rounding="sr"), Nvfp4(rounding="sr", hadamard=16)),
        ),
    ),
)


def as_recipe(recipe: str | Recipe) -> Recipe:
    """Return the recipe itself, or the one of that name."""
    return recipe if isinstance(recipe, Recipe) else recipes[recipe]
