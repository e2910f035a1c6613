"""Dot products with one rounding, with the operations of binary32, and of integers."""

import math
from dataclasses import replace
from fractions import Fraction

from mor_ref.definitions.dot import STEPS_OF_INT8, DotProfile
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.dot_terms import Chunk, Product, exact_product, special_sum
from mor_ref.exact.step import step


@step
def fused(a: float, b: float, c: float) -> float:
    """Return RN32(a * b + c) (DOT-013)."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        special = a * b + c
        return math.nan if math.isnan(special) else special
    value = Fraction(a) * Fraction(b) + Fraction(c)
    if value == 0:
        sign = math.copysign(1, a) * math.copysign(1, b)
        return -0.0 if sign < 0 and math.copysign(1, c) < 0 and c == 0 else 0.0
    return rn32(value)


def product(a: float, b: float) -> float:
    """Return RN32(a * b), with the sign of IEEE 754 if it is a zero."""
    return fused(a, b, -0.0)


def total(a: float, b: float) -> float:
    """Return RN32(a + b), with the sign of IEEE 754 if it is a zero."""
    return fused(a, 1.0, b)


@step
def f32_fma(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add one product to c in binary32 (DOT-013, THM-010)."""
    del profile
    return Chunk(None, None, fused(part[0].a.value, part[0].b.value, c))


@step
def f32_pairwise(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add rounded products as a tree of neighbours, and then c (DOT-014)."""
    del profile
    row = [product(pair.a.value, pair.b.value) for pair in part]
    while len(row) > 1:
        sums = [total(row[k], row[k + 1]) for k in range(0, len(row) - 1, 2)]
        row = sums + row[2 * len(sums) :]
    return Chunk(None, None, total(row[0], c) if row else c)


@step
def exact_chunk(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Return the exact sum, rounded once to binary32 (DOT-012, THM-007)."""
    del profile
    terms = [exact_product(pair.element_product, pair.scale_product) for pair in part]
    special = special_sum([*terms, c])
    if special is not None:
        return Chunk(None, None, special)
    return Chunk(None, None, rn32(sum((Fraction(term) for term in terms), Fraction(c))))


@step
def int32_sum(part: list[Product]) -> int:
    """Return the sum of products of integers, as int32 holds it (DOT-019)."""
    whole = sum(int(pair.a.value) * int(pair.b.value) for pair in part)
    return (whole + (1 << 31)) % (1 << 32) - (1 << 31)


@step
def int32(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Return the sum of products of integers in binary32 (DOT-019)."""
    del c, profile
    whole = int32_sum(part)
    return Chunk(None, whole, rn32(Fraction(whole)))


@step
def switchback(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Return the sum of products of integers with two scales (DOT-020)."""
    chunk = int32(part, c, profile)
    if not part:
        return chunk
    return replace(chunk, c=epilogue(chunk.c, part[0].scale_a.value, part[0].scale_b.value))


@step
def epilogue(n: float, x: float, w: float) -> float:
    """Return the sum n times 1 / 127^2, x and w, each rounded to binary32 (DOT-020)."""
    return product(w, product(x, product(n, rn32(Fraction(1, STEPS_OF_INT8**2)))))
