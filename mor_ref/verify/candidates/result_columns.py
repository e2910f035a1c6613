"""The arrays of a case as columns of a file: names, shapes and widths that follow from the case."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import SEPARATOR, VIEWS, seen, unsuited
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import bits_of, bytes_of, format_meant
from mor_ref.operations.shapes import shapes_of


class ColumnsError(ValueError):
    """Columns or numbers that are not those of a case; the message ends a sentence."""


@dataclass(frozen=True)
class Column:
    """A field of a case, as a file has it: its shape, and the bytes and bits of an entry.

    Integers of a `grid` can be as wide as the grid.
    """

    name: str
    shape: tuple[int, ...]
    size: int
    bits: int
    grid: IntegerGrid | None = None

    @property
    def narrow(self) -> "Column":
        """The field in the dtype of its grid; as it is if it has none."""
        if self.grid is None:
            return self
        return replace(self, size=np.dtype(self.grid.dtype).itemsize)

    @property
    def per_row(self) -> int:
        """How many entries a row has."""
        return int(np.prod(self.shape[1:], dtype=np.int64))

    @property
    def entries(self) -> int:
        """How many entries it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """How many bytes its entries have."""
        return self.entries * self.size

    def array(self, entries: Sequence[int] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return entries as an array of the field's shape."""
        return np.array(entries, f"u{self.size}").reshape(self.shape)


def columns_of(operation: str, case: Case, names: Sequence[str]) -> list[Column]:
    """Return the columns of these fields, or refuse names that the operation does not have."""
    if len({*names}) < len(names):
        raise ColumnsError("names a field twice; name each once")
    return [_column(operation, case, name) for name in names]


def only_output(operation: str) -> list[str]:
    """Return the name of the one field that an operation computes, or refuse to guess."""
    outputs = list(OPERATIONS[operation].outputs)
    if len(outputs) != 1:
        raise ColumnsError(
            "has columns without names; list them in fields.json next to it, from: "
            f"{', '.join(outputs)}"
        )
    return outputs


def _column(operation: str, case: Case, name: str) -> Column:
    declared = OPERATIONS[operation]
    field, *views = name.split(SEPARATOR)
    known = {**declared.inputs, **declared.outputs}
    if field not in known or not set(views) <= VIEWS.keys():
        raise ColumnsError(
            f"names {ascii(name)[:100]}, which {operation} does not have; it has "
            f"{', '.join(declared.outputs)}, and their views"
        )
    reason = unsuited(views, case.parameters)
    if reason is not None:
        raise ColumnsError(f"names {name}, but {reason}")
    output = declared.field(field)
    shape = case.arrays[next(iter(declared.inputs))].shape
    plain = shapes_of(declared.first_axes, case.parameters, shape)[output.axes]
    meant = format_meant(output.format, case.parameters)
    size = bytes_of(meant)
    grid = output.grid(case.parameters)
    if views:
        if len({*views}) < len(views):
            raise ColumnsError(f"names {name}; name each view once")
        viewed = seen(np.zeros(plain, f"u{size}"), views, case.parameters)
        return Column(name, viewed.shape, viewed.itemsize, 8 * viewed.itemsize, grid)
    return Column(name, plain, size, bits_of(meant) if grid is None else grid.bits, grid)
