"""The chapter on mixtures of formats: squared errors of units, in integers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.blocks import Gathered, Part, Sides, for_each_part, row_bounds, words_of
from mor_ref.engine.intrinsics import double_of, float_of, leading_zeros, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP, segment
from mor_ref.engine.unrounded_y import Fill
from mor_ref.engine.widening import widen
from mor_ref.schemes.mixed.definition import FRACTION_BITS, LARGEST_ERROR

_U = np.uint32
_W = np.uint64
_F = np.float32
_D = np.float64
_I = np.int32
_MAGNITUDE = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_LARGEST = _D(LARGEST_ERROR)
_TO_INTEGER = _D(2.0**52)  # its unit is 1
_BIAS_OF_DOUBLE = 1023
_LOW = _W(0xFFFFFFFF)
_WORD = 32
_PART, _ROOM = 1 << 18, 1 << 20  # elements of a part, and of 16 rows of the widest one


@step
def factor_of(amax):
    """MFQ-002: 2^(20 - e), given the bits of amax; 0 if amax is 0."""
    if amax == _U(0):
        return _D(0)
    field = _I(amax >> _U(23))
    exponent = _I(field - _I(127)) if field else _I(_I(-118) - _I(leading_zeros(amax)))
    field_of_factor = _I(_I(_BIAS_OF_DOUBLE + FRACTION_BITS) - exponent)
    return double_of(_W(field_of_factor) << _W(52))


@step
def squared_row(x, y, factor):
    """MFQ-002 and MFQ-003: the sum of u^2 over a row of at most 2048 numbers of a unit."""
    use_full_vectors()
    total = _W(0)
    for i in range(x.size):
        bits = _U(widen(x[i], _U))
        d = _F(abs(_F(float_of(bits) - float_of(_U(y[i])))))
        scaled = _D(d) * factor
        scaled = min(_LARGEST, scaled)  # also if d is NaN
        counts = _U(bits & _MAGNITUDE) < _INFINITY and factor > _D(0)
        scaled = scaled if counts else _D(0)
        u = _W(_U(_I(_D(scaled + _TO_INTEGER) - _TO_INTEGER)))
        total += u * u
    return total


@kernel
def square_candidate(x, place, y, part, bounds, unit, amax, errors):
    """MFQ-003: add the squared errors of the units of a part; `y` is the part's."""
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        for k in range(bounds.size - 1):
            unit_row = bounds[k] // unit.rows
            for column in range(left // unit.columns, (right - 1) // unit.columns + 1):
                first, last = segment(column, unit, left, right)
                factor = factor_of(_U(amax[unit_row, column]))
                entry = errors[unit_row - part.top // unit.rows, column - part.left // unit.columns]
                for row in range(bounds[k], bounds[k + 1]):
                    start = (row - place.top) * place.stride + left - place.left
                    at = (row - part.top) * (part.right - part.left) + left - part.left
                    numbers, values = x[start + first : start + last], y[at + first : at + last]
                    total = squared_row(numbers, values, factor)
                    entry[0] += total & _LOW
                    entry[1] += total >> _W(32)


def squared_errors(
    numbers: Numbers, units: Partition, amax: NDArray[np.uint32], fill: Fill, threads: int | None
) -> NDArray[np.uint64]:
    """Return the squared error of each unit (MFQ-003); `fill` writes y of a part.

    Along the last axis are sums of the lower 32 bits, and of those above.
    """
    errors = Gathered(units, np.uint64, 0, np.add, 2)
    unit = Sides(*units.block)

    rooms: list[NDArray[np.uint32]] = []  # each for a thread: fresh memory takes longer than sums

    def square_one(part: Part) -> None:
        room = rooms.pop() if rooms else np.empty(_ROOM, _U)
        y = room[: (part.bottom - part.top) * (part.right - part.left)]
        fill(part, y)
        words = words_of(numbers, units.columns, part)
        bounds, errors_of_part = row_bounds(part, unit.rows), errors.room_for(part)
        square_candidate(*words, y, part, bounds, unit, amax, errors_of_part)
        errors.add(part, errors_of_part)
        rooms.append(room)

    for_each_part(square_one, units.rows, units.columns, threads, _PART)
    return errors.blocks


def write_values(units: Partition, fills: list[Fill], y: Bits, threads: int | None) -> None:
    """Write y or codes of the units of each candidate (MFQ-006); each fill has its own units."""
    rows = y.reshape(units.rows, units.columns)

    def write_one(part: Part) -> None:
        place = rows[part.top : part.bottom, part.left : part.right]
        is_whole = place.flags.c_contiguous
        room = place.reshape(-1) if is_whole else np.empty(place.size, y.dtype)
        for fill in fills:
            fill(part, room)
        if not is_whole:
            place[:] = room.reshape(place.shape)

    for_each_part(write_one, units.rows, units.columns, threads)


def joined(sums: NDArray[np.uint64]) -> NDArray[Any]:
    """Return squared errors of 64 bits, or as Python's integers if one is longer (MFQ-003)."""
    low, high = sums[..., 0], sums[..., 1]
    upper = high + (low >> np.uint64(_WORD))
    if not upper.size or int(upper.max()) >> _WORD == 0:
        joined: NDArray[Any] = low + (high << np.uint64(_WORD))
        return joined
    longer: NDArray[Any] = low.astype(object) + high.astype(object) * (1 << _WORD)
    return longer


def least(errors: list[NDArray[Any]]) -> NDArray[np.uint8]:
    """Return the first candidate of the least squared error of each unit (MFQ-004)."""
    smallest, choice = errors[0], np.zeros(errors[0].shape, np.uint8)
    for index, candidate_errors in enumerate(errors[1:], 1):
        is_less = candidate_errors < smallest
        choice[is_less] = index
        smallest = np.where(is_less, candidate_errors, smallest)
    return choice
