"""Integers as kernels write them, as the bits of a field.

The codes and zero points of a grid with negative integers are words of 32 bits in two's complement.
Kernels write int8 or int32, or bytes with the bits of int8.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.definitions.affine import IntegerGrid
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.operations.fields import grid_of, sign_is_open
from mor_ref.operations.operation import Parameters
from mor_ref.verify.candidates.candidate import NoArray


@dataclass(frozen=True)
class Integers:
    """The integers that a field takes: so many bytes wide, and of a grid if they can be negative.

    `sign_is_open` if the numbers of a tensor decide whether its integers are signed (AFF-005).

    >>> from mor_ref.definitions.affine import integer_grid
    >>> Integers(4, integer_grid("int8")).bits(np.array([-1, 2], np.int8)).tolist()
    [4294967295, 2]
    """

    size: int
    grid: IntegerGrid | None = None
    sign_is_open: bool = False

    def taken(self, given: Any) -> Any:
        """Return integers with an unsigned dtype, or why they are refused; all else as it is.

        No entry is copied, unless the order of its bytes is not that of the machine.
        """
        if not _is_of_integers(given):
            return given
        if not given.dtype.isnative:
            given = given.astype(given.dtype.newbyteorder("="))
        has_negative = self.grid is not None or self.sign_is_open
        dtype, lowest = given.dtype, -(1 << 8 * self.size - 1) if has_negative else 0
        if dtype.kind == "i" and dtype.itemsize != self.size and given.size:
            least = int(given.min())
            if least < lowest:
                return NoArray(f"holds {least}; give bit patterns as unsigned integers")
        is_narrow = dtype.kind == "u" and dtype.itemsize < self.size
        if is_narrow and self.grid is not None and 8 * dtype.itemsize != self.grid.bits:
            return NoArray(
                f"has dtype {dtype}, and integers of {self.grid.name} can be negative; give "
                f"{self.grid.dtype}, or uint32 in two's complement"
            )
        return given.view(f"u{dtype.itemsize}")

    def bits(self, given: Any) -> Any:
        """Return integers as the bits of the field, or what `taken` returns."""
        found = self.taken(given)
        if isinstance(found, NoArray) or not _is_of_integers(given):
            return found
        size = found.dtype.itemsize
        if given.dtype.kind == "u" and (self.grid is None or size >= self.size):
            return found
        signed = found.view(f"i{size}")
        if size <= self.size:
            return signed.astype(f"i{self.size}").view(f"u{self.size}")
        return np.where(signed < 0, signed + (1 << 8 * self.size), signed)


def integers_of(field: str, size: int, parameters: Parameters) -> Integers:
    """Return the integers that a field takes, by its name and its bytes in rows and columns."""
    plain = field.partition(SEPARATOR)[0]
    if sign_is_open(plain, parameters):
        return Integers(size, sign_is_open=True)
    grid = grid_of(plain, parameters)
    return Integers(size, grid if grid is not None and grid.signed else None)


def of_width(given: Any, size: int) -> Any:
    """Return signed integers of so many bytes as their bits, and all else as it is."""
    is_signed = _is_of_integers(given) and given.dtype.str[1:] == f"i{size}"
    return Integers(size).bits(given) if is_signed else given


def _is_of_integers(given: Any) -> bool:
    return isinstance(given, np.ndarray | np.generic) and given.dtype.kind in "iu"
