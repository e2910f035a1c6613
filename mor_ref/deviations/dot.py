"""Dot products that differ: other cuts, other chunks, another order, other roundings."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import WITHOUT_C, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS, DOTS, IN_SCALED_DOTS
from mor_ref.exact import dot, dot_nvidia, dot_terms
from mor_ref.exact.arithmetic import FLT_MAX
from mor_ref.exact.dot_terms import Chunk, Factor, Product, Term
from mor_ref.exact.encoding import floor_log2

Reference = Callable[..., Any]
ONE_CHUNK = {"dot_chunks": "A chunk is free of order (THM-007), and a row is one chunk."}
_NOWHERE = -9999  # an exponent below all others


@deviation(dot_terms.fraction_bits, rules=("DOT-002", "DOT-007"), domain=DOTS)
def dot_cuts_one_bit_later(reference: Reference, profile: DotProfile) -> int:
    """F is one more: a bit below the cut is added up."""
    return int(reference(profile)) + 1


@deviation(dot_terms.fraction_bits, rules=("DOT-002", "DOT-007"), domain=DOTS)
def dot_cuts_one_bit_earlier(reference: Reference, profile: DotProfile) -> int:
    """F is one less: the lowest bit above the cut is lost."""
    return int(reference(profile)) - 1


@deviation(dot_terms.cut, rules=("DOT-007",), domain=DOTS)
def dot_terms_rounded(_: Reference, value: float | Fraction, unit: int) -> int:
    """Terms are rounded to nearest, ties to even, and not cut."""
    return round(Fraction(value) / Fraction(2) ** unit)


@deviation(dot_terms.cut, rules=("DOT-007",), domain=DOTS)
def dot_terms_rounded_away(_: Reference, value: float | Fraction, unit: int) -> int:
    """Terms are rounded to nearest, ties away from zero, and not cut."""
    size = math.floor(abs(Fraction(value)) / Fraction(2) ** unit + Fraction(1, 2))
    return -size if value < 0 else size


@deviation(dot_terms.cut, rules=("DOT-007",), domain=DOTS)
def dot_terms_rounded_down(_: Reference, value: float | Fraction, unit: int) -> int:
    """Terms are shifted as integers in two's complement: negative ones are cut away from zero."""
    return math.floor(Fraction(value) / Fraction(2) ** unit)


def is_of_nvidia(profile: DotProfile) -> bool:
    """Return whether a tensor core adds up chunks itself."""
    return profile.family in ("t_fdpa", "st_fdpa", "gst_fdpa")


@deviation(
    dot.chunk_length, where=is_of_nvidia, rules=("DOT-003",), domain=DOTS, exemptions=ONE_CHUNK
)
def dot_rows_are_one_chunk(_: Reference, profile: DotProfile) -> int:
    """All products of a row are one chunk."""
    del profile
    return 0


def _is_rounded(_products: list[Product], profile: DotProfile) -> bool:
    return profile.family not in WITHOUT_C


@deviation(dot.in_chunks, where=_is_rounded, rules=("DOT-003",), domain=DOTS, exemptions=ONE_CHUNK)
def dot_order_reversed(
    reference: Reference, products: list[Product], profile: DotProfile
) -> list[list[Product]]:
    """Products are taken from the last one on."""
    return list(reference(products[::-1], profile))


@deviation(dot.in_chunks, where=_is_rounded, rules=("DOT-003",), domain=DOTS, exemptions=ONE_CHUNK)
def dot_chunks_reversed(
    reference: Reference, products: list[Product], profile: DotProfile
) -> list[list[Product]]:
    """Chunks are taken from the last one on, which zeros fill at its end, as in order."""
    return list(reference(products, profile)[::-1])


@deviation(dot_nvidia.cut_chunk, rules=("DOT-007",), domain=DOTS)
def dot_c_added_last(
    reference: Reference, terms: list[Term], c: float, profile: DotProfile
) -> Chunk:
    """The products of a chunk are added up and rounded first, and c is added to the result."""
    found: Chunk = reference(terms, 0.0, profile)
    return followed(found, c, _rounded_sum(found.c, c, profile))


def followed(found: Chunk, c: float, value: float) -> Chunk:
    """Return the chunk of products with c added to it; an infinite or NaN c clears the fields."""
    return replace(found, c=value) if math.isfinite(c) else Chunk(0, 0, value)


def _rounded_sum(value: float | Fraction, c: float, profile: DotProfile) -> float:
    """Return the sum of a rounded number and c, rounded once more."""
    special = dot_terms.special_sum([value, c])
    if special is not None:
        return special
    return dot_nvidia.result(Fraction(value) + Fraction(c), profile)


def own_exponent(reference: Reference, factors: Any, profile: DotProfile) -> Term:
    """Return a term with the exponent of its value."""
    found: Term = reference(factors, profile)
    if not math.isfinite(found.value) or found.value == 0:
        return found
    return Term(found.value, floor_log2(abs(Fraction(found.value))))


DOT_EXPONENTS_OF_PRODUCTS = Deviation(
    "dot_exponents_of_products",
    "A term has the exponent of the product, and not the sum of the exponents of its factors.",
    ("DOT-007",),
    DOTS,
    (Change(dot_nvidia.term_of_product, own_exponent),),
)


def _without_e0(reference: Reference, one: Any, profile: DotProfile) -> Term:
    found: Term = reference(one, profile)
    is_zero = found.value == 0 and found.exponent == profile.zero_exponent
    return Term(found.value, _NOWHERE) if is_zero else found


DOT_ZEROS_HAVE_NO_EXPONENT = Deviation(
    "dot_zeros_have_no_exponent",
    "A zero does not count in the largest exponent.",
    ("DOT-003", "DOT-007", "DOT-009"),
    DOTS,
    tuple(
        Change(step, _without_e0)
        for step in (dot_nvidia.term_of_product, dot_nvidia.term_of_group, dot_nvidia.term_of_c)
    ),
)


def _is_nvidia(_value: Fraction, profile: DotProfile) -> bool:
    return profile.result == "f32"


@deviation(dot_nvidia.result, where=_is_nvidia, rules=("DOT-010",), domain=DOTS)
def dot_results_to_nearest(_: Reference, value: Fraction, profile: DotProfile) -> float:
    """A sum is rounded to nearest, ties to even, to the same number of bits."""
    return dot_terms.rounded(value, profile.kept_bits, formats["f32"], "rne") + 0.0


def _is_short(_value: Fraction, profile: DotProfile) -> bool:
    return profile.kept_bits < formats["f32"].mantissa_bits and profile.result == "f32"


@deviation(dot_nvidia.result, where=_is_short, rules=("DOT-010",), domain=DOTS)
def dot_results_have_23_bits(_: Reference, value: Fraction, profile: DotProfile) -> float:
    """A sum of FP8 products has 23 bits behind its leading one, and not 13."""
    del profile
    return dot_terms.rounded(value, formats["f32"].mantissa_bits, formats["f32"], "rtz") + 0.0


@deviation(dot_nvidia.result, where=_is_nvidia, rules=("DOT-010",), domain=DOTS)
def dot_overflow_saturates(reference: Reference, value: Fraction, profile: DotProfile) -> float:
    """A sum beyond the largest number becomes the largest, as in rounding toward zero."""
    found = float(reference(value, profile))
    return math.copysign(FLT_MAX, found) if math.isinf(found) else found


def flushed(x: float, name: str) -> float:
    """Return a number, or a zero of its sign if it is subnormal in a format.

    The flush of DOT-016 is a step of its own, which deviations may change.
    """
    return math.copysign(0.0, x) if abs(x) < math.ldexp(1.0, formats[name].smallest_exponent) else x


@deviation(
    dot_terms.factor,
    rules=("DOT-004",),
    domain=(*DOTS, *DOT_INTEGERS),
    exemptions={"dot_integers": "Sums of integers have no exponents."},
)
def dot_subnormal_operands_normalised(_: Reference, value: float, fmt: Format) -> Factor:
    """A subnormal number has the exponent of its leading one."""
    is_number = math.isfinite(value) and value != 0
    return Factor(value, floor_log2(abs(value)) if is_number else fmt.smallest_exponent)


def is_tf32(_code: int, _fmt: Format, profile: DotProfile) -> bool:
    """Return whether the lowest bits of operands are read as 0."""
    return profile.ignored_bits > 0


@deviation(dot_terms.number, where=is_tf32, rules=("DOT-005",), domain=("dot_chunks", "dot"))
def dot_tf32_has_all_bits(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """The lowest bits of binary32 operands count."""
    found: Factor = reference(code, fmt, replace(profile, ignored_bits=0))
    return found


@deviation(dot_terms.special_sum, rules=("DOT-008",), domain=DOTS)
def dot_opposite_infinities_are_infinite(
    _: Reference, values: list[float | Fraction]
) -> float | None:
    """The first infinity or NaN is the result, whatever follows."""
    return next((float(x) for x in values if not math.isfinite(x)), None)


@deviation(dot_terms.special_sum, rules=("DOT-008",), domain=DOTS)
def dot_nan_ignored(reference: Reference, values: list[float | Fraction]) -> float | None:
    """A NaN term counts as zero."""
    found: float | None = reference([x for x in values if not math.isnan(x)])
    return found if found is not None or all(map(math.isfinite, values)) else 0.0


def _has_infinities(_code: int, fmt: Format, _profile: DotProfile) -> bool:
    return fmt.infinity_code is not None


@deviation(dot_terms.number, where=_has_infinities, rules=("DOT-001", "DOT-008"), domain=DOTS)
def dot_smallest_nan_is_infinite(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """A NaN without the quiet bit is infinite."""
    found: Factor = reference(code, fmt, profile)
    is_quiet = code & 1 << max(fmt.mantissa_bits - 1, 0)
    return found if is_quiet or not math.isnan(found.value) else found._replace(value=math.inf)


def _is_scaled(_part: list[Product], _c: float, profile: DotProfile) -> bool:
    return profile.family == "st_fdpa"


def _scaled_after(
    name: str, summary: str, clears: Callable[[list[Product], float], bool]
) -> Deviation:
    """Return the deviation of scales behind the sum; some terms clear the fields of a chunk."""

    def chunk(reference: Reference, part: list[Product], c: float, profile: DotProfile) -> Chunk:
        found: Chunk = reference([Product(one.a, one.b) for one in part], 0.0, profile)
        value = dot_terms.exact_product(found.c, part[0].scale_product)
        last = _rounded_sum(value, c, profile)
        return Chunk(0, 0, last) if clears(part, c) else replace(found, c=last)

    changes = (Change(dot_nvidia.t_fdpa, chunk, _is_scaled),)
    return Deviation(name, summary, ("DOT-007",), IN_SCALED_DOTS, changes)


def _is_special(part: list[Product], c: float) -> bool:
    terms = (dot_terms.exact_product(one.element_product, one.scale_product) for one in part)
    return not all(map(math.isfinite, (*terms, c)))


DOT_SCALED_AFTER_THE_SUM = _scaled_after(
    "dot_scaled_after_the_sum",
    "The products of a block are added up first; the scales multiply the rounded sum.",
    lambda _, c: not math.isfinite(c),
)
DOT_SCALED_AFTER_THE_SUM_OF_PRODUCTS = _scaled_after(
    "dot_scaled_after_the_sum_of_products",
    "The scales multiply a rounded sum; the fields are of the products alone, whatever c is.",
    lambda *_: False,
)
DOT_SCALED_AFTER_THE_SUM_OF_NUMBERS = _scaled_after(
    "dot_scaled_after_the_sum_of_numbers",
    "The scales multiply a rounded sum; a special scale clears the fields of a chunk, as c does.",
    _is_special,
)

DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
