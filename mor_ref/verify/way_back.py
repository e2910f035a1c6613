"""The way back of a user's results: from the codes and scales of tensors to numbers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.bit_files import StoredBits
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.golden.inputs.own_tensors import SOURCES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import INTEGERS, bits_of, bytes_of, format_meant
from mor_ref.operations.integers import IntegersError, integers_of
from mor_ref.operations.operation import WayBack
from mor_ref.operations.shapes import shapes_of, sides_of, spread_to_numbers
from mor_ref.operations.way_back import check_codes, rounded_to
from mor_ref.recipes import Asked, OwnRecipe, as_policy, rungs_of

_PAIR = 2  # codes in a byte
Words = NDArray[np.uint32]
RECIPE, _SOURCES = "recipe", "sources"  # of the metadata of a file


def metadata_for(recipe: OwnRecipe, sources: Mapping[str, str]) -> dict[str, str]:
    """Return what a file says: the recipe, and the formats of the tensors that were quantized."""
    return {RECIPE: recipe.text, _SOURCES: json.dumps(sources)}


def sources_in(metadata: Mapping[str, str], file: str) -> dict[str, str]:
    """Return the formats of the tensors that were quantized, by name, if a file says them."""
    if RECIPE not in metadata:  # of another program
        return {}
    try:
        found = json.loads(metadata.get(_SOURCES, "{}"))
    except (ValueError, RecursionError):
        found = None
    known = [*SOURCES.values()]
    if not isinstance(found, dict) or any(one not in known for one in found.values()):
        raise ValueError(
            f"{file} has {_SOURCES} in its metadata that are not dtypes of tensors; quantize the "
            f"tensors again"
        )
    return found


@dataclass(frozen=True)
class WayBackOf:
    """The way back of one tensor: its fields in a file, with a recipe.

    `source` is the format of the numbers that were quantized, to which some y are rounded.
    """

    recipe: OwnRecipe
    name: str
    fields: Mapping[str, StoredBits]
    source: str = "f32"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers: that of the codes, or of these transposed."""
        shape = self._whole.shape_of_codes
        return rows_and_columns(shape)[::-1] if self.recipe.axis == "columns" else shape

    def numbers(self) -> NDArray[np.float32]:
        """Return y; with a policy, the units of each rung are made from its codes and scales."""
        y = self._whole.restored()
        for index, rung in self._rungs():
            choice = self._choice()
            if (choice == index).any():
                units = rounded_to("bf16", rung.restored())  # as the output has them (QNT-003)
                y = np.where(self._spread(choice) == index, units, y)
        found = y.view(np.float32)
        return (found.T if self.recipe.axis == "columns" else found).reshape(self.shape)

    @property
    def _whole(self) -> "_Coded":
        return self._coded(self.recipe.asked)

    def _coded(self, asked: Asked, start: str = "") -> "_Coded":
        own = Asked(asked.operation, {**asked.parameters, "source": self.source})
        return _Coded(self.recipe.text, self.name, own, self.fields, start)

    def _rungs(self) -> list[tuple[int, "_Coded"]]:
        """Return the rungs of a policy that have codes and scales, by their number in the ladder.

        The output of the policy has y of the others.
        """
        asked = self.recipe.asked
        known = rungs_of(asked)
        names = as_policy(asked.parameters["policy"]).names if known else ()
        return [
            (k, self._coded(known[name], f"{name}."))
            for k, name in enumerate(names)
            if name in known and _has_codes(known[name])
        ]

    def _choice(self) -> NDArray[Any]:
        """Return the numbers of the rungs of units; the last is that of bfloat16."""
        choice = self._whole.array("choice")
        last = len(as_policy(self.recipe.asked.parameters["policy"]).names) - 1
        if choice.size and choice.max() > last:
            raise ValueError(
                f"choice of tensor {self.name!r} has {choice.max()}; choices of "
                f"{self.recipe.text} are 0 to {last}; give the recipe that made them"
            )
        return choice

    def _spread(self, choice: NDArray[Any]) -> NDArray[Any]:
        """Return the choice of the unit of each number."""
        shape = rows_and_columns(self._whole.shape_of_codes)
        unit = sides_of("rc", self.recipe.asked.parameters, shape)["unit"]
        return spread_to_numbers(choice, unit, shape)


def _has_codes(asked: Asked) -> bool:
    """Return whether y follows from the fields of an operation without y."""
    way = OPERATIONS[asked.operation].way_back
    return way is not None and ("y",) not in way.takes(asked.parameters)


@dataclass(frozen=True)
class _Coded:
    """The fields of an operation in a file, with names that begin in the same way."""

    text: str
    tensor: str
    asked: Asked
    fields: Mapping[str, StoredBits]
    start: str = ""

    def restored(self) -> Words:
        """Return the bits of y, in rows and columns."""
        arrays = {name: self.array(name) for name in self._taken}
        codes = OPERATIONS[self.asked.operation].codes
        try:
            if codes is not None:
                check_codes(arrays["code"], codes(self.asked.parameters))
            return self._way.restore(self.asked.parameters, arrays)
        except ValueError as error:
            raise ValueError(f"tensor {self.tensor!r}: {self.start}{error}") from error

    @property
    def shape_of_codes(self) -> tuple[int, ...]:
        """The shape of the codes, two in a byte counted as two."""
        first, *_ = self._taken
        shape = self.fields[f"{self.start}{first}"].shape
        return (*shape[:-1], _PAIR * shape[-1]) if first == "packed" else shape

    @property
    def _way(self) -> WayBack:
        way = OPERATIONS[self.asked.operation].way_back
        if way is None:
            raise ValueError(f"recipe is {self.text}, which has no way back")
        return way

    @property
    def _taken(self) -> tuple[str, ...]:
        """The fields that are there, of those that y follows from; refuse a tensor without them."""
        wanted = self._way.takes(self.asked.parameters)
        there = {name for names in wanted for name in names if f"{self.start}{name}" in self.fields}
        found = [next((name for name in names if name in there), None) for names in wanted]
        said = [" or ".join(f"{self.start}{name}" for name in names) for names in wanted]
        missing = [names for names, one in zip(said, found, strict=True) if not one]
        if missing:
            raise ValueError(
                f"tensor {self.tensor!r} has no field {missing[0]}; for {self.text}, give "
                f"{' and '.join(said)}"
            )
        return tuple(name for name in found if name)

    def array(self, name: str) -> NDArray[np.unsignedinteger[Any]]:
        """Return a field in the shape that it should have; refuse one of another size or range."""
        operation = OPERATIONS[self.asked.operation]
        known = shapes_of("rc", self.asked.parameters, rows_and_columns(self.shape_of_codes))
        shape = known[operation.field(name).axes]
        fmt = format_meant(operation.field(name).format, self.asked.parameters)
        whole, stored = f"{self.start}{name}", self.fields[f"{self.start}{name}"]
        if not stored.is_of(fmt, bytes_of(fmt)):
            raise ValueError(
                f"{whole} of tensor {self.tensor!r} has dtype {stored.dtype}; for "
                f"{self.text}, give {fmt}, or its bits as unsigned integers"
            )
        is_short = stored.itemsize < bytes_of(fmt) and fmt not in INTEGERS
        if is_short or np.prod(stored.shape) != np.prod(shape):
            raise ValueError(
                f"{whole} of tensor {self.tensor!r} has the shape {stored.shape} and "
                f"{stored.itemsize} bytes an entry; with {self.text}, {shape} and "
                f"{bytes_of(fmt)} are expected"
            )
        return self._bits(name, fmt, stored).reshape(shape)

    def _bits(self, name: str, fmt: str, stored: StoredBits) -> NDArray[np.unsignedinteger[Any]]:
        """Return the bits of a field; refuse integers that are not of its format."""
        size, problem = bytes_of(fmt), f"{self.start}{name} of tensor {self.tensor!r} "
        given = np.require(stored.load(), requirements=["C", "A"])
        declared, is_signed = OPERATIONS[self.asked.operation].field(name), stored.dtype[0] in "iI"
        try:
            found = integers_of(declared, size, self.asked.parameters).bits(
                given.view(f"i{given.itemsize}") if is_signed else given
            )
        except IntegersError as error:
            raise ValueError(f"{problem}{error}") from error
        if found.size and (int(found.min()) < 0 or int(found.max()) >> bits_of(fmt)):
            wrong = int(found.min()) if int(found.min()) < 0 else int(found.max())
            raise ValueError(
                f"{problem}has {wrong}, which does not fit {bits_of(fmt)} bits; give codes of {fmt}"
            )
        return found.astype(f"u{size}", copy=False)
