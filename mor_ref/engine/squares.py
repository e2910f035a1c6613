"""Squared errors, the largest error and flushed numbers.

Squares are summed as integers, by the exponent of d: in any order, the sums are the same.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.blocks import Part, for_each_part, row_bounds, words_of
from mor_ref.engine.errors import add_errors, counted, error_terms
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP
from mor_ref.engine.unrounded_y import Fill
from mor_ref.engine.widening import widen

_U = np.uint32
_W = np.uint64
_MAGNITUDE = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_FRACTION = _U(0x007FFFFF)
_LOW = _W(0xFFFFFFFF)
_EXPONENTS = 256
# Rows of a strip until sums are carried: 2^16 squares of 24 bits fit 64 bits.
_ROWS = 32
_TALLEST = 256  # rows whose sums of u fit 32 bits
_COUNTS = 6  # sum, nonzero, nonfinite, flushed, measured, and the bits of the largest error


class Sums(NamedTuple):
    """Integers of pairs of x and y; `squares` is the sum of d^2 in units of 2^-298.

    `largest` are the bits of the largest d.
    """

    sum: int
    nonzero: int
    nonfinite: int
    flushed: int
    measured: int
    largest: int
    squares: int


@step
def differ_in_row(x, y, sums, counts, flushed, d):
    """ERR-001 to ERR-003, ERR-007: for one row of a strip; writes the bits of each |d|."""
    use_full_vectors()
    for i in range(x.size):
        bits, y_magnitude = _U(widen(x[i], _U)), _U(y[i] & _MAGNITUDE)
        magnitude = _U(bits & _MAGNITUDE)
        distance, _, u = error_terms(float_of(bits), float_of(_U(y[i])))
        u, count = counted(magnitude, u, y_magnitude)
        sums[i] = _U(sums[i] + u)
        counts[i] = _U(counts[i] + count)
        flushed[i] = _U(flushed[i] + _U(_U(count & _U(1)) & _U(y_magnitude == _U(0))))
        d[i] = bits_of(distance)  # not finite if x is not


@step
def square_row(d, squares, counts):
    """ERR-006: add the squares of one row of a strip, by their exponent."""
    measured, largest = _W(0), counts[5]
    for i in range(d.size):
        if d[i] < _INFINITY:
            field = d[i] >> _U(23)
            significand = _W(d[i] & _FRACTION) + _W(_W(min(field, 1)) << _W(23))
            squares[field] += significand * significand
            measured += _W(1)
            largest = max(largest, _W(d[i]))
    counts[4] += measured
    counts[5] = largest


@step
def carry(squares, low, high):
    """ERR-006: move sums of squares to where they cannot overflow."""
    for field in range(_EXPONENTS):
        low[field] += squares[field] & _LOW
        high[field] += squares[field] >> _W(32)
        squares[field] = _W(0)


@kernel
def square_part(x, place, y, part, bounds, totals, low, high):
    """Add the sums of a part; `y` is the part's."""
    sums, counts = np.empty(STRIP, _U), np.empty(STRIP, _U)
    flushed, d = np.empty(STRIP, _U), np.empty(STRIP, _U)
    squares = np.zeros(_EXPONENTS, _W)
    for left in range(part.left, part.right, STRIP):
        width = min(left + STRIP, part.right) - left
        for piece in range(bounds.size - 1):
            sums[:width] = 0
            counts[:width] = 0
            flushed[:width] = 0
            for row in range(bounds[piece], bounds[piece + 1]):
                start = (row - place.top) * place.stride + left - place.left
                at = (row - part.top) * (part.right - part.left) + left - part.left
                numbers, values = x[start : start + width], y[at : at + width]
                differ_in_row(numbers, values, sums, counts, flushed, d)
                square_row(d[:width], squares, totals)
                if row % _ROWS == _ROWS - 1:
                    carry(squares, low, high)
            carry(squares, low, high)
            add_errors(sums[:width], counts[:width], totals)
            for i in range(width):
                totals[3] += _W(flushed[i])


def measure(
    numbers: Numbers, partition: Partition, fills: Sequence[Fill], threads: int | None
) -> Sums:
    """Return the sums of a tensor; each of `fills` writes its share of y, which else is 0."""
    parts: list[Sums] = []

    def measure_one(part: Part) -> None:
        y = np.zeros((part.bottom - part.top) * (part.right - part.left), _U)
        for fill in fills:
            fill(part, y)
        counts = np.zeros(_COUNTS, _W)
        low, high = np.zeros(_EXPONENTS, _W), np.zeros(_EXPONENTS, _W)
        words = words_of(numbers, partition.columns, part)
        square_part(*words, y, part, row_bounds(part, _TALLEST), counts, low, high)
        parts.append(Sums._make([*counts.tolist(), _total(low, high)]))

    for_each_part(measure_one, partition.rows, partition.columns, threads)
    return _added(parts)


def _total(low: NDArray[np.uint64], high: NDArray[np.uint64]) -> int:
    """Return a sum of squares in units of 2^-298 (ERR-006)."""
    sums = ((e, int(low[e]) + (int(high[e]) << 32)) for e in range(_EXPONENTS))
    return sum(total << 2 * (max(e, 1) - 1) for e, total in sums if total)


def _added(parts: list[Sums]) -> Sums:
    largest = max((part.largest for part in parts), default=0)
    added = {name: sum(getattr(part, name) for part in parts) for name in Sums._fields}
    return Sums(**added)._replace(largest=largest)
