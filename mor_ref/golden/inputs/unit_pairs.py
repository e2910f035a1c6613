"""Units with y: sums that carry and cancel, and decisions exactly where metrics turn.

Some numbers are so small that their squares are lost in sums of binary64; they decide all the same.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mor_ref.exact.arithmetic import rn32
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.edges import Bits, bell
from mor_ref.golden.inputs.tensors import tensors
from mor_ref.golden.model.suite import Size
from mor_ref.metrics.squares import Sqnr
from mor_ref.operations.bits import f32_array
from mor_ref.operations.metrics import random_pairs
from mor_ref.operations.random_numbers import Draws
from mor_ref.operations.random_words import random_words

UNIT = (2, 4)  # rows and columns
_ACROSS = 3  # units of a tensor next to each other
_RANDOM, _WIDTH = 200, 9  # rows, and the numbers of each
_WIDTHS = (2, 3, 5, 17, 33)
_LONGEST = 300  # numbers of a row whose words carry
_FEWEST, _MOST = 17, 21  # lowest bits that are cleared to make y

_SIGN, _INFINITY, _NAN = 0x80000000, 0x7F800000, 0x7FC00001
_SMALLEST, _LARGEST_SUBNORMAL, _SMALLEST_NORMAL = 0x00000001, 0x007FFFFF, 0x00800000
_ONE, _ALL_ONES, _LARGEST = 0x3F800000, 0x3F7FFFFF, 0x7F7FFFFF
_NOT_LOST, _LOST = 0x7F7F7FFF, 0x7F7F8000  # bfloat16 rounds the second to infinity
_EDGES = (0, _SMALLEST, _LARGEST_SUBNORMAL, _SMALLEST_NORMAL, _ONE, _ALL_ONES, _LARGEST)
_TINY = 2.0**-70


class Pair(NamedTuple):
    """The bits of numbers and of their y, in rows and columns."""

    x: Bits
    y: Bits


Numbers = Sequence[float]
Unit = tuple[Numbers, Numbers]  # x and y, row by row; zeros follow


# ---------------------------------------------------------------------- rows that are units


def rows_of_pairs(size: Size) -> Iterator[tuple[str, Pair]]:
    """Yield rows: edges, words that carry, sums that cancel, last numbers, and random ones."""
    signed = [bits | sign for bits in _EDGES for sign in (0, _SIGN)]
    edges = np.array([*itertools.product(signed, signed)], np.uint32)
    yield "edges", Pair(edges[:, :1].copy(), edges[:, 1:].copy())
    yield "carries", _carrying()
    yield "cancelling", _cancelling()
    for width in _WIDTHS:
        yield f"last_of_{width}", _with_late_errors(size, width)
    drawn = random_pairs({}, Draws(0, _RANDOM * size.factor, size.seed, _WIDTH))
    yield "random", Pair(drawn["x"].astype(np.uint32), drawn["y"].astype(np.uint32))


def _carrying() -> Pair:
    """Return rows of equal numbers, whose squares add up to more than a word or two hold."""
    numbers = [_ALL_ONES >> 2 | bits << 23 for bits in (0, 3, 8, 14, 15)]
    filled = [[bits] * _LONGEST for bits in (*numbers, _ALL_ONES, _SMALLEST, _LARGEST)]
    x = np.array([*filled, *filled], np.uint32)
    y = x.copy()
    y[len(filled) :] |= np.uint32(_SIGN)
    y[:, ::3] = x[:, ::3] - np.uint32(1)
    return Pair(x, y)


def _cancelling() -> Pair:
    """Return rows whose products cancel: to 0, to the smallest unit, or to one below 0."""
    rows = []
    for bits in (_SMALLEST, _LARGEST_SUBNORMAL, _ONE, _ALL_ONES, _LARGEST):
        for rest in (0, _SMALLEST, _SMALLEST | _SIGN):
            x, y = [bits, bits, _SMALLEST, 0], [bits, bits | _SIGN, rest, _SIGN]
            rows += [(x, y), (y, x), (x[::-1], y[::-1])]
    x, y = np.array(rows, np.uint32).swapaxes(0, 1)
    return Pair(x.copy(), y.copy())


def _with_late_errors(size: Size, width: int) -> Pair:
    """Return rows of any magnitudes; the largest number and the largest d are the last ones."""
    rows = 6
    x = bell(rows * width, size.seed, 700 + width).reshape(rows, width).copy()
    x += (np.arange(rows, dtype=np.uint32) * np.uint32(9 << 23))[:, np.newaxis]
    x &= np.uint32(0xFDFFFFFF)
    x[:, -1] = x.max(axis=1) & np.uint32(0x7FFFFFFF) | np.uint32(0x02000000)
    y = x & np.uint32(0xFFFF0000)
    y[:, -1] = x[:, -1] >> np.uint32(1)
    return Pair(x, y)


# ---------------------------------------------------------------------- units at turning points


def turning_units(metric: str, threshold: str) -> Pair:
    """Return a tensor of units where a metric turns, and of those that every metric meets."""
    own = {
        "relative_frobenius": _near_units,
        "sqnr": _loud_units,
        "cosine": _units_along,
        "largest_by_row": _units_by_row,
    }[metric](threshold)
    units = [Pair(*(_unit(f32_array(numbers)) for numbers in unit)) for unit in own]
    units += [Pair(*(_unit(np.array(bits, np.uint32)) for bits in unit)) for unit in _any_units()]
    return _beside_each_other(units)


def _near_units(threshold: str) -> Iterator[Unit]:
    """Yield units whose error is the threshold; and some next to it, by a tiny number."""
    x, y = {"1/4": (4.0, 3.0), "0.1": (10.0, 9.0), "1": (1.0, 2.0)}[threshold]
    yield from _at_and_next_to(x, y)
    yield [1.0], [2.0**-30]  # d is rounded to 1
    yield [x * 2.0**100] * 8, [x * 2.0**100] * 7 + [y * 2.0**100]
    for k in range(8):  # one number has all of the error
        yield [x] * 8, [y * 0.5 if k == n else x for n in range(8)]


def _loud_units(threshold: str) -> Iterator[Unit]:
    """Yield units whose signal and noise have the ratio R / 2^23, and those one off."""
    ratio = Sqnr(threshold).limit_of_ratio
    for step in (-1, 0, 1):
        a, b, c, d = _four_squares(ratio + step)
        for scale in (1.0, 2.0**90, 2.0**-90):
            x = [number * scale for number in (a, b, c, d)]
            y = [number - 2048.0 * scale for number in x[:2]] + x[2:]
            yield x, y
    if threshold == "20":
        yield from _at_and_next_to(10.0, 9.0)


def _at_and_next_to(x: float, y: float) -> Iterator[Unit]:
    yield [x], [y]
    yield [x, 0.0, _TINY], [y, 0.0, _TINY]
    yield [x, 0.0, 0.0], [y, 0.0, _TINY]
    yield [x, 0.0, _TINY], [y, 0.0, -_TINY]
    yield [x] * 8, [y] * 8


def _units_along(threshold: str) -> Iterator[Unit]:
    """Yield units whose cosine is 0.96 or 1, and some next to it; and of either sign."""
    for x, y in (([3.0, 4.0], [4.0, 3.0]), ([3.0, -4.0], [6.0, -8.0])):
        yield x, y
        yield [*x, _TINY], [*y, 0.0]
        yield [*x, 0.0], [*y, _TINY]
        yield [*x, _TINY], [*y, _TINY]
        yield [*x, _TINY], [*y, -_TINY]
        yield x, [-number for number in y]
        yield [number * 2.0**80 for number in x], [number * 2.0**-90 for number in y]
    odd = [1.0 + k * 2.0**-23 for k in range(1, 9)]
    yield odd, [3.0 * number for number in (1.0, 1.25, 1.5, 1.75) * 2]
    yield [1.0 + k * 2.0**-20 for k in range(8)], [2.0 + k * 2.0**-19 for k in range(8)]
    yield [1.0, 1.0], [1.0, -1.0]
    yield [1.0, 1.0], [1.0, float(threshold) / 8]


def _units_by_row(threshold: str) -> Iterator[Unit]:
    """Yield units with a row at the threshold, which comes first or last, and next to it."""
    amax, d = {"0.125": (8.0, 1.0), "0.7": (10.0, 7.0), "1/3": (3.0, 1.0)}[threshold]
    is_fine = [64.0, 1.0, 0.0, 0.0], [63.0, 1.0, 0.0, 0.0]
    for scale in (1.0, 2.0**-140, 2.0**120):
        x, y = [amax * scale, 0.0, 0.0, 0.0], [(amax - d) * scale, 0.0, 0.0, 0.0]
        step = math.ulp(1.0) * 2.0**29 * amax * scale  # of binary32
        below = [(amax - d) * scale + step, 0.0, 0.0, 0.0]
        for own in (y, below):
            yield [*x, *is_fine[0]], [*own, *is_fine[1]]
            yield [*is_fine[0], *x], [*is_fine[1], *own]
            yield [*is_fine[0], *x[::-1]], [*is_fine[1], *own[::-1]]
    yield [*is_fine[0], 0.0, 0.0, 0.0, 0.0], [*is_fine[1], 0.0, 0.0, 0.0, 2.0**-149]
    yield [1024.0, 0.0, 0.0, 0.0, 1.0], [1020.0, 0.0, 0.0, 0.0, 0.1]
    yield [1.0], [1.0 - rn32(Fraction(threshold))]  # the threshold in binary32, which may be less


def _any_units() -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield bits of units of zeros, of subnormal and huge numbers, and with lost elements."""
    yield [0], [0]
    yield [0, _SIGN], [_SIGN, 0]
    yield [0], [_SMALLEST]
    yield [_SMALLEST], [0]
    yield [_SMALLEST], [_SMALLEST | _SIGN]
    yield [_SMALLEST, _ONE], [0, _ONE]
    yield [_LARGEST_SUBNORMAL] * 8, [_LARGEST_SUBNORMAL >> 1] * 8
    yield [_SMALLEST_NORMAL], [_LARGEST_SUBNORMAL]
    yield [_NOT_LOST] * 8, [_NOT_LOST] * 8
    yield [_NOT_LOST] * 8, [_NOT_LOST - 1] * 8
    yield [_NOT_LOST] * 7, [_NOT_LOST] * 6 + [_NOT_LOST | _SIGN]  # d is infinite
    yield [0x7F000000] * 6, [0x7F000000] * 5 + [0x7F000001]
    yield [_LOST], [_LOST]
    yield [_LARGEST, _ONE], [_NOT_LOST, _ONE]
    for special in (_NAN, _INFINITY, _INFINITY | _SIGN):
        for x, y in ((special, special), (special, _ONE), (_ONE, special)):
            yield [_ONE] * 7 + [x], [_ONE] * 7 + [y]
    yield [_ALL_ONES] * 8, [_ALL_ONES - (k << 14) for k in range(8)]


def _unit(bits: Bits) -> Bits:
    """Return a unit of these numbers, row by row, filled up with zeros."""
    filled = np.zeros(UNIT, np.uint32)
    filled.reshape(-1)[: bits.size] = bits
    return filled


def _beside_each_other(units: Sequence[Pair]) -> Pair:
    """Return a tensor of units, the last of which are zeros."""
    rows, columns = UNIT
    down = -(-len(units) // _ACROSS)
    x, y = (np.zeros((down, rows, _ACROSS, columns), np.uint32) for _ in range(2))
    for k, unit in enumerate(units):
        place = k // _ACROSS, slice(None), k % _ACROSS
        x[place], y[place] = unit
    shape = down * rows, _ACROSS * columns
    return Pair(x.reshape(shape), y.reshape(shape))


def _four_squares(number: int) -> tuple[int, ...]:
    """Return four integers, the largest first, whose squares add up to a number.

    >>> _four_squares(103)
    (10, 1, 1, 1)
    """
    if number % 8 == 0:  # all of them are even
        return tuple(2 * root for root in _four_squares(number // 4))
    for first in range(math.isqrt(number), 0, -1):
        rest = number - first * first
        for second in range(math.isqrt(rest), -1, -1):
            for third in range(math.isqrt(rest - second * second), -1, -1):
                fourth = math.isqrt(last := rest - second * second - third * third)
                if fourth * fourth == last:
                    return first, second, third, fourth
    raise ValueError(f"number is {number}; give one above 0")


# ---------------------------------------------------------------------- tensors


def tensors_of_pairs(size: Size) -> Iterator[tuple[str, Pair]]:
    """Yield the usual tensors in binary32, whose y loses more in some places than in others."""
    for tensor in tensors(size):
        if tensor.source == "f32":
            yield tensor.name, _cleared(tensor.x.astype(np.uint32), size)


def tensors_beyond_tiles(size: Size) -> Iterator[tuple[str, Pair]]:
    """Yield tensors whose last number, which is the largest, has the error of the unit."""
    for tensor in beyond_tiles(size):
        x = tensor.x.astype(np.uint32) << np.uint32(16)
        y = x.copy()
        y[-1, -1] = 0
        yield tensor.name.replace(tensor.source, "f32"), Pair(x, y)


def _cleared(x: Bits, size: Size) -> Pair:
    """Return y with 17 to 20 of the lowest bits cleared; NaN and infinities stay what they are."""
    words = random_words(x.size, size.seed, 720).reshape(x.shape)
    bits = np.uint32(_FEWEST) + (words % np.uint64(_MOST - _FEWEST)).astype(np.uint32)
    y = x >> bits << bits
    return Pair(x, np.where(x & np.uint32(0x7FFFFFFF) > np.uint32(_INFINITY), x, y))
