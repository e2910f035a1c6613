"""The recipes of training by name, and those of a text: one meaning for both."""

import warnings

from mor_ref.argument_checks import UnknownNameError, known_name
from mor_ref.definitions.before_blocks import Hadamard
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.recipes.floats import Delayed, Mor, Nvfp4, Scaled, Unquantized
from mor_ref.recipes.recipe_text import (
    RecipeLike,
    as_tensor_recipe,
    is_recipe,
    is_table_in_text,
    names_file,
    short_text,
    words_or_table,
)
from mor_ref.recipes.tensor_recipe import TensorRecipe
from mor_ref.recipes.training import Axis, Operand, OperandName, Recipe

_SUCH_AS = "or give a text of a recipe, such as mxfp8:rceil"

# Texts that were names of other recipes here in earlier versions, until 0.4: those that they were.
_FORMER_MEANINGS = {"mxfp8": "mxfp8:rceil", "nvfp4": "nvfp4_2d"}


class TrainingRecipes(Catalogue[Recipe]):
    """The named recipes of training; another text is a recipe that each operand has.

    >>> recipes["mxfp8:rceil"].weight.column.text
    '{ representation = "mx", fmt = "e4m3", scale_rule = "rceil", block = 32 }'
    """

    def __getitem__(self, name: str) -> Recipe:
        return self._rows[name] if name in self else _of_each_operand(_read(name, 2), name)

    def __setitem__(self, name: str, row: Recipe) -> None:
        if isinstance(name, str) and name not in self and _is_text(name):
            raise ValueError(
                f"recipe {name!r} has the name of a recipe of one tensor; give a row of another "
                "name"
            )
        super().__setitem__(name, row)


def _is_text(name: str) -> bool:
    try:
        as_tensor_recipe(name)
    except ValueError:
        return False
    return True


def _read(given: RecipeLike, level: int) -> TensorRecipe:
    """Return a recipe of one tensor; `level` is how many calls away it was given."""
    if isinstance(given, str) and given in _FORMER_MEANINGS:
        warnings.warn(
            f"recipe {given!r} means {short_text(as_tensor_recipe(given))} here, too; earlier, it "
            f"was {_FORMER_MEANINGS[given]}, as you may want; give one of these two. This warning "
            "goes in version 0.4",
            FutureWarning,
            stacklevel=level + 1,
        )
    try:
        return as_tensor_recipe(given)
    except ValueError as error:
        if not isinstance(given, str):
            raise
        words = () if is_table_in_text(given) else given.split(":")[1:]
        for word in words:
            if is_recipe(given) and (word == "columns" or "=" in word):
                raise UnknownNameError(
                    f"recipe is {given!r}, where {word!r} is of one tensor; omit it, as training "
                    "quantizes many tensors, in both directions"
                ) from None
        if given.endswith(".toml") and names_file(given):
            raise UnknownNameError(
                f"recipe is {given!r}, the name of a file; give its text, as "
                f"pathlib.Path({given!r}).read_text()"
            ) from None
        if is_recipe(given) or ":" in given or given.endswith((".toml", ".json")):
            raise UnknownNameError(str(error)) from None
        try:
            known_name("recipe", given, recipes)
        except UnknownNameError as unknown:
            raise UnknownNameError(f"{unknown}, {_SUCH_AS}") from None
        raise


def _of_each_operand(tensor_recipe: TensorRecipe, given: RecipeLike) -> Recipe:
    """Return the recipe of training that quantizes each operand alike, in each direction."""
    is_short = isinstance(given, str) and words_or_table(given) == given
    name = str(given) if is_short else tensor_recipe.title or short_text(tensor_recipe)
    return _alike(name, tensor_recipe, each=True)


def training_recipe(given: Recipe | RecipeLike) -> Recipe:
    """Return the recipe of training that is given: by itself, by a name, or by a text."""
    if isinstance(given, Recipe):
        return given
    if isinstance(given, str) and given in recipes:
        return recipes[given]
    return _of_each_operand(_read(given, 3), given)


def recipe_of_operand(given: Recipe | RecipeLike, operand: OperandName, axis: Axis) -> TensorRecipe:
    """Return the recipe of an operand in a direction; that of a text is the same in all."""
    if isinstance(given, str) and given in recipes:
        given = recipes[given]
    return given.of(operand, axis) if isinstance(given, Recipe) else _read(given, 5)


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
_TE_SIGNS = Hadamard(16, signs=0xD7E8, stored="bf16")


def _nvfp4_turned(hadamard: int | Hadamard) -> Recipe:
    """Return the recipe whose weight gradient is transformed, with gradients at random."""
    return Recipe(
        "",
        Operand(_BY_ROW, Nvfp4(hadamard=hadamard)),
        _WEIGHT,
        Operand(Nvfp4(rounding="sr"), Nvfp4(rounding="sr", hadamard=hadamard)),
    )


# TRN-003. The directions of mor_channel are decided apart, which the paper leaves open.
recipes = TrainingRecipes(
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
        Recipe("nvfp4_2d", Operand(_BY_ROW, _BY_ROW), _WEIGHT, Operand(_BY_ROW, _BY_ROW)),
        _nvfp4_turned(16).named("nvfp4_random"),
        _nvfp4_turned(_TE_SIGNS).named("nvfp4_te"),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
)
