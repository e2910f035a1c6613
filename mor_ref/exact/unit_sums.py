"""The sums of units that metrics compare, and of their rows and columns."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from mor_ref.definitions.unit_sums import UnitSums
from mor_ref.exact.blocks import Rows
from mor_ref.exact.errors import UNIT_OF_SQUARES, absolute_error, error_sum, square
from mor_ref.exact.quantization import Element
from mor_ref.exact.step import step


@step
def unit_sums(pairs: Iterable[tuple[float, float]]) -> UnitSums:
    """Return the sums of pairs of finite x and y, but for those of the relative error (MOR-009)."""
    elements = list(pairs)
    errors = [d for x, y in elements if math.isfinite(d := absolute_error(x, y))]
    return UnitSums(
        len(elements),
        len(errors),
        sum(square(x) for x, _ in elements),
        sum(square(d) for d in errors),
        sum(square(y) for _, y in elements),
        sum(product(x, y) for x, y in elements),
        max(errors, default=0.0),
        max((abs(x) for x, _ in elements), default=0.0),
        min((abs(x) for x, _ in elements if x), default=0.0),
    )


def all_sums(pairs: Iterable[tuple[float, float]]) -> UnitSums:
    """Return all sums of pairs of finite x and y."""
    elements = list(pairs)
    relative = error_sum(elements)
    return replace(unit_sums(elements), sum=relative.sum, nonzero=relative.nonzero)


@step
def product(x: float, y: float) -> int:
    """Return the product of two binary32 numbers, in units of 2^-298 (MOR-009)."""
    return int(Fraction(x) * Fraction(y) / UNIT_OF_SQUARES)


@dataclass(frozen=True, eq=False)
class NumbersOfUnit:
    """x and y of a unit: its places in a tensor, and the elements of this tensor."""

    places: Sequence[tuple[int, int]]
    tensor: Rows
    elements: Sequence[Sequence[Element]]

    @property
    def x(self) -> list[list[float]]:
        """The numbers of the unit, row by row."""
        return self._in_rows(lambda i, j: self.tensor[i][j])

    @property
    def y(self) -> list[list[float]]:
        """The y of these numbers (QNT-003), row by row."""
        return self._in_rows(lambda i, j: self.elements[i][j].y)

    @cached_property
    def sums(self) -> UnitSums:
        """The sums of the unit."""
        return all_sums(pair for row in self._pairs for pair in row)

    @cached_property
    def rows(self) -> tuple[UnitSums, ...]:
        """The sums of each row."""
        return tuple(map(all_sums, self._pairs))

    @cached_property
    def columns(self) -> tuple[UnitSums, ...]:
        """The sums of each column."""
        return tuple(map(all_sums, zip(*self._pairs, strict=True)))

    @cached_property
    def _pairs(self) -> list[list[tuple[float, float]]]:
        return [list(zip(*rows, strict=True)) for rows in zip(self.x, self.y, strict=True)]

    def has_small_errors(self, limit: Fraction) -> bool:
        """Return whether the largest d of each row is below a part of its amax (MOR-013)."""
        from mor_ref.exact.metrics import has_small_errors

        return has_small_errors(self.rows, limit)

    def _in_rows(self, number: Callable[[int, int], float]) -> list[list[float]]:
        rows: dict[int, list[float]] = {}
        for i, j in self.places:
            rows.setdefault(i, []).append(number(i, j))
        return list(rows.values())
