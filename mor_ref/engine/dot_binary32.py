"""Dot products with the operations of binary32, and of integers."""

import numpy as np

from mor_ref.definitions.dot import STEPS_OF_INT8
from mor_ref.engine.dot_operands import rows_of_pairs
from mor_ref.engine.dot_rounding import canonical_c, fused, keep, pair_count, rows_of_pair
from mor_ref.engine.intrinsics import bits_of
from mor_ref.engine.kernel import kernel, step

_F = np.float32
_D = np.float64
_W = np.uint32
_EXPONENT = np.uint32(0x7F800000)
_UNSCALE = np.float32(1) / np.float32(STEPS_OF_INT8**2)  # both are binary32 numbers: rounded once
_SMALLEST_NORMAL = np.float32(2.0**-126)


@kernel
def f32_fma(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms):
    """DOT-013 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total = c[at]
        for k in range(a.value.shape[1]):
            total = fused(_D(a.value[i, k, 0] * b.value[j, k, 0]), total)
            keep(chunks, at, k, 0, 0, canonical_c(total))
        c[at] = canonical_c(total)


@kernel
def f32_pairwise(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms):
    """DOT-014 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    columns = a.value.shape[2]
    row = np.empty(columns, _F)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        for k in range(columns):
            row[k] = _F(_F(a.value[i, 0, k]) * _F(b.value[j, 0, k]))
        length = columns
        while length > 1:
            half = length // 2
            for k in range(half):
                row[k] = _F(row[2 * k] + row[2 * k + 1])
            if length % 2 == 1:
                row[half] = row[length - 1]
            length -= half
        if columns != 0:
            c[at] = _F(row[0] + c[at])
        c[at] = canonical_c(c[at])
        keep(chunks, at, 0, 0, 0, c[at])


@step
def flushed(x):
    """DOT-016: a binary32 number, or a zero of its sign if it is subnormal."""
    return _F(x * _F(0)) if abs(x) < _SMALLEST_NORMAL else x


@step
def flushed_product(value_a, value_b, k):
    """DOT-016: a product in binary32."""
    return flushed(_F(_F(value_a[k]) * _F(value_b[k])))


@step
def flushed_pair(value_a, value_b, k):
    """DOT-016: the sum of two products in binary32."""
    return flushed(
        _F(flushed_product(value_a, value_b, k) + flushed_product(value_a, value_b, k + 1))
    )


@step
def flushed_c(c):
    """DOT-016: c, or +0 if it is subnormal; its bits decide, as a mode may flush such numbers."""
    return c if _W(bits_of(c) & _EXPONENT) != _W(0) else _F(0)


@kernel
def ftz_mul_add(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, period):
    """DOT-016 for pairs of rows; an instruction is `period` chunks of two or four products."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        total = c[at]
        for chunk in range(a.value.shape[1]):
            value_a, value_b = a.value[i, chunk], b.value[j, chunk]
            if period != 0 and chunk % period == 0:
                total = flushed_c(total)
            part = flushed_pair(value_a, value_b, 0)
            if value_a.size == 4:
                part = flushed(_F(part + flushed_pair(value_a, value_b, 2)))
            total = canonical_c(flushed(_F(total + part)))
            keep(chunks, at, chunk, 0, 0, total)
        c[at] = total if a.value.shape[1] != 0 else canonical_c(c[at])


@step
def int32_sum(value_a, value_b):
    """DOT-019: the sum of products of integers, as int32 holds it."""
    whole = np.int32(0)
    for k in range(value_a.size):
        whole = np.int32(whole + np.int32(_D(value_a[k] * value_b[k])))
    return whole


@kernel
def integers(of_a, of_b, scales_a, scales_b, c, pairs, chunks, room, forms, has_scales):
    """DOT-019 and DOT-020 for pairs of rows."""
    a, b = rows_of_pairs(of_a, of_b, scales_a, scales_b, forms, pairs, room)
    for n in range(pair_count(pairs)):
        i, j, at = rows_of_pair(n, pairs)
        whole = int32_sum(a.value[i, 0], b.value[j, 0])
        value = _F(whole)
        if has_scales and a.value.shape[2] != 0:
            unscaled = _F(value * _UNSCALE)
            value = _F(_F(b.scale[j, 0]) * _F(_F(a.scale[i, 0]) * unscaled))
        c[at] = canonical_c(value)
        keep(chunks, at, 0, 0, whole, c[at])
