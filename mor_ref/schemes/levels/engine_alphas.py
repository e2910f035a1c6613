"""The first alphas of rows of weights."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.engine.blocks import binary32_words
from mor_ref.engine.intrinsics import (
    bits_of,
    float_of,
    leading_zeros,
    shift_left,
    shift_right,
    use_full_vectors,
)
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.widening import widen
from mor_ref.schemes.levels.definition import LevelKind

_U = np.uint32
_W = np.uint64
_F = np.float32
_NAN = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_UNKNOWN = _U(0xFFFFFFFF)  # the bits of no mean
_DEPTH = _U(20)  # binades below the largest that a sum of 64 bits has room for
_WIDEST = 1 << 20  # numbers that it has room for


@step
def rounded(x, narrow):
    """LVL-001: a binary32 number, rounded to bfloat16 if the arithmetic is narrow."""
    if narrow is None:
        result = x
    else:
        word = bits_of(x)
        odd = _U(_U(word >> _U(16)) & _U(1))
        near = float_of(_U(_U(_U(word + _U(0x7FFF)) + odd) & _U(0xFFFF0000)))
        result = x if x != x else near
    return result


@step
def stored(x):
    """ART-003: the bits of a number; every NaN is the same."""
    return _NAN if x != x else bits_of(x)


@kernel
def rounded_array(words, out):
    """LVL-001: binary32 numbers as bfloat16 has them."""
    for i in range(words.size):
        out[i] = stored(rounded(float_of(words[i]), True))


@step
def largest_magnitude(words):
    """LVL-002: the largest magnitude, as bits; NaN is above all."""
    use_full_vectors()
    largest = _U(0)
    for i in range(words.size):
        largest = max(largest, _U(widen(words[i], _U) & _U(0x7FFFFFFF)))
    return largest


@kernel
def largest_of_rows(words, columns, divisor, narrow, out):
    """LVL-002: the largest magnitude of each row, divided; NaN if a number is."""
    for row in range(out.size):
        largest = largest_magnitude(words[row * columns : (row + 1) * columns])
        out[row] = stored(rounded(_F(float_of(largest) / divisor), narrow))


@step
def sum_of_magnitudes(words, lowest):
    """LVL-002: the sum of magnitudes in units of a field, and the numbers that are below that."""
    use_full_vectors()
    total, below = _W(0), _W(0)
    for i in range(words.size):
        word = _U(widen(words[i], _U))
        field = _U(_U(word >> _U(23)) & _U(0xFF))
        significand = _W(_U(_U(word & _U(0x7FFFFF)) | _U(0x800000)))
        is_there = field >= lowest
        shifted = shift_left(significand, _W(_U(field - lowest) & _U(31)))
        total += shifted if is_there else _W(0)
        below += _W(0) if is_there or _U(word << _U(1)) == _U(0) else _W(1)
    return total, below


@step
def quotient(total, count, lowest):
    """LVL-002: the bits of total / count in units of a field, rounded once; it has 24 bits."""
    whole = _W(total // count)
    up = _W(_W(40) - leading_zeros(whole))
    kept = shift_right(whole, up)
    twice = _W(_W(total - _W(shift_left(kept, up) * count)) << _W(1))
    half = shift_left(count, up)
    goes_up = twice > half or (twice == half and _W(kept & _W(1)) == _W(1))
    return _U(_U(_U(_U(lowest - _U(1)) + _U(up)) << _U(23)) + _U(_W(kept + _W(goes_up))))


@kernel
def means_of_rows(words, columns, out):
    """LVL-002: the mean magnitude of each row that a sum of 64 bits has room for."""
    for row in range(out.size):
        numbers = words[row * columns : (row + 1) * columns]
        largest = _U(largest_magnitude(numbers) >> _U(23))
        lowest = _U(largest - _DEPTH)
        out[row] = _UNKNOWN
        if _DEPTH < largest < _U(0xFF) and columns <= _WIDEST:
            total, below = sum_of_magnitudes(numbers, lowest)
            if below == _W(0):
                out[row] = quotient(total, _W(columns), lowest)


def words_of(numbers: Numbers, arithmetic: str) -> Bits:
    """Return numbers as the arithmetic has them (LVL-001): bfloat16 as it is, others as binary32.

    Any number of bfloat16 is one of both arithmetics, and widening it takes a pass over the tensor.
    """
    return numbers.bits if numbers.is_bf16 else in_arithmetic(binary32_words(numbers), arithmetic)


def in_arithmetic(words: NDArray[np.uint32], arithmetic: str) -> NDArray[np.uint32]:
    """Return binary32 numbers as the arithmetic has them (LVL-001)."""
    if arithmetic == "f32":
        return words
    out = np.empty(words.size, _U)
    rounded_array(words, out)
    return out


def first_alphas(
    words: Bits, sides: tuple[int, int], kind: LevelKind, arithmetic: str
) -> NDArray[np.uint32]:
    """Return alpha of each row for which none is given (LVL-002)."""
    rows, columns = sides
    out = np.full(rows, _NAN, _U)
    if columns == 0:
        return out
    if kind.divisor:
        narrow = True if arithmetic == "bf16" else None
        largest_of_rows(words, columns, _F(kind.divisor), narrow, out)
        return out
    means_of_rows(words, columns, out)
    for row in np.flatnonzero(out == _UNKNOWN):
        numbers = words[row * columns : (row + 1) * columns].astype(_U)
        if words.dtype == np.uint16:
            numbers <<= _U(16)
        out[row] = _mean(numbers & _U(0x7FFFFFFF))
    return in_arithmetic(out, arithmetic)


def _mean(magnitudes: NDArray[np.uint32]) -> int:
    """Return the bits of the mean of magnitudes: the exact one, rounded once."""
    largest = int(magnitudes.max())
    if largest >= _INFINITY:
        return int(_NAN) if largest > _INFINITY else int(_INFINITY)
    field = (magnitudes >> _U(23)).astype(np.int64)
    significand = (magnitudes & _U(0x7FFFFF)).astype(np.int64) | (field > 0).astype(np.int64) << 23
    sums = np.zeros(255, np.int64)
    np.add.at(sums, np.maximum(field, 1), significand)
    exact = sum(int(part) << (e - 1) for e, part in enumerate(sums.tolist()) if part)
    mean = Fraction(exact, magnitudes.size)
    up = max(int(mean).bit_length() - 24, 0)
    whole = round(mean / (1 << up))
    return whole + (up << 23)  # the hidden bit adds one to the exponent
