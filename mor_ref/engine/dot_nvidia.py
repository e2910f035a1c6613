"""Dot products with cut terms, as tensor cores of NVIDIA add them up."""

import functools
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.dot import GROUP, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.engine.dot_operands import exponent_of, rows_of_pairs
from mor_ref.engine.dot_rounding import (
    Result,
    block_of,
    canonical_c,
    exponent_of_c,
    fused,
    is_finite,
    keep,
    pair_count,
    power_of_two,
    result_of,
    rounded_sum,
    rows_of_pair,
)
from mor_ref.engine.kernel import kernel, step

_F = np.float32
_D = np.float64
_I = np.int64
_S = np.int16


class CutRule(NamedTuple):
    """The numbers of a profile that cuts terms."""

    chunk: int
    fraction_bits: int
    zero_exponent: int
    first_exponent: int  # of the smallest normal number of the given c
    result: Result


@functools.lru_cache
def cut_rule(profile: DotProfile) -> CutRule:
    """Return the row of a profile."""
    return CutRule(
        profile.chunk,
        profile.fraction_bits,
        profile.zero_exponent,
        formats[profile.start].smallest_exponent,
        result_of(profile),
    )


@step
def special_total(value_a, value_b, c):
    """DOT-008: the sum of the terms that are infinite or NaN, in binary64."""
    total = _D(0) if is_finite(c) else _D(c)
    for k in range(value_a.size):
        term = _D(value_a[k] * value_b[k])
        if not np.isfinite(term):
            total += term
    return canonical_c(_F(total))


@step
def largest_exponent(exponent_a, exponent_b, floor):
    """DOT-007: the largest exponent of products, from a floor on."""
    largest = _S(floor)
    for k in range(exponent_a.size):
        largest = max(largest, _S(exponent_a[k] + exponent_b[k]))
    return _I(largest)


@step
def cut_sum(value_a, value_b, c, scale):
    """DOT-007: the sum of products and c in units of 1 / scale, each cut toward zero."""
    whole = _I(_D(c) * scale)
    for k in range(value_a.size):
        whole += _I(_D(_D(value_a[k] * value_b[k]) * scale))
    return whole


@step
def floor_of_exponent(c, chunk, rule):
    """DOT-007: the exponent of c; a zero of c has one below those of all numbers of c."""
    smallest = rule.first_exponent if chunk == 0 else rule.result.smallest_exponent
    return rule.zero_exponent if c == _F(0) else exponent_of_c(c, smallest)


@step
def rounded_chunk(whole, unit, result):
    """DOT-010: a cut sum as the next c, without a negative zero."""
    return _F(rounded_sum(whole, unit, result) + _F(0))


@kernel
def t_fdpa(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, rule, period):
    """DOT-007 and DOT-008 for pairs of rows; DOT-011 if `period` chunks are promoted at once.

    The loop has the steps of a chunk itself, as a call with two operands would copy both.
    """
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total, promoted = c[at], c[at]
        if period != 0:
            total = _F(0)
        for chunk in range(a.special.shape[1]):
            value_a, value_b = a.value[i, chunk], b.value[j, chunk]
            exponent, whole = _I(0), _I(0)
            if a.special[i, chunk] or b.special[j, chunk] or not is_finite(total):
                total = special_total(value_a, value_b, total)
            else:
                floor = floor_of_exponent(total, chunk, rule)
                exponent = largest_exponent(a.exponent[i, chunk], b.exponent[j, chunk], floor)
                unit = _I(exponent - rule.fraction_bits)
                whole = cut_sum(value_a, value_b, total, power_of_two(-unit))
                total = rounded_chunk(whole, unit, rule.result)
            if period == 0:
                keep(chunks, at, chunk, exponent, whole, total)
            elif (chunk + 1) % period == 0:
                k = (chunk + 1 - period) * rule.chunk
                scale_a, scale_b = a.scale[i, block_of(a, k)], b.scale[j, block_of(b, k)]
                promoted = add_promoted(scale_a, scale_b, total, promoted)
                keep(chunks, at, chunk // period, 0, 0, promoted)
                total = _F(0)
        c[at] = canonical_c(total if period == 0 else promoted)


@step
def add_promoted(scale_a, scale_b, partial, c):
    """DOT-011: RN32(RN32(scale_a * scale_b) * partial + c)."""
    scale = _F(_F(scale_a) * _F(scale_b))
    return canonical_c(fused(_D(_D(scale) * _D(partial)), c))


@step
def sum_of_group(value_a, value_b):
    """DOT-009: the sum of the products of a group, and of their magnitudes."""
    total, size = _D(0), _D(0)
    for k in range(value_a.size):
        product = _D(value_a[k] * value_b[k])
        total += product
        size += abs(product)
    return total, size


@step
def term_of_group(a, b, i, j, chunk, first):
    """DOT-009: the value of a group, and its exponent; one below all others for a zero."""
    part = slice(first, first + GROUP)
    total, size = sum_of_group(a.value[i, chunk, part], b.value[j, chunk, part])
    start = chunk * a.value.shape[2] + first
    block_a, block_b = block_of(a, start), block_of(b, start)
    scale_a, scale_b = a.scale[i, block_a], b.scale[j, block_b]
    value = _D(_D(total * scale_a) * scale_b)
    exponent = _I(exponent_of(scale_a, a.lowest_scale)) + _I(exponent_of(scale_b, b.lowest_scale))
    return value, exponent if size != _D(0) else _I(-(1 << 15))


@step
def add_groups(a, b, i, j, chunk, c, rule, values):
    """DOT-009: the exponent, the cut sum and the next c of a chunk."""
    exponent = floor_of_exponent(c, chunk, rule)
    special = _D(0) if is_finite(c) else _D(c)
    is_special = not is_finite(c)
    for g in range(values.size):
        values[g], group_exponent = term_of_group(a, b, i, j, chunk, g * GROUP)
        exponent = max(exponent, group_exponent)
        if not np.isfinite(values[g]):
            is_special = True
            special += values[g]
    if is_special:
        return _I(0), _I(0), canonical_c(_F(special))
    unit = _I(exponent - rule.fraction_bits)
    scale = power_of_two(-unit)
    whole = _I(_D(c) * scale)
    for g in range(values.size):
        whole += _I(values[g] * scale)
    return exponent, whole, rounded_chunk(whole, unit, rule.result)


@kernel
def gst_fdpa(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, rule):
    """DOT-009 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    values = np.empty(rule.chunk // GROUP, _D)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total = c[at]
        for chunk in range(a.special.shape[1]):
            exponent, whole, total = add_groups(a, b, i, j, chunk, total, rule, values)
            keep(chunks, at, chunk, exponent, whole, total)
        c[at] = canonical_c(total)
