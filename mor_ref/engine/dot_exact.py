"""Dot products as exact sums, rounded once.

An accumulator is a row of 64-bit words that are 32 bits apart: a word has room for 2^31 numbers
before a carry is needed. Products of narrow formats are summed in one word first.
"""

from typing import NamedTuple

import numpy as np

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.engine.dot_operands import Range, rows_of_pairs, top_of, unit_of
from mor_ref.engine.dot_rounding import (
    Result,
    block_of,
    canonical_c,
    is_finite,
    keep,
    pair_count,
    power_of_two,
    result_of,
    rounded_sum,
    rows_of_pair,
)
from mor_ref.engine.intrinsics import bits_of_double, double_of, shift_left, shift_right
from mor_ref.engine.kernel import kernel, step

_F = np.float32
_D = np.float64
_I = np.int64
_U = np.uint64
_LOW = _U(0xFFFFFFFF)
_HIGH_HALF = _U(0xFFFFFFFFF8000000)  # the sign, the exponent and the upper 25 bits behind a one
_DIGIT_BITS = 24
_DIGIT = (1 << _DIGIT_BITS) - 1
_WORD_BITS = 61
_SHORTEST_RUN = 4  # as a power of two
_FRACTION = 52  # bits of a binary64
_UNIT_OF_C, _TOP_OF_C = -149, 128
_HEADROOM = 40  # bits above the largest product: for 2^40 of them


class Accumulator(NamedTuple):
    """The range of an accumulator: word 0 is in units of 2^lowest."""

    words: int
    lowest: int
    first_field: int  # the exponent field whose last fraction bit is the unit
    run: int  # the number of products that are summed in one word; 0 if none is
    unit: int  # of a sum in one word
    splits: bool  # whether a product has more bits than a binary64
    result: Result


def accumulator_for(
    a: Format, b: Format, profile: DotProfile, scales_a: Range, scales_b: Range
) -> Accumulator:
    """Return the range that the products of two operands and c need."""
    scales = Range(*(of_a + of_b for of_a, of_b in zip(scales_a, scales_b, strict=True)))
    unit, top = unit_of(a) + unit_of(b), top_of(a) + top_of(b)
    bottom = min(unit + scales.unit, _UNIT_OF_C)
    lowest = bottom - _FRACTION
    highest = max(top + scales.top, _TOP_OF_C) + _HEADROOM
    room = _WORD_BITS - (top - unit)
    bits = a.mantissa_bits + b.mantissa_bits + 2 + scales.bits
    return Accumulator(
        (highest - lowest) // 32 + 3,
        lowest,
        bottom + 1023,
        1 << min(room, 30) if room >= _SHORTEST_RUN else 0,
        unit,
        bits > _FRACTION + 1,
        result_of(profile),
    )


@step
def add(words, x, first_field):
    """DOT-012: add a finite binary64 number."""
    bits = bits_of_double(x)
    field = _I(shift_right(bits, _U(52)) & _U(0x7FF))
    if field == _I(0):
        return
    significand = _U(_U(bits & _U(0xFFFFFFFFFFFFF)) | _U(1 << 52))
    place = _I(field - first_field)
    word, shift = place >> _I(5), _U(place & _I(31))
    low = shift_left(significand, shift)
    high = _I(shift_right(shift_right(significand, _U(1)), _U(_U(63) - shift)))
    first, second = _I(low & _LOW), _I(shift_right(low, _U(32)))
    if shift_right(bits, _U(63)) != _U(0):
        first, second, high = _I(-first), _I(-second), _I(-high)
    words[word] += first
    words[word + 1] += second
    words[word + 2] += high


@step
def add_product(words, x, y, first_field):
    """DOT-012: add x * y of numbers of at most 52 bits, exactly."""
    x_high, y_high = (
        double_of(_U(bits_of_double(x) & _HIGH_HALF)),
        double_of(_U(bits_of_double(y) & _HIGH_HALF)),
    )
    x_low, y_low = _D(x - x_high), _D(y - y_high)
    add(words, _D(x_high * y_high), first_field)
    add(words, _D(x_high * y_low), first_field)
    add(words, _D(x_low * y_high), first_field)
    add(words, _D(x_low * y_low), first_field)


@step
def carried(words):
    """DOT-012: carry until each word but the last is of 32 bits; return the sign."""
    carry = _I(0)
    for w in range(words.size):
        word = _I(words[w] + carry)
        words[w] = _I(word & _I(0xFFFFFFFF))
        carry = word >> _I(32)
    if carry >= _I(0):
        return False
    carry = _I(1)
    for w in range(words.size):
        word = _I(_I(words[w] ^ _I(0xFFFFFFFF)) + carry)
        words[w] = _I(word & _I(0xFFFFFFFF))
        carry = word >> _I(32)
    return True


@step
def rounded_words(words, accumulator):
    """DOT-012: the sum in binary32, to nearest, ties to even; a sum of 0 is +0."""
    negative = carried(words)
    top = words.size - 1
    while top > 0 and words[top] == _I(0):
        top -= 1
    # 63 bits are enough: the last one collects all that are below.
    below = words[top - 1] if top > 0 else _I(0)
    whole = _I(_I(words[top] << _I(30)) | _I(below >> _I(2)))
    is_cut = (below & _I(3)) != _I(0)
    for w in range(top - 1):
        is_cut = is_cut or words[w] != _I(0)
    whole = _I(whole | _I(is_cut))
    unit = _I(accumulator.lowest + _I(32 * top - 30))
    return rounded_sum(_I(-whole) if negative else whole, unit, accumulator.result)


@step
def run_total(value_a, value_b, units):
    """DOT-012: the sum of products in units of the smallest one, which one word holds."""
    total = _I(0)
    for k in range(value_a.size):
        total += _I(_D(_D(value_a[k] * value_b[k]) * units))
    return total


@step
def add_run(words, total, unit, scale_a, scale_b, first_field):
    """DOT-012: add total * 2^unit * scale_a * scale_b, of scales of at most 28 bits."""
    sign = _D(-1) if total < _I(0) else _D(1)
    rest = abs(total)
    while rest != _I(0):
        digit = _D(sign * _D(_I(rest & _I(_DIGIT))))
        scaled = _D(_D(digit * power_of_two(unit)) * scale_a)
        add_product(words, scaled, scale_b, first_field)
        rest, unit = rest >> _I(_DIGIT_BITS), _I(unit + _I(_DIGIT_BITS))


@step
def scale_at(rows, i, k):
    """DOT-006: the scale of element k of a row."""
    return rows.scale[i, block_of(rows, k)]


@step
def scaled_special_total(a, b, i, j, chunk, c):
    """DOT-008: the sum of the terms that are infinite or NaN, in binary64."""
    total = _D(0) if is_finite(c) else _D(c)
    for k in range(a.value.shape[2]):
        scaled_a = _D(a.value[i, chunk, k] * scale_at(a, i, k))
        term = _D(scaled_a * _D(b.value[j, chunk, k] * scale_at(b, j, k)))
        if not np.isfinite(term):
            total += term
    return canonical_c(_F(total))


@step
def add_runs(words, a, b, i, j, accumulator):
    """DOT-012: add the products of rows, in runs that one word holds."""
    start, columns, units = 0, a.value.shape[2], power_of_two(_I(-accumulator.unit))
    while start < columns:
        end_a, end_b = start // a.block * a.block + a.block, start // b.block * b.block + b.block
        end = min(end_a, end_b, start + accumulator.run, columns)
        total = run_total(a.value[i, 0, start:end], b.value[j, 0, start:end], units)
        scales = scale_at(a, i, start), scale_at(b, j, start)
        add_run(words, total, accumulator.unit, scales[0], scales[1], accumulator.first_field)
        start = end


@step
def add_products(words, a, b, i, j, chunk, accumulator):
    """DOT-012 and DOT-015: add products one by one; only a row of one chunk has scales."""
    for k in range(a.value.shape[2]):
        x = _D(a.value[i, chunk, k] * scale_at(a, i, k))
        y = _D(b.value[j, chunk, k] * scale_at(b, j, k))
        if accumulator.splits:
            add_product(words, x, y, accumulator.first_field)
        else:
            add(words, _D(x * y), accumulator.first_field)


@kernel
def exact(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, accumulator):
    """DOT-012 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    words = np.empty(accumulator.words, _I)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        if a.special[i, 0] or b.special[j, 0] or not is_finite(c[at]):
            c[at] = scaled_special_total(a, b, i, j, 0, c[at])
        else:
            words[:] = 0
            add(words, _D(c[at]), accumulator.first_field)
            if accumulator.run != 0:
                add_runs(words, a, b, i, j, accumulator)
            else:
                add_products(words, a, b, i, j, 0, accumulator)
            c[at] = rounded_words(words, accumulator)
        keep(chunks, at, 0, 0, 0, c[at])


@kernel
def e_fdpa(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, accumulator):
    """DOT-015 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    words = np.empty(accumulator.words, _I)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total = c[at]
        for chunk in range(a.special.shape[1]):
            if a.special[i, chunk] or b.special[j, chunk] or not is_finite(total):
                total = scaled_special_total(a, b, i, j, chunk, total)
            else:
                words[:] = 0
                add(words, _D(total), accumulator.first_field)
                add_products(words, a, b, i, j, chunk, accumulator)
                total = rounded_words(words, accumulator)
            keep(chunks, at, chunk, 0, 0, total)
        c[at] = canonical_c(total)
