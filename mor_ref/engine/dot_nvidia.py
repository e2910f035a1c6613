"""Sums with cut terms, as tensor cores of NVIDIA have them (a part of the chapter dot)."""

from typing import NamedTuple

import numpy as np

from mor_ref.definitions.dot import GROUP, PERIOD, DotProfile
from mor_ref.engine.dot_rounding import (
    Result,
    block_of,
    canonical_c,
    exponent_of_c,
    fused,
    is_finite,
    keep,
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

    chunk: np.int64
    fraction_bits: np.int64
    zero_exponent: np.int64
    result: Result


def cut_rule(profile: DotProfile) -> CutRule:
    """Return the row of a profile."""
    return CutRule(
        _I(profile.chunk),
        _I(profile.fraction_bits),
        _I(profile.zero_exponent),
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
def largest_exponent(exponent_a, exponent_b, start, end, floor):
    """DOT-007: the largest exponent of products, from a floor on."""
    largest = _S(floor)
    for k in range(start, end):
        largest = max(largest, _S(exponent_a[k] + exponent_b[k]))
    return _I(largest)


@step
def cut_products(value_a, value_b, start, end, scale):
    """DOT-007: the sum of products in units of 1 / scale, each cut toward zero."""
    whole = _I(0)
    for k in range(start, end):
        whole += _I(_D(_D(value_a[k] * value_b[k]) * scale))
    return whole


@step
def add_chunk(a, b, i, j, start, c, rule):
    """DOT-007: the exponent, the cut sum and the next c of a chunk of finite terms."""
    exponent_a, exponent_b = a.exponent[i], b.exponent[j]
    # A zero has an exponent below those of all numbers of c, so it decides if c is 0 alone.
    floor = rule.zero_exponent
    if c != _F(0):
        floor = exponent_of_c(c, rule.result.smallest_exponent)
    exponent = largest_exponent(exponent_a, exponent_b, start, start + rule.chunk, floor)
    unit = _I(exponent - rule.fraction_bits)
    scale = power_of_two(-unit)
    whole = cut_products(a.value[i], b.value[j], start, start + rule.chunk, scale)
    whole += _I(_D(c) * scale)
    return exponent, whole, _F(rounded_sum(whole, unit, rule.result) + _F(0))


@step
def next_chunk(a, b, i, j, chunk, c, rule):
    """DOT-007 and DOT-008: the fields of a chunk."""
    start, end = chunk * rule.chunk, (chunk + 1) * rule.chunk
    if a.special[i, chunk] or b.special[j, chunk] or not is_finite(c):
        return _I(0), _I(0), special_total(a.value[i, start:end], b.value[j, start:end], c)
    return add_chunk(a, b, i, j, start, c, rule)


@kernel
def t_fdpa(a, b, c, pairs, chunks, rule):
    """DOT-007 for pairs of rows."""
    for n in range(pairs.first, pairs.last):
        i, j = rows_of_pair(n, pairs.columns)
        total = c[n]
        for chunk in range(a.special.shape[1]):
            exponent, whole, total = next_chunk(a, b, i, j, chunk, total, rule)
            keep(chunks, n, chunk, exponent, whole, total)
        c[n] = canonical_c(total)


@kernel
def promoted(a, b, c, pairs, chunks, rule):
    """DOT-011 for pairs of rows."""
    for n in range(pairs.first, pairs.last):
        i, j = rows_of_pair(n, pairs.columns)
        total = c[n]
        of_period = PERIOD // rule.chunk
        for chunk in range(a.special.shape[1] // of_period):
            partial = _F(0)
            for part in range(chunk * of_period, (chunk + 1) * of_period):
                _, _, partial = next_chunk(a, b, i, j, part, partial, rule)
            k = chunk * PERIOD
            of_a, of_b = a.scale[i, block_of(a, k)], b.scale[j, block_of(b, k)]
            scale = _F(_F(of_a) * _F(of_b))
            total = canonical_c(fused(_D(_D(scale) * _D(partial)), total))
            keep(chunks, n, chunk, 0, 0, total)
        c[n] = canonical_c(total)


@step
def term_of_group(a, b, i, j, start):
    """DOT-009: the value of a group, and its exponent; one below all others for a zero."""
    total, size = _D(0), _D(0)
    for k in range(start, start + GROUP):
        product = _D(a.value[i, k] * b.value[j, k])
        total += product
        size += abs(product)
    of_a, of_b = block_of(a, start), block_of(b, start)
    value = _D(_D(total * a.scale[i, of_a]) * b.scale[j, of_b])
    exponent = _I(a.scale_exponent[i, of_a]) + _I(b.scale_exponent[j, of_b])
    return value, exponent if size != _D(0) else _I(-(1 << 15))


@step
def add_groups(a, b, i, j, start, c, rule, values):
    """DOT-009: the exponent, the cut sum and the next c of a chunk."""
    exponent = rule.zero_exponent
    if c != _F(0):
        exponent = exponent_of_c(c, rule.result.smallest_exponent)
    special = _D(0) if is_finite(c) else _D(c)
    is_special = not is_finite(c)
    for g in range(values.size):
        values[g], of_group = term_of_group(a, b, i, j, start + g * GROUP)
        exponent = max(exponent, of_group)
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
    return exponent, whole, _F(rounded_sum(whole, unit, rule.result) + _F(0))


@kernel
def gst_fdpa(a, b, c, pairs, chunks, rule):
    """DOT-009 for pairs of rows."""
    values = np.empty(rule.chunk // GROUP, _D)
    for n in range(pairs.first, pairs.last):
        i, j = rows_of_pair(n, pairs.columns)
        total = c[n]
        for chunk in range(a.special.shape[1]):
            start = chunk * rule.chunk
            exponent, whole, total = add_groups(a, b, i, j, start, total, rule, values)
            keep(chunks, n, chunk, exponent, whole, total)
        c[n] = canonical_c(total)
