"""Dot products that differ: the roundings and the c of CDNA 3."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import RIGHT_BITS, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOTS_ALONE, IN_PRODUCTS
from mor_ref.deviations.dot import followed
from mor_ref.exact import dot_amd
from mor_ref.exact.dot_binary32 import total
from mor_ref.exact.dot_terms import Chunk, Product, factor, fraction_bits

Reference = Callable[..., Any]
_WITHOUT_SCALES = (*DOTS_ALONE, *IN_PRODUCTS)  # suites of CDNA 3, whose FP8 products are upcast
_CHUNKS = (dot_amd.tr_fdpa, dot_amd.gtr_fdpa)


def _to_nearest(_: Reference, value: Fraction, unit: int) -> int:
    return round(value / Fraction(2) ** unit)


def _rounded_products(
    reference: Reference, part: list[Product], profile: DotProfile
) -> tuple[Fraction, int | None]:
    """Return the sum of products that are rounded to nearest, and their largest exponent."""
    _, exponent = reference(part, profile)
    if exponent is None:
        return Fraction(0), None
    unit = Fraction(2) ** (exponent - fraction_bits(profile))
    return sum(round(Fraction(one.element_product) / unit) for one in part) * unit, exponent


DOT_CDNA3_ROUNDS_SUMS = Deviation(
    "dot_cdna3_rounds_sums",
    "Sums and c are rounded to nearest, ties to even, and not down; products are cut.",
    ("DOT-017", "DOT-018"),
    _WITHOUT_SCALES,
    (Change(dot_amd.floored, _to_nearest),),
)
DOT_CDNA3_ROUNDS_EVERYWHERE = Deviation(
    "dot_cdna3_rounds_everywhere",
    "Products, sums and c are all rounded to nearest, ties to even, and none is cut.",
    ("DOT-017", "DOT-018"),
    _WITHOUT_SCALES,
    (Change(dot_amd.floored, _to_nearest), Change(dot_amd.cut_products, _rounded_products)),
)


def _sum_in_binary32(value: float, c: float) -> float:
    return total(value, c)


def _cut_sum(value: float, c: float) -> float:
    """Return the sum of a rounded number and c, rounded as a chunk is."""
    if not (math.isfinite(value) and math.isfinite(c)):
        return total(value, c)
    return dot_amd.nearest(Fraction(value) + Fraction(c))


def _added_last(
    name: str, summary: str, add: Callable[[float, float], float], *, has_e_of_c: bool
) -> Deviation:
    """Return the deviation of a chunk of products alone, to whose result c is added."""

    def chunk(reference: Reference, part: list[Product], c: float, profile: DotProfile) -> Chunk:
        found: Chunk = reference(part, 0.0, profile)
        if has_e_of_c and math.isfinite(c) and all(one.element_product == 0 for one in part):
            found = replace(found, exponent=factor(c, formats["f32"]).exponent)
        return followed(found, c, add(found.c, c))

    changes = tuple(Change(step, chunk) for step in _CHUNKS)
    return Deviation(name, summary, ("DOT-017", "DOT-018"), _WITHOUT_SCALES, changes)


DOT_CDNA3_C_ADDED_LAST = _added_last(
    "dot_cdna3_c_added_last",
    "E is of the products, or of c if all are 0; c is added to the rounded sum in binary32.",
    _sum_in_binary32,
    has_e_of_c=True,
)
DOT_CDNA3_C_ADDED_LAST_AND_CUT = _added_last(
    "dot_cdna3_c_added_last_and_cut",
    "E is of the products, or of c if all are 0; c is added to the rounded sum, as DOT-017 rounds.",
    _cut_sum,
    has_e_of_c=True,
)
DOT_CDNA3_C_CUT_LAST = _added_last(
    "dot_cdna3_c_cut_last",
    "The products of a chunk are added to +0; c is added to their sum, as DOT-017 rounds.",
    _cut_sum,
    has_e_of_c=False,
)


@deviation(
    dot_amd.joined,
    rules=("DOT-017",),
    domain=_WITHOUT_SCALES,
    exemptions=dict.fromkeys(
        ("dot", *IN_PRODUCTS), "Chunks of at most 16 products lose the same bits with either E."
    ),
)
def dot_cdna3_c_has_no_exponent(
    reference: Reference, sums: Fraction, exponent: int | None, c: float, profile: DotProfile
) -> Chunk:
    """E is of the products, even if c has a larger exponent."""
    if exponent is None:
        found: Chunk = reference(sums, exponent, c, profile)
        return found
    bits, far = fraction_bits(profile), RIGHT_BITS
    of_c = dot_amd.cut_c(c, exponent, profile)
    whole = dot_amd.floored(sums, exponent - far) + (of_c << far - bits)
    return Chunk(exponent, whole, dot_amd.nearest(whole * Fraction(2) ** (exponent - far)))


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
