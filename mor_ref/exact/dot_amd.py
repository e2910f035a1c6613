"""Chunks of dot products, as matrix cores of AMD add them up."""

import math
from fractions import Fraction

from mor_ref.definitions.dot import RIGHT_BITS, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.exact.dot_binary32 import exact_chunk, product, total
from mor_ref.exact.dot_terms import (
    Chunk,
    Factor,
    Product,
    cut,
    factor,
    fraction_bits,
    rounded,
    special_sum,
)
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.step import step

_F32 = formats["f32"]
_LARGEST_EXPONENT = 127


@step
def e_fdpa(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add the products of a chunk and c exactly, rounded once (DOT-015, THM-011)."""
    return exact_chunk(part, c, profile)


@step
def flushed(x: float, smallest_exponent: int) -> float:
    """Return a number, or a zero of its sign if it is subnormal (DOT-016)."""
    return math.copysign(0.0, x) if abs(x) < math.ldexp(1.0, smallest_exponent) else x


def flushed_input(x: Factor) -> float:
    """Return an operand, or +0 if it is zero or subnormal in its format (DOT-016)."""
    lowest = x.exponent  # a subnormal number has the exponent of the smallest normal one
    return flushed(x.value, lowest) or 0.0


@step
def c_of_chunk(c: float, start: int, profile: DotProfile) -> float:
    """Return c as a chunk takes it: +0 if an instruction flushes it (DOT-016)."""
    if not profile.flushed_every or start % profile.flushed_every:
        return c
    return flushed(c, _F32.smallest_exponent) or 0.0


def flushed_product(pair: Product) -> float:
    """Return the product of two elements, flushed before and after (DOT-016)."""
    return flushed(product(flushed_input(pair.a), flushed_input(pair.b)), _F32.smallest_exponent)


def flushed_total(a: float, b: float) -> float:
    """Return the sum of two numbers, flushed (DOT-016)."""
    return flushed(total(a, b), _F32.smallest_exponent)


@step
def ftz_mul_add(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add pairs of products, pairs of pairs, and the sum to c, all flushed (DOT-016, THM-011)."""
    del profile
    row = [flushed_product(pair) for pair in part]
    while len(row) > 1:
        row = [flushed_total(row[k], row[k + 1]) for k in range(0, len(row), 2)]
    return Chunk(None, None, flushed_total(c, row[0]))


@step
def floored(value: Fraction, unit: int) -> int:
    """Return a number in units of 2^unit, rounded down (DOT-017)."""
    return math.floor(value / Fraction(2) ** unit)


@step
def cut_products(part: list[Product], profile: DotProfile) -> tuple[Fraction, int | None]:
    """Return the sum of cut products, and their largest exponent; None without one (DOT-017)."""
    terms = [
        (Fraction(pair.element_product), pair.a.exponent + pair.b.exponent)
        for pair in part
        if pair.element_product != 0
    ]
    if not terms:
        return Fraction(0), None
    exponent = max(e for _, e in terms)
    unit = exponent - fraction_bits(profile)
    return sum(cut(value, unit) for value, _ in terms) * Fraction(2) ** unit, exponent


@step
def overflowed(value: float | Fraction) -> float | Fraction:
    """Return a product of tr_fdpa, or an infinity if it is beyond binary32 (DOT-017)."""
    is_beyond = (
        math.isfinite(value) and value and floor_log2(abs(Fraction(value))) > _LARGEST_EXPONENT
    )
    return math.copysign(math.inf, value) if is_beyond else value


@step
def joined(sums: Fraction, exponent: int | None, c: float, profile: DotProfile) -> Chunk:
    """Add a sum of products and c, both rounded down, and round twice (DOT-017)."""
    exponent_of_c = factor(c, _F32).exponent
    largest = exponent_of_c if exponent is None else max(exponent, exponent_of_c)
    unit = largest - RIGHT_BITS
    whole = floored(sums, unit) + (
        cut_c(c, largest, profile) << RIGHT_BITS - fraction_bits(profile)
    )
    return Chunk(largest, whole, nearest(whole * Fraction(2) ** unit))


@step
def cut_c(c: float, largest: int, profile: DotProfile) -> int:
    """Return c in units of 2^(largest - F), rounded down (DOT-017, DOT-018)."""
    bits = fraction_bits(profile)
    is_far = profile.family == "gtr_fdpa" and factor(c, _F32).exponent < largest - bits - 1
    return 0 if is_far else floored(Fraction(c), largest - bits)


@step
def nearest(value: Fraction) -> float:
    """Return a sum, rounded down to 32 bits, and then to binary32 (DOT-017)."""
    if value == 0:
        return 0.0
    unit = max(floor_log2(abs(value)), _F32.smallest_exponent) - (RIGHT_BITS - 1)
    kept = floored(value, unit) * Fraction(2) ** unit
    return rounded(kept, _F32.mantissa_bits, _F32, "rne")


@step
def tr_fdpa(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add the products of a chunk, and then c (DOT-017, THM-011)."""
    special = special_sum([*(overflowed(pair.element_product) for pair in part), c])
    if special is not None:
        return Chunk(0, 0, special)
    return joined(*cut_products(part, profile), c, profile)


@step
def gtr_fdpa(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add the even products and the odd ones apart, then both, and then c (DOT-018, THM-011)."""
    special = special_sum([*(pair.element_product for pair in part), c])
    if special is not None:
        return Chunk(0, 0, special)
    even, odd = cut_products(part[::2], profile), cut_products(part[1::2], profile)
    exponents = [exponent for _, exponent in (even, odd) if exponent is not None]
    if not exponents:
        return joined(Fraction(0), None, c, profile)
    exponent = max(exponents)
    unit = exponent - fraction_bits(profile)
    whole = floored(even[0], unit) + floored(odd[0], unit)
    return joined(whole * Fraction(2) ** unit, exponent, c, profile)
