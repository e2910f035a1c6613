"""Recipes of training as frozen values, in text and back."""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from mor_ref.argument_checks import known_name, lacking
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.roles import Kind, Role
from mor_ref.former_names import FormerAttribute
from mor_ref.policies import Policy
from mor_ref.recipes.block_formats import Blocks
from mor_ref.recipes.floats import Mor
from mor_ref.recipes.recipe_tables import GIVE, table_of, tensor_recipe_from
from mor_ref.recipes.row import Row
from mor_ref.recipes.tensor_recipe import TensorRecipe
from mor_ref.representations import (
    MEMBERS,
    REPRESENTATIONS,
    FunctionRepresentation,
    Representation,
    as_representation,
    is_function,
)

OperandName = Literal["input", "weight", "grad_output"]
OPERANDS: tuple[OperandName, ...] = ("input", "weight", "grad_output")
Axis = Literal["row", "column"]
AXES: tuple[Axis, ...] = ("row", "column")
MATMULS = ("torch",)
KIND_OF: dict[OperandName, Kind] = {
    "input": "activation",
    "weight": "weight",
    "grad_output": "gradient",
}


@dataclass(frozen=True)
class Operand:
    """The recipe of one operand.

    `row` is for the product that it is read by rows for, and `column` for the other (TRN-002).
    Without `column`, it is quantized once, and both products read the same numbers. In place of a
    recipe, a policy or a block format may be given, or a representation or a function
    that is a row of `REPRESENTATIONS`.
    """

    row: TensorRecipe
    column: TensorRecipe | None = None

    def __post_init__(self) -> None:
        for axis in AXES:
            given: object = getattr(self, axis)
            if isinstance(given, BlockFormat):
                object.__setattr__(self, axis, Blocks(block_format=given))
            elif isinstance(given, Policy):
                object.__setattr__(self, axis, Mor(given))
            elif isinstance(given, str):
                raise TypeError(
                    f"{axis} is {given!r}, a text; give mor_ref.recipes.as_tensor_recipe({given!r})"
                )
            elif is_function(given) or (
                isinstance(given, Representation) and not isinstance(given, TensorRecipe | type)
            ):
                object.__setattr__(self, axis, _recipe_of_row(axis, given))
        for axis, tensor_recipe in zip(AXES, (self.row, self.column), strict=True):
            if not isinstance(tensor_recipe, TensorRecipe) and (
                axis == "row" or tensor_recipe is not None
            ):
                raise TypeError(
                    f"{axis} is {tensor_recipe!r}{lacking(tensor_recipe, MEMBERS)}; give a recipe "
                    "such as Mor('tensor')"
                )

    @property
    def quantized(self) -> Literal["once", "each"]:
        """Whether it is quantized once for both products, or for each."""
        return "once" if self.column is None else "each"

    def for_tensor(self, role: Role) -> "Operand":
        """Return the recipes for a tensor of this role (MOR-015)."""
        column = None if self.column is None else self.column.for_tensor(role)
        return Operand(self.row.for_tensor(role), column)

    def along(self, axis: Axis) -> TensorRecipe:
        """Return the recipe for a direction."""
        return self.row if axis == "row" or self.column is None else self.column


def _recipe_of_row(axis: str, given: Any) -> Row:
    """Return the recipe of a representation, which has to be a row: texts have its name alone.

    A function may be the function of a row.
    """
    row, made = as_representation(given), "..."
    known = REPRESENTATIONS.known(row.name)
    is_row = known == row
    if isinstance(row, FunctionRepresentation) and row is not given:
        made = f"mor_ref.representations.FunctionRepresentation({row.name})"
        is_row = isinstance(known, FunctionRepresentation) and known.function is row.function
    if not is_row:
        raise ValueError(
            f"{axis} is {given!r}, which is no row yet; add it first: "
            f"mor_ref.representations.REPRESENTATIONS[{row.name!r}] = {made}"
        )
    return Row(row.name)


@dataclass(frozen=True)
class Recipe:
    """The recipes of the operands of a linear layer (TRN-002).

    >>> from mor_ref.torch import Mor, Operand, Recipe, recipes
    >>> by_tensor = Operand(Mor(block="tensor"))
    >>> mine = Recipe("mine", by_tensor, by_tensor, by_tensor)
    >>> Recipe.from_text(str(mine)) == mine
    True
    """

    name: str
    input: Operand
    weight: Operand
    grad_output: Operand
    matmul: str = "torch"

    treatments = FormerAttribute("tensor_recipes")

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name is {self.name!r}; give a text")
        known_name("matmul", self.matmul, MATMULS)
        for name in OPERANDS:
            if not isinstance(getattr(self, name), Operand):
                raise TypeError(f"{name} is {getattr(self, name)!r}; give an Operand")
        self._check_histories()
        self._check_randomness()

    def _check_histories(self) -> None:
        """Refuse two delayed recipes of one operand, which has one history (TRN-005)."""
        for name in OPERANDS:
            operand: Operand = getattr(self, name)
            both = {operand.row, operand.column or operand.row}
            if len(both) > 1 and any(one.is_delayed for one in both):
                raise ValueError(
                    f"{name} has a delayed scale in one direction; give both directions the same "
                    "recipe, as an operand has one history"
                )

    def _check_randomness(self) -> None:
        """Refuse random bits that a recomputed forward pass would draw again (TRN-008, TRN-009)."""
        for operand, axis, tensor_recipe in self.tensor_recipes:
            if tensor_recipe.is_random and operand != "grad_output":
                raise ValueError(
                    f"{operand} is rounded at random; give 'sr' to grad_output only, as a forward "
                    "pass that is computed again would have other bits"
                )
            if tensor_recipe.hadamard and (axis == "row" or operand == "weight"):
                raise ValueError(
                    f"{operand} has a Hadamard transform by {axis}; give it to the columns of "
                    "input and of grad_output, where it cancels"
                )
        columns = self.input.column, self.grad_output.column
        if len({one.hadamard if one else None for one in columns}) > 1:
            raise ValueError(
                "input and grad_output have other Hadamard transforms by column; give both the "
                "same one, so that it cancels in the weight gradient"
            )

    @property
    def tensor_recipes(self) -> Iterator[tuple[OperandName, Axis, TensorRecipe]]:
        """Every quantization of a layer: its operand, its direction and its recipe."""
        for name in OPERANDS:
            operand: Operand = getattr(self, name)
            yield name, "row", operand.row
            if operand.column is not None:
                yield name, "column", operand.column

    @property
    def has_state(self) -> bool:
        """Whether a layer has a state between steps: scales, random bits, or what is remembered."""
        return any(one.needs_steps or one.remembers for _, _, one in self.tensor_recipes)

    @property
    def asks_functions(self) -> bool:
        """Whether a metric is a function, which sees the role of a tensor (MOR-014)."""
        return any(tensor_recipe.asks_functions for _, _, tensor_recipe in self.tensor_recipes)

    def for_layer(self, layer: str) -> "Recipe":
        """Return the recipe for a layer, with the thresholds of its tensors (MOR-015)."""
        operands = {
            name: getattr(self, name).for_tensor(Role(layer, kind))
            for name, kind in KIND_OF.items()
        }
        return replace(self, **operands)

    def of(self, operand: OperandName, axis: Axis) -> TensorRecipe:
        """Return the recipe of an operand for a direction."""
        found: Operand = getattr(self, operand)
        return found.along(axis)

    def named(self, name: str) -> "Recipe":
        """Return the recipe under another name."""
        return replace(self, name=name)

    def __str__(self) -> str:
        quoted = json.dumps(self.name, ensure_ascii=False).replace("\x7f", "\\u007f")
        lines = [f"name = {quoted}", f"matmul = {json.dumps(self.matmul)}"]
        for name in OPERANDS:
            operand: Operand = getattr(self, name)
            lines += ["", f"[{name}]", f"row = {operand.row.text}"]
            if operand.column is not None:
                lines.append(f"column = {operand.column.text}")
        return "\n".join(lines) + "\n"

    @classmethod
    def from_text(cls, text: str) -> "Recipe":
        """Return the recipe that a text says, as `str` of a recipe writes it (TOML)."""
        if not isinstance(text, str):
            raise TypeError(f"text is {text!r}; {GIVE}")
        try:
            read = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"text is not TOML ({error}); {GIVE}") from error
        read = table_of("text", read, ("name", *OPERANDS), ("matmul",))
        of_layer: dict[str, Any] = {name: _operand(name, read.pop(name)) for name in OPERANDS}
        return cls(**of_layer, **read)


def _operand(name: str, read: object) -> Operand:
    table = table_of(f"[{name}] of text", read, ("row",), ("column",))
    return Operand(
        **{
            axis: tensor_recipe_from(fields, f"{axis} of [{name}]")
            for axis, fields in table.items()
        }
    )
