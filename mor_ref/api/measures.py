"""Measures of a quantized tensor: relative and squared errors, flushed and saturated numbers."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.dequantization import OutcomeOfCodes, Tried
from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition, partition, rows_and_columns

if TYPE_CHECKING:
    from mor_ref.engine.unrounded_y import Fill

Fills = Sequence["Fill"]  # the ways to y, each to its share

_ROWS = 16  # of a tile: no part cuts one
_ULP_OF_ONE = 2.0**-23
_UNIT_OF_SQUARES = Fraction(1, 1 << 298)


@dataclass(frozen=True)
class Measures:
    """Integers of a quantized tensor; the sums of two measures are the measures of both tensors.

    `sum`, `nonzero` and `nonfinite` are the error sums. `flushed` and `saturated` count numbers;
    `saturated` is None if a representation that took numbers does not count them (TRN-011).
    `signal` is the sum of x^2, and `noise` the sum of (x - y)^2 over the `measured` elements, in
    units of 2^-298. `largest` is the largest error.
    """

    elements: int = 0
    sum: int = 0
    nonzero: int = 0
    nonfinite: int = 0
    flushed: int = 0
    saturated: int | None = 0
    measured: int = 0
    signal: int = 0
    noise: int = 0
    largest: float = 0.0

    def __add__(self, other: "Measures") -> "Measures":
        not_added = {"largest", "saturated"}
        names = [field.name for field in fields(self) if field.name not in not_added]
        added = {name: getattr(self, name) + getattr(other, name) for name in names}
        saturated = sum_of_counts([self.saturated, other.saturated])
        return Measures(**added, saturated=saturated, largest=max(self.largest, other.largest))

    @property
    @public
    def error(self) -> float:
        """The mean relative error; 0 if every number is 0."""
        return self.sum / max(self.nonzero, 1) * _ULP_OF_ONE

    @property
    @public
    def mse(self) -> float:
        """The mean squared error."""
        return float(self.noise * _UNIT_OF_SQUARES / max(self.measured, 1))

    @property
    @public
    def sqnr(self) -> float:
        """The ratio of signal and noise in decibels (ERR-007); infinite without noise."""
        if not self.noise:
            return math.inf
        return 10 * math.log10(Fraction(self.signal, self.noise)) if self.signal else -math.inf

    @property
    @public
    def flushed_share(self) -> float:
        """The share of the numbers that are not zero that became zero."""
        return self.flushed / max(self.nonzero, 1)

    @property
    @public
    def saturated_share(self) -> float:
        """The share of the numbers that are not zero that saturated; NaN if it is not known."""
        return math.nan if self.saturated is None else self.saturated / max(self.nonzero, 1)


def sum_of_counts(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def saturated(
    numbers: Numbers, rungs: Sequence[Tried], units: Partition, choice: NDArray[np.uint8]
) -> int | None:
    """Return how many elements saturated in the units that took these rungs (TRN-011).

    None if a rung without a scaled format took some: it counts none.
    """
    return sum_of_counts(
        tried.saturated(numbers, units, choice, index)
        if isinstance(tried, OutcomeOfCodes)
        else None
        for index, tried in enumerate(rungs)
        if isinstance(tried, OutcomeOfCodes) or np.any(choice == index)
    )


def signal_of(numbers: Numbers, threads: int | None) -> int:
    """Return the sum of x^2 (ERR-006): the noise of a y that is 0."""
    from mor_ref.engine.squares import measure  # imports Numba

    return measure(numbers, partition(numbers.shape, "tensor"), [], threads).squares


def amaxes_of(numbers: Numbers, threads: int | None) -> tuple[np.uint32, np.uint32]:
    """Return the bits of the largest magnitude without and with infinities (SCL-001, NVF-002)."""
    from mor_ref.engine.scales import amax_of_blocks  # imports Numba

    whole = partition(numbers.shape, "tensor")
    finite, largest = (
        amax_of_blocks(numbers, whole, threads, counted).max(initial=np.uint32(0))
        for counted in ("finite", "not nan")
    )
    return finite, largest


def measures(
    numbers: Numbers,
    rungs: Sequence[Tried],
    units: Partition,
    choice: NDArray[np.uint8],
    signal: int,
    threads: int | None,
) -> Measures:
    """Return the measures of a tensor whose units took these rungs (ERR-006 to ERR-008).

    A choice beyond the last rung is bfloat16.
    """
    from mor_ref.engine.squares import measure

    sums = measure(numbers, units, fills_of_y(numbers, rungs, units, choice), threads)
    return Measures(
        numbers.bits.size,
        sums.sum,
        sums.nonzero,
        sums.nonfinite,
        sums.flushed,
        saturated(numbers, rungs, units, choice),
        sums.measured,
        signal,
        sums.squares,
        float(np.uint32(sums.largest).view(np.float32)),
    )


def fills_of_y(
    numbers: Numbers, rungs: Sequence[Tried], units: Partition, choice: NDArray[np.uint8]
) -> Fills:
    """Return the ways to y of a tensor whose units took these rungs, or bfloat16 (ERR-008)."""
    from mor_ref.engine.unrounded_y import from_numbers

    fills = [tried.fill_of_y(units, choice, index) for index, tried in enumerate(rungs)]
    return [*fills, from_numbers(numbers, units, choice, len(rungs), rounds=True)]


def differences(numbers: Numbers, fills: Fills, most: int) -> Iterator[NDArray[np.float64]]:
    """Yield x - y in binary64, some rows with at most so many numbers; 0 where it is not finite.

    Each of `fills` writes its share of y, which else is 0. Leading axes fold (BLK-001).
    """
    from mor_ref.engine.blocks import Part, binary32_rows

    rows, columns = rows_and_columns(numbers.shape)
    height = max(_ROWS, most // max(columns, 1) // _ROWS * _ROWS)
    for top in range(0, rows, height):
        part = Part(top, min(top + height, rows), 0, columns)
        y = np.zeros((part.bottom - top) * columns, np.uint32)
        for fill in fills:
            fill(part, y)
        x = binary32_rows(numbers, columns, top, part.bottom)
        with np.errstate(invalid="ignore"):
            d = x.view(np.float32).astype(np.float64) - y.view(np.float32)
        d[~np.isfinite(d)] = 0.0
        yield d.reshape(part.bottom - top, columns)
