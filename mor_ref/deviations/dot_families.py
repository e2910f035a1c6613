"""Dot products that differ: in groups, promoted, in binary32, exactly, and as cores of AMD."""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOTS_ALONE, IN_DOT, IN_PRODUCTS, IN_SCALED_DOTS
from mor_ref.deviations.dot import own_exponent
from mor_ref.exact import dot_amd, dot_binary32, dot_nvidia, dot_terms
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.dot_binary32 import exact_chunk, product, total
from mor_ref.exact.dot_terms import ONE, Chunk, Factor, Product

Reference = Callable[..., Any]
_IN_DOT_ALONE = ("dot",)
_WITHOUT_SCALES = (*DOTS_ALONE, *IN_PRODUCTS)  # suites of CDNA 3, whose FP8 products are upcast


@deviation(dot_nvidia.gst_fdpa, rules=("DOT-009",), domain=IN_SCALED_DOTS)
def dot_groups_cut_one_by_one(
    _: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Each product of a group of sixteen is a term of its own, as in st_fdpa."""
    return dot_nvidia.t_fdpa(part, c, profile)


@deviation(dot_nvidia.gst_fdpa, rules=("DOT-006", "DOT-009"), domain=IN_SCALED_DOTS)
def dot_first_scales_of_a_chunk(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """All groups of a chunk have the scales of its first group."""
    first = part[0]
    alike = [one._replace(scale_a=first.scale_a, scale_b=first.scale_b) for one in part]
    found: Chunk = reference(alike, c, profile)
    return found


DOT_EXPONENTS_OF_GROUPS = Deviation(
    "dot_exponents_of_groups",
    "A group has the exponent of its scaled sum, and not that of its scales.",
    ("DOT-009",),
    IN_SCALED_DOTS,
    (Change(dot_nvidia.term_of_group, own_exponent),),
)


@deviation(
    dot_binary32.exact_chunk,
    rules=("DOT-006", "DOT-012"),
    domain=IN_DOT,
    exemptions={"dot": "Without scales, both factors are 1."},
)
def dot_exact_with_rounded_scales(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """In exact, the product of both scales is rounded to binary32."""
    rounded = [
        one._replace(scale_a=Factor(product(one.scale_a.value, one.scale_b.value), 0), scale_b=ONE)
        for one in part
    ]
    found: Chunk = reference(rounded, c, profile)
    return found


@deviation(dot_binary32.f32_fma, rules=("DOT-013",), domain=_IN_DOT_ALONE)
def dot_unfused(_: Reference, part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Each product is rounded before it is added to c."""
    del profile
    (one,) = part
    return Chunk(None, None, total(product(one.a.value, one.b.value), c))


@deviation(dot_binary32.exact_chunk, rules=("DOT-012",), domain=IN_DOT)
def dot_exact_in_binary64(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Products are added up in binary64, in order, and the sum is rounded to binary32."""
    found: Chunk = reference(part, c, profile)
    if not math.isfinite(found.c):
        return found
    wide = functools.reduce(
        lambda x, one: x + float(one.element_product) * float(one.scale_product), part, float(c)
    )
    return Chunk(None, None, rn32(Fraction(wide)) if math.isfinite(wide) else wide)


def _one_by_one(reference: Reference, part: list[Product], c: float, profile: DotProfile) -> Chunk:
    """Take the step with one product after the other."""
    for one in part:
        c = reference([one], c, profile).c
    return Chunk(None, None, c)


@deviation(dot_binary32.exact_chunk, rules=("DOT-012", "DOT-015"), domain=IN_DOT)
def dot_exact_one_by_one(*step: Any) -> Chunk:
    """The sum is rounded after each product."""
    return _one_by_one(*step)


@deviation(dot_amd.e_fdpa, rules=("DOT-015",), domain=(*_IN_DOT_ALONE, *IN_PRODUCTS))
def dot_cdna1_chunks_are_cut(
    _: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The products of CDNA 1 are added up and rounded, and then c is added."""
    found = exact_chunk(part, 0.0, profile).c
    return Chunk(None, None, total(found, c))


@deviation(dot_amd.e_fdpa, rules=("DOT-015",), domain=(*_IN_DOT_ALONE, *IN_PRODUCTS))
def dot_cdna1_results_cut(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The sum of a chunk of CDNA 1 is rounded toward zero, and not to nearest."""
    terms = [*(one.element_product for one in part), c]
    if dot_terms.special_sum(terms) is not None:
        found: Chunk = reference(part, c, profile)
        return found
    fmt = formats["f32"]
    value = sum((Fraction(term) for term in terms), Fraction(0))
    return Chunk(None, None, dot_terms.rounded(value, fmt.mantissa_bits, fmt, "rtz"))


@deviation(dot_amd.flushed, rules=("DOT-016",), domain=_IN_DOT_ALONE)
def dot_cdna2_keeps_subnormals(_: Reference, x: float, smallest_exponent: int) -> float:
    """Subnormal numbers are not flushed."""
    del smallest_exponent
    return x


@deviation(dot_amd.ftz_mul_add, rules=("DOT-016",), domain=_IN_DOT_ALONE)
def dot_cdna2_adds_one_by_one(*step: Any) -> Chunk:
    """Each product is added to c."""
    return _one_by_one(*step)


@deviation(dot_amd.floored, rules=("DOT-017",), domain=_WITHOUT_SCALES)
def dot_cdna3_cuts_toward_zero(_: Reference, value: Fraction, unit: int) -> int:
    """Sums and c are cut toward zero, and not rounded down."""
    return math.trunc(value / Fraction(2) ** unit)


@deviation(dot_amd.overflowed, rules=("DOT-017",), domain=_WITHOUT_SCALES)
def dot_cdna3_overflows_late(_: Reference, value: float | Fraction) -> float | Fraction:
    """A product beyond binary32 stays a number until the sum is rounded."""
    return value


@deviation(dot_amd.nearest, rules=("DOT-017",), domain=_WITHOUT_SCALES)
def dot_cdna3_rounds_once(_: Reference, value: Fraction) -> float:
    """The sum is rounded to binary32 without a cut to 32 bits before."""
    return rn32(value)


def _is_gtr(_c: float, _largest: int, profile: DotProfile) -> bool:
    return profile.family == "gtr_fdpa"


@deviation(dot_amd.cut_c, where=_is_gtr, rules=("DOT-018",), domain=DOTS_ALONE)
def dot_cdna3_counts_a_small_c(
    reference: Reference, c: float, largest: int, profile: DotProfile
) -> int:
    """With FP8, a small negative c takes a unit from the sum, as it does with other formats."""
    del reference
    return dot_amd.floored(Fraction(c), largest - profile.fraction_bits)


@deviation(dot_amd.gtr_fdpa, rules=("DOT-018",), domain=DOTS_ALONE)
def dot_cdna3_adds_fp8_together(
    _: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Even and odd products are one sum."""
    return dot_amd.tr_fdpa(part, c, profile)


@deviation(dot_amd.gtr_fdpa, rules=("DOT-018",), domain=DOTS_ALONE)
def dot_cdna3_adds_fp8_in_halves(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The first half of the products is one sum, and the second half the other."""
    half = len(part) // 2
    in_turn = [one for pair in zip(part[:half], part[half:], strict=True) for one in pair]
    found: Chunk = reference(in_turn, c, profile)
    return found


@deviation(dot_amd.gtr_fdpa, rules=("DOT-008", "DOT-018"), domain=DOTS_ALONE)
def dot_cdna3_loses_an_infinite_c(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """An infinite or NaN c has the exponent -1, and counts as 0 in a larger sum: MMA-Sim 2.1.1."""
    if math.isfinite(c) or dot_terms.special_sum([one.element_product for one in part]) is not None:
        found: Chunk = reference(part, c, profile)
        return found
    exponents = [one.a.exponent + one.b.exponent for one in part if one.element_product != 0]
    is_far = bool(exponents) and max(exponents) > profile.fraction_bits
    if not is_far:
        return Chunk(0, 0, c)
    without: Chunk = reference(part, 0.0, profile)
    return without


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
