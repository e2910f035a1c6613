"""Steps that all sums of dot products share: powers of two, rounding, and fused operations."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import ROUNDED_ONCE, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.engine.intrinsics import (
    bits_of,
    bits_of_double,
    double_of,
    float_of,
    leading_zeros,
    shift_left,
    shift_right,
)
from mor_ref.engine.kernel import step

_F = np.float32
_D = np.float64
_I = np.int64
_U = np.uint64
_W = np.uint32
_NAN = _W(0x7FFFFFFF)


class Result(NamedTuple):
    """The format of c, and how a sum is rounded to it (DOT-010)."""

    kept_bits: int
    smallest_exponent: int
    largest: float
    is_nearest: bool


class Pairs(NamedTuple):
    """The pairs of some rows of a and of b: the nth with the nth, or each with each.

    Results of each with each lie in rows of so many columns.
    """

    first_a: int
    last_a: int
    first_b: int
    last_b: int
    columns: int  # 0 for the nth with the nth


class Chunks(NamedTuple):
    """The fields of chunks, (n, chunks); without columns if nobody asks for them."""

    exponent: NDArray[np.int32]
    cut_sum: NDArray[np.int64]
    c: NDArray[np.float32]


def result_of(profile: DotProfile) -> Result:
    """Return the row of the result of a profile."""
    fmt = formats[profile.result]
    is_cut = profile.result == "f32" and profile.family in ROUNDED_ONCE
    return Result(
        profile.result_bits,
        fmt.smallest_exponent,
        float(fmt.largest),
        not is_cut,
    )


@step
def pair_count(pairs):
    """Return how many pairs there are."""
    rows = pairs.last_a - pairs.first_a
    return rows if pairs.columns == 0 else rows * (pairs.last_b - pairs.first_b)


@step
def rows_of_pair(n, pairs):
    """Return the rows of a pair, among those of the kernel, and the place of its result."""
    if pairs.columns == 0:
        return n, n, pairs.first_a + n
    i, j = n // (pairs.last_b - pairs.first_b), n % (pairs.last_b - pairs.first_b)
    return i, j, (pairs.first_a + i) * pairs.columns + pairs.first_b + j


@step
def block_of(rows, k):
    """DOT-006: the block of element k; zeros behind the end have the last one, whose scale is 1."""
    return min(k // rows.block, rows.scale.shape[1] - 1)


@step
def power_of_two(exponent):
    """Return 2^exponent, an exponent of normal binary64 numbers."""
    return double_of(_U(_U(exponent + _I(1023)) << _U(52)))


@step
def floor_log2(magnitude):
    """Return the exponent of the highest bit of a positive integer."""
    return _I(_I(63) - _I(leading_zeros(_U(magnitude))))


@step
def exponent_of_c(c, smallest):
    """DOT-004: the exponent of c."""
    field = _I(_W(bits_of(c) >> _W(23)) & _W(255))
    return max(_I(field - _I(127)), smallest)


@step
def is_finite(c):
    """Return whether a binary32 number is neither infinite nor NaN."""
    return _W(bits_of(c) & _W(0x7F800000)) != _W(0x7F800000)


@step
def canonical_c(c):
    """DOT-008: a number, or the one NaN."""
    return c if c == c else float_of(_NAN)


@step
def rounded_sum(whole, unit, result):
    """DOT-010 and DOT-017: whole * 2^unit in the format of the result; a zero has its sign."""
    if whole == _I(0):
        return _F(0)
    magnitude = _U(abs(whole))
    exponent = max(_I(floor_log2(magnitude) + unit), result.smallest_exponent)
    drop = _I(_I(exponent - result.kept_bits) - unit)
    if drop > _I(0):
        below = shift_right(magnitude, _U(drop)) if drop < _I(64) else _U(0)
        if result.is_nearest and drop <= _I(64):
            half = shift_left(_U(1), _U(drop - _I(1)))
            last = shift_left(half, _U(1)) if drop < _I(64) else _U(0)
            rest = _U(magnitude & _U(last - _U(1)))
            below = _U(below + _U((rest > half) | ((rest == half) & ((below & _U(1)) != _U(0)))))
        magnitude, unit = below, _I(unit + drop)
    value = _D(_I(magnitude)) * power_of_two(unit)
    if value > result.largest:
        value = _D(np.inf)
    return _F(-value) if whole < _I(0) else _F(value)


@step
def rounded_to_odd(product, c):
    """Return product + c, binary64 numbers, with an odd last bit if it is not exact."""
    total = _D(product + c)
    part = _D(total - product)
    rest = _D(_D(product - _D(total - part)) + _D(c - part))
    bits = bits_of_double(total)
    if not (rest < _D(0) or rest > _D(0)) or (bits & _U(1)) != _U(0):
        return total
    is_below = (rest > _D(0)) == (total > _D(0))  # the exact sum is farther from 0
    return double_of(_U(bits + _U(1)) if is_below else _U(bits - _U(1)))


@step
def fused(product, c):
    """DOT-013: RN32(product + c) of an exact product in binary64 and a binary32 c."""
    return _F(rounded_to_odd(product, _D(c)))


@step
def keep(chunks, n, chunk, exponent, cut_sum, c):
    """DOT-003: the fields of a chunk, if they are asked for."""
    if chunks.c.shape[1] != 0:
        chunks.exponent[n, chunk] = exponent
        chunks.cut_sum[n, chunk] = cut_sum
        chunks.c[n, chunk] = c
