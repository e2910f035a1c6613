"""Chunks of dot products, as tensor cores of NVIDIA add them up."""

from fractions import Fraction

from mor_ref.definitions.dot import GROUP, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.exact.dot_binary32 import fused, product
from mor_ref.exact.dot_terms import (
    Chunk,
    Product,
    Term,
    cut,
    exact_product,
    factor,
    fraction_bits,
    rounded,
    special_sum,
)
from mor_ref.exact.step import step


@step
def result(value: Fraction, profile: DotProfile) -> float:
    """Return a cut sum in the format of the result, without a negative zero (DOT-010)."""
    fmt = formats[profile.result]
    if profile.result == "f32":
        return rounded(value, profile.kept_bits, fmt, "rtz") + 0.0
    return rounded(value, fmt.mantissa_bits, fmt, "rne") + 0.0


@step
def term_of_product(pair: Product, profile: DotProfile) -> Term:
    """Return a product with its scales and the sum of four exponents (DOT-007, DOT-008)."""
    value = exact_product(pair.a.value, pair.b.value, pair.scale_a.value, pair.scale_b.value)
    exponents = (pair.a.exponent, pair.b.exponent, pair.scale_a.exponent, pair.scale_b.exponent)
    return Term(value, sum(exponents) if value != 0 else profile.zero_exponent)


@step
def term_of_group(group: list[Product], profile: DotProfile) -> Term:
    """Return the sum of a group times its scales, with the exponent of the scales (DOT-009)."""
    elements = [pair.element_product for pair in group]
    special = special_sum(elements)
    inner = sum((Fraction(x) for x in elements), Fraction(0)) if special is None else special
    first = group[0]
    is_zero = all(x == 0 for x in elements) or first.scale_product == 0
    exponent = first.scale_a.exponent + first.scale_b.exponent
    value = exact_product(inner, first.scale_a.value, first.scale_b.value)
    return Term(value, profile.zero_exponent if is_zero else exponent)


@step
def term_of_c(c: float, profile: DotProfile) -> Term:
    """Return c and its exponent (DOT-007)."""
    c_factor = factor(c, formats[profile.start])
    return Term(c, c_factor.exponent if c != 0 else profile.zero_exponent)


@step
def cut_chunk(terms: list[Term], c: float, profile: DotProfile) -> Chunk:
    """Return the sum of cut terms and c, rounded (DOT-007, DOT-008, THM-008, THM-009)."""
    terms = [*terms, term_of_c(c, profile)]
    special = special_sum([term.value for term in terms])
    if special is not None:
        return Chunk(0, 0, special)
    exponent = max(term.exponent for term in terms)
    unit = exponent - fraction_bits(profile)
    cut_sum = sum(cut(term.value, unit) for term in terms)
    return Chunk(exponent, cut_sum, result(cut_sum * Fraction(2) ** unit, profile))


@step
def t_fdpa(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add the products of a chunk, each a term (DOT-007)."""
    return cut_chunk([term_of_product(pair, profile) for pair in part], c, profile)


@step
def gst_fdpa(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add the products of a chunk, each sixteen a term (DOT-009)."""
    groups = [part[k : k + GROUP] for k in range(0, len(part), GROUP)]
    return cut_chunk([term_of_group(group, profile) for group in groups], c, profile)


@step
def promoted(part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Add 128 products from 0 on, and the scaled sum to c in binary32 (DOT-011, THM-011)."""
    partial = 0.0
    for k in range(0, len(part), profile.chunk):
        inner = [Product(pair.a, pair.b) for pair in part[k : k + profile.chunk]]
        partial = t_fdpa(inner, partial, profile).c
    first = part[0]
    return Chunk(None, None, fused(product(first.scale_a.value, first.scale_b.value), partial, c))
