"""Integers as kernels write them, as the bits of a field.

The codes and zero points of a grid with negative integers are words of 32 bits in two's complement.
Kernels write int8, int32 or int64, or unsigned integers of any width with the same bits.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import Field

_GIVE = "give bit patterns as unsigned integers"


class IntegersError(ValueError):
    """Integers that a field does not take; the message follows the name of the field."""


@dataclass(frozen=True)
class Integers:
    """The integers that a field takes: `size` bytes wide, and in two's complement if `signed`.

    Signed integers of a grid may be as narrow as the grid.

    >>> from mor_ref.definitions.integer_grids import integer_grid
    >>> takes = Integers(4, signed=True, grid=integer_grid("int4"))
    >>> [takes.bits(np.array([minus_one, 2], dtype)).tolist() for minus_one, dtype in (
    ...     (-1, np.int8), (0xFF, np.uint8), (0xF, np.uint8), (2**64 - 1, np.uint64)
    ... )]
    [[4294967295, 2], [4294967295, 2], [4294967295, 2], [4294967295, 2]]
    """

    size: int
    signed: bool = False
    grid: IntegerGrid | None = None

    def taken(self, array: NDArray[Any]) -> Unsigned:
        """Return integers with an unsigned dtype; refuse those that a field does not take.

        No entry is copied, unless the order of its bytes is not that of the machine.
        """
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        dtype, lowest = array.dtype, -(1 << 8 * self.size - 1) if self.signed else 0
        if dtype.kind == "i" and dtype.itemsize != self.size and array.size:
            least = int(array.min())
            if least < lowest:
                raise IntegersError(f"holds {least}; {_GIVE}")
        is_narrow = dtype.kind == "u" and dtype.itemsize < self.size
        if is_narrow and self.grid is not None and 8 * dtype.itemsize < self.grid.bits:
            raise IntegersError(
                f"has dtype {dtype}, which does not hold the integers of {self.grid.name}; give "
                f"{self.grid.dtype}, or uint32 in two's complement"
            )
        return array.view(f"u{dtype.itemsize}")

    def bits(self, array: NDArray[Any]) -> NDArray[np.integer[Any]]:
        """Return integers as the bits of the field, or refuse what `taken` refuses.

        An integer that no word of the field holds stays as it is.
        """
        words = self.taken(array)
        size = words.dtype.itemsize
        if array.dtype.kind == "u" and size < self.size:
            return self.extended(words, 8 * size)
        if array.dtype.kind == "u" and (self.grid is None or size == self.size):
            return words
        signed = words.view(f"i{size}")
        if size <= self.size:
            return signed.astype(f"i{self.size}").view(f"u{self.size}")
        is_word = (signed < 0) & (signed >= -(1 << 8 * self.size - 1))
        return np.where(is_word, signed + (1 << 8 * self.size), signed)

    def extended(self, words: Unsigned, width: int) -> Unsigned:
        """Return words of a width as words of the field; the sign of words of a grid is extended.

        The sign is the highest bit of the grid if no higher bit of the word is set. Otherwise it is
        the highest bit of the word.
        """
        grid = self.grid
        if grid is None or not grid.bits <= width < 8 * self.size:
            return words
        wide = words.astype(f"u{self.size}")
        bits = np.where(wide >> grid.bits == 0, grid.bits, width).astype(wide.dtype)
        one = wide.dtype.type(1)
        return np.where(wide >> (bits - one) & one, wide | ~((one << bits) - one), wide)


def integers_of(field: Field, size: int, parameters: Parameters) -> Integers:
    """Return the integers that a field without a view takes, given its bytes."""
    grid = field.grid(parameters)
    signed = field.signed if grid is None else grid.signed
    return Integers(size, signed, grid if signed else None)
