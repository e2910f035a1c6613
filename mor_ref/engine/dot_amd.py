"""Dot products as matrix cores of CDNA 3 add them up."""

import numpy as np

from mor_ref.definitions.dot import RIGHT_BITS
from mor_ref.engine.dot_nvidia import special_total
from mor_ref.engine.dot_operands import rows_of_pairs
from mor_ref.engine.dot_rounding import (
    canonical_c,
    exponent_of_c,
    floor_log2,
    is_finite,
    keep,
    pair_count,
    power_of_two,
    rounded_sum,
    rows_of_pair,
)
from mor_ref.engine.kernel import kernel, step

_F = np.float32
_D = np.float64
_I = np.int64
_NONE = _I(-(1 << 14))  # below the exponent of every product
_BEYOND = _D(2.0**128)


@step
def floored(whole, shift):
    """DOT-017: whole * 2^shift, rounded down."""
    if shift >= _I(0):
        return _I(whole << shift)
    return _I(whole >> min(_I(-shift), _I(63)))


@step
def cut_products(value_a, value_b, exponent_a, exponent_b, first, step, fraction_bits):
    """DOT-017: the cut sum of products and their largest exponent, `_NONE` without one."""
    exponent = _NONE
    for k in range(first, value_a.size, step):
        exponent = max(exponent, _I(exponent_a[k]) + _I(exponent_b[k]))
    if exponent < _NONE // _I(2):
        return _I(0), _NONE
    scale = power_of_two(_I(fraction_bits - exponent))
    whole = _I(0)
    for k in range(first, value_a.size, step):
        whole += _I(_D(_D(value_a[k] * value_b[k]) * scale))
    return whole, exponent


@step
def nearest(whole, unit, result):
    """DOT-017: a sum, rounded down to 32 bits, and then to binary32."""
    if whole == _I(0):
        return _F(0)
    exponent = max(_I(floor_log2(abs(whole)) + unit), result.smallest_exponent)
    drop = _I(_I(exponent - _I(RIGHT_BITS - 1)) - unit)
    if drop > _I(0):
        whole, unit = floored(whole, -drop), _I(unit + drop)
    return rounded_sum(whole, unit, result)


@step
def joined(whole, exponent, c, rule, is_grouped):
    """DOT-017 and DOT-018: the fields of a chunk with a sum of products."""
    c_exponent = exponent_of_c(c, rule.result.smallest_exponent)
    largest = max(exponent, c_exponent)
    unit = _I(largest - _I(RIGHT_BITS))
    cut_sum = _I(0)
    if exponent != _NONE:
        cut_sum = floored(whole, _I(_I(exponent - rule.fraction_bits) - unit))
    if not (is_grouped and c_exponent < largest - rule.fraction_bits - _I(1)):
        cut_c = _I(np.floor(_D(c) * power_of_two(_I(rule.fraction_bits - largest))))
        cut_sum += _I(cut_c << _I(_I(RIGHT_BITS) - rule.fraction_bits))
    return largest, cut_sum, nearest(cut_sum, unit, rule.result)


@step
def has_product_beyond(value_a, value_b):
    """DOT-017: whether a product is 2^128 or more."""
    largest = _D(0)
    for k in range(value_a.size):
        largest = max(largest, abs(_D(value_a[k] * value_b[k])))
    return largest >= _BEYOND


@step
def special_total_beyond(value_a, value_b, c):
    """DOT-008 and DOT-017: the sum of infinite and NaN terms; 2^128 or more is infinite."""
    total = _D(0) if is_finite(c) else _D(c)
    for k in range(value_a.size):
        term = _D(value_a[k] * value_b[k])
        if not abs(term) < _BEYOND:
            total += _D(term * _D(np.inf))
    return canonical_c(_F(total))


@kernel
def tr_fdpa(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, rule):
    """DOT-017 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total = c[at]
        for chunk in range(a.special.shape[1]):
            value_a, value_b = a.value[i, chunk], b.value[j, chunk]
            is_special = a.special[i, chunk] or b.special[j, chunk] or not is_finite(total)
            if is_special or has_product_beyond(value_a, value_b):
                exponent, whole = _I(0), _I(0)
                total = special_total_beyond(value_a, value_b, total)
            else:
                sum_of_products, exponent = cut_products(
                    value_a,
                    value_b,
                    a.exponent[i, chunk],
                    b.exponent[j, chunk],
                    0,
                    1,
                    rule.fraction_bits,
                )
                exponent, whole, total = joined(sum_of_products, exponent, total, rule, False)
            keep(chunks, at, chunk, exponent, whole, total)
        c[at] = canonical_c(total)


@step
def add_halves(value_a, value_b, exponent_a, exponent_b, c, rule):
    """DOT-018: the fields of a chunk of finite terms."""
    bits = rule.fraction_bits
    even, exponent_even = cut_products(value_a, value_b, exponent_a, exponent_b, 0, 2, bits)
    odd, exponent_odd = cut_products(value_a, value_b, exponent_a, exponent_b, 1, 2, bits)
    exponent = max(exponent_even, exponent_odd)
    whole = _I(floored(even, exponent_even - exponent) + floored(odd, exponent_odd - exponent))
    return joined(whole, exponent, c, rule, True)


@kernel
def gtr_fdpa(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, rule):
    """DOT-018 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total = c[at]
        for chunk in range(a.special.shape[1]):
            value_a, value_b = a.value[i, chunk], b.value[j, chunk]
            if a.special[i, chunk] or b.special[j, chunk] or not is_finite(total):
                exponent, whole = _I(0), _I(0)
                total = special_total(value_a, value_b, total)
            else:
                exponent, whole, total = add_halves(
                    value_a, value_b, a.exponent[i, chunk], b.exponent[j, chunk], total, rule
                )
            keep(chunks, at, chunk, exponent, whole, total)
        c[at] = canonical_c(total)
