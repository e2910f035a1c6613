"""Grids of integers: signed and unsigned ones, of 2 to 16 bits."""

import re
from dataclasses import dataclass

from mor_ref.argument_checks import known_name

NARROWEST, WIDEST = 2, 16


@dataclass(frozen=True)
class IntegerGrid:
    """The integers from `lowest` to `highest`, of `bits` bits (AFF-001)."""

    name: str
    bits: int
    signed: bool

    @property
    def lowest(self) -> int:
        """The smallest integer."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def highest(self) -> int:
        """The largest integer."""
        return self.lowest + (1 << self.bits) - 1

    @property
    def dtype(self) -> str:
        """The smallest integer dtype of NumPy that holds the codes."""
        return f"{'' if self.signed else 'u'}int{8 if self.bits <= 8 else 16}"


def integer_grid(grid: str) -> IntegerGrid:
    """Return the grid of that name (AFF-001).

    >>> integer_grid("int4").lowest, integer_grid("uint4").highest
    (-8, 15)
    """
    parts = re.fullmatch(r"(u?)int([0-9]{1,2})", grid) if isinstance(grid, str) else None
    if parts and NARROWEST <= int(parts[2]) <= WIDEST:
        return IntegerGrid(grid, int(parts[2]), not parts[1])
    names = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(NARROWEST, WIDEST + 1)]
    return IntegerGrid(known_name("grid", grid, names), 0, signed=True)
