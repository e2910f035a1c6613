"""The way back of a user's results: from the codes and scales of tensors to numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.bit_files import StoredBits
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import bits_of, bytes_of, format_meant
from mor_ref.operations.operation import WayBack
from mor_ref.operations.shapes import shapes_of
from mor_ref.treatments import OwnRecipe

_PAIR = 2  # codes in a byte


@dataclass(frozen=True)
class WayBackOf:
    """The way back of one tensor: its fields in a file, under a recipe."""

    recipe: OwnRecipe
    name: str
    fields: Mapping[str, StoredBits]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers: that of the codes, or of these transposed."""
        shape = self._shape_of_codes
        return rows_and_columns(shape)[::-1] if self.recipe.axis == "columns" else shape

    @property
    def _shape_of_codes(self) -> tuple[int, ...]:
        first, *_ = self._taken
        shape = self.fields[first].shape
        return (*shape[:-1], _PAIR * shape[-1]) if first == "packed" else shape

    def numbers(self) -> NDArray[np.float32]:
        """Return y."""
        asked, shapes = self.recipe.asked, self._shapes
        arrays = {name: self._checked(name, shapes[name]) for name in self._taken}
        y = self._way.restore(asked.parameters, arrays).view(np.float32)
        return (y.T if self.recipe.axis == "columns" else y).reshape(self.shape)

    @property
    def _way(self) -> WayBack:
        way = OPERATIONS[self.recipe.asked.operation].way_back
        if way is None:
            raise ValueError(f"recipe is {self.recipe.text}, which has no way back")
        return way

    @property
    def _taken(self) -> tuple[str, ...]:
        """The fields that are there, of those that y follows from; refuse a tensor without them."""
        wanted = self._way.takes(self.recipe.asked.parameters)
        found = [next((name for name in names if name in self.fields), None) for names in wanted]
        missing = [" or ".join(names) for names, one in zip(wanted, found, strict=True) if not one]
        if missing:
            listed = " and ".join(" or ".join(names) for names in wanted)
            raise ValueError(
                f"tensor {self.name!r} has no field {missing[0]}; under "
                f"{self.recipe.text}, give {listed}"
            )
        return tuple(name for name in found if name)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each field, with rows and columns of numbers."""
        asked = self.recipe.asked
        operation, sides = OPERATIONS[asked.operation], rows_and_columns(self._shape_of_codes)
        known = shapes_of("rc", asked.parameters, sides)
        return {name: known[operation.field(name)[1]] for name in self._taken}

    def _checked(self, name: str, shape: tuple[int, ...]) -> NDArray[np.unsignedinteger[Any]]:
        """Return a field in the shape that it should have; refuse one of another size or range."""
        asked, stored = self.recipe.asked, self.fields[name]
        fmt = format_meant(OPERATIONS[asked.operation].field(name)[0], asked.parameters)
        size = bytes_of(fmt)
        if stored.itemsize != size or np.prod(stored.shape) != np.prod(shape):
            raise ValueError(
                f"{name} of tensor {self.name!r} has the shape {stored.shape} and "
                f"{stored.itemsize} bytes an entry; {shape} and {size} are right under "
                f"{self.recipe.text}"
            )
        array = stored.load().reshape(shape)
        if array.size and int(array.max()) >> bits_of(fmt):
            raise ValueError(
                f"{name} of tensor {self.name!r} has {int(array.max())}, which is not of "
                f"{bits_of(fmt)} bits; give codes of {fmt}"
            )
        return array
