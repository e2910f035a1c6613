"""Dot products that differ: exponents of zeros, e0 and a subnormal c, groups, and accumulators."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import GROUP, WITHOUT_C, DotProfile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOTS, DOTS_ALONE, IN_PRODUCTS, IN_SCALED_DOTS
from mor_ref.deviations.dot import is_tf32
from mor_ref.exact import dot, dot_binary32, dot_nvidia, dot_terms
from mor_ref.exact.dot_terms import Chunk, Factor, Product, Term, cut, fraction_bits
from mor_ref.exact.encoding import encode

Reference = Callable[..., Any]


_SUMS = (dot_nvidia.t_fdpa, dot_nvidia.gst_fdpa)


@deviation(*_SUMS, rules=("DOT-002", "DOT-007"), domain=DOTS)
def dot_e0_one_higher(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """e0 is one more, as on the previous architecture: a bit of a small sum is lost."""
    found: Chunk = reference(part, c, replace(profile, zero_exponent=profile.zero_exponent + 1))
    return found


@deviation(*_SUMS, rules=("DOT-002", "DOT-007"), domain=DOTS)
def dot_e0_one_lower(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """e0 is one less: a bit of a small sum is added up."""
    found: Chunk = reference(part, c, replace(profile, zero_exponent=profile.zero_exponent - 1))
    return found


def _is_f16(_part: list[Product], _c: float, profile: DotProfile) -> bool:
    return profile.result == "f16"


@deviation(
    dot_nvidia.t_fdpa,
    where=_is_f16,
    rules=("DOT-002", "DOT-007"),
    domain=(*DOTS_ALONE, *IN_PRODUCTS),
    exemptions=dict.fromkeys(IN_PRODUCTS, "No product of FP8 has a bit that e0 cuts."),
)
def dot_f16_has_e0_of_binary32(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """With results in f16, e0 is taken from the same instruction with results in binary32."""
    more = formats["f16"].smallest_exponent - formats["f32"].smallest_exponent
    found: Chunk = reference(part, c, replace(profile, zero_exponent=profile.zero_exponent - more))
    return found


@deviation(dot_nvidia.cut_chunk, rules=("DOT-007",), domain=DOTS)
def dot_c_has_no_exponent(
    reference: Reference, terms: list[Term], c: float, profile: DotProfile
) -> Chunk:
    """The largest exponent is taken from the products, even if c has a larger one."""
    if not terms or dot_terms.special_sum([*(t.value for t in terms), c]) is not None:
        found: Chunk = reference(terms, c, profile)
        return found
    exponent = max(term.exponent for term in terms)
    unit = exponent - fraction_bits(profile)
    whole = sum(cut(value, unit) for value in (*(term.value for term in terms), c))
    return Chunk(exponent, whole, dot_nvidia.result(whole * Fraction(2) ** unit, profile))


@deviation(dot_nvidia.term_of_c, rules=("DOT-004", "DOT-007"), domain=DOTS)
def dot_zero_c_has_smallest_exponent(reference: Reference, c: float, profile: DotProfile) -> Term:
    """A c of zero has the exponent of the smallest normal number of its format, and not e0."""
    found: Term = reference(c, profile)
    return found if c != 0 else Term(c, formats[profile.start].smallest_exponent)


@deviation(dot_nvidia.term_of_c, rules=("DOT-004", "DOT-007"), domain=DOTS)
def dot_subnormal_c_one_lower(reference: Reference, c: float, profile: DotProfile) -> Term:
    """The exponent of a subnormal c is its field minus the bias, as for a normal c."""
    found: Term = reference(c, profile)
    is_subnormal = c != 0 and abs(c) < math.ldexp(1.0, formats[profile.start].smallest_exponent)
    return found._replace(exponent=found.exponent - 1) if is_subnormal else found


@deviation(dot_terms.number, where=is_tf32, rules=("DOT-005", "DOT-008"), domain=DOTS_ALONE)
def dot_tf32_nan_before_cut(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """All bits of binary32 decide about NaN, also the bits that are read as 0."""
    found: Factor = reference(code, fmt, profile)
    return found._replace(value=math.nan) if math.isnan(fmt.value(code)) else found


def adds_to_c(_a: Any, _b: Any, c: float, profile: DotProfile, *_: Any) -> bool:
    """Return whether products are added to a given number."""
    del c
    return profile.family not in WITHOUT_C


def _starts_from_c(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    """Return whether c is not the last summand already."""
    return profile.family not in (*WITHOUT_C, "f32_pairwise")


FROM_ZERO = dict.fromkeys(IN_PRODUCTS, "A piece is added up from +0 on.")


@deviation(
    dot.dot_chunks, where=_starts_from_c, rules=("DOT-003",), domain=DOTS, exemptions=FROM_ZERO
)
def dot_c_added_to_the_row(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """All products are added up first, and c is added to their sum, in an epilogue."""
    chunks: list[Chunk] = reference(a, b, 0.0, profile, *more)
    if chunks:
        chunks[-1] = replace(chunks[-1], c=total(chunks[-1].c, c, profile))
    return chunks


def total(x: float, y: float, profile: DotProfile) -> float:
    """Return the nearest number to a sum in the format of the result."""
    found = dot_binary32.total(x, y)
    if profile.result == "f32" or not math.isfinite(found):
        return found
    fmt = formats[profile.result]
    return fmt.value(encode(found, fmt, "rne", SpecialCases(overflow="ieee")))


def _sums_of_bits(bits: int, families: tuple[str, ...], domain: tuple[str, ...]) -> Deviation:
    """Return the deviation of an accumulator that wraps."""

    def where(_terms: list[Term], _c: float, profile: DotProfile) -> bool:
        return profile.family in families

    def wrapped(reference: Reference, terms: list[Term], c: float, profile: DotProfile) -> Chunk:
        found: Chunk = reference(terms, c, profile)
        half, whole = 1 << bits - 1, found.cut_sum or 0
        kept = (whole + half) % (1 << bits) - half
        if kept == whole or found.exponent is None:
            return found
        unit = found.exponent - fraction_bits(profile)
        return Chunk(found.exponent, kept, dot_nvidia.result(kept * Fraction(2) ** unit, profile))

    return Deviation(
        f"dot_sums_of_{bits}_bits",
        f"A sum of cut terms is kept in {bits} bits, and wraps.",
        ("DOT-007",),
        domain,
        (Change(dot_nvidia.cut_chunk, wrapped, where),),
    )


DOT_SUMS_OF_32_BITS = _sums_of_bits(32, ("t_fdpa", "st_fdpa"), DOTS)
DOT_SUMS_OF_48_BITS = _sums_of_bits(48, ("gst_fdpa",), IN_SCALED_DOTS)


@deviation(dot_nvidia.cut_chunk, rules=("DOT-007",), domain=DOTS)
def dot_c_is_not_cut(
    reference: Reference, terms: list[Term], c: float, profile: DotProfile
) -> Chunk:
    """The cut products and all bits of c are added, and then rounded."""
    found: Chunk = reference(terms, c, profile)
    if found.exponent is None or dot_terms.special_sum([*(t.value for t in terms), c]) is not None:
        return found
    unit = found.exponent - fraction_bits(profile)
    whole = Fraction((found.cut_sum or 0) - cut(c, unit)) * Fraction(2) ** unit
    return replace(found, c=dot_nvidia.result(whole + Fraction(c), profile))


def _has_no_scales(*arguments: Any) -> bool:
    is_plain = len(arguments) < 6 or arguments[5] is None
    return is_plain and arguments[3].family == "t_fdpa"


@deviation(
    dot.dot_chunks,
    where=_has_no_scales,
    rules=("DOT-003",),
    domain=(*DOTS_ALONE, *IN_PRODUCTS),
    exemptions={"dot_chunks": "A row is one chunk, and has one accumulator."},
)
def dot_two_accumulators(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """Even and odd chunks have an accumulator each, which are added at the end."""
    size, found = profile.chunk, []
    for first, start in ((0, c), (size, 0.0)):
        places = [k for n in range(first, len(a), 2 * size) for k in range(n, n + size)]
        rows = ([row[k] for k in places if k < len(row)] for row in (a, b))
        found.append(reference(*rows, start, profile, *more))
    chunks: list[Chunk] = found[0]
    if found[1]:
        last = chunks[-1]
        chunks[-1] = replace(last, c=total(last.c, found[1][-1].c, profile))
    return chunks


@deviation(dot_nvidia.gst_fdpa, rules=("DOT-009",), domain=IN_SCALED_DOTS)
def dot_groups_are_halved(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Eight products are summed before they are cut."""
    del reference
    size = GROUP // 2
    groups = [part[k : k + size] for k in range(0, len(part), size)]
    return _cut_groups(groups, c, profile)


@deviation(dot_nvidia.gst_fdpa, rules=("DOT-009",), domain=IN_SCALED_DOTS)
def dot_groups_are_doubled(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """Two groups with the same scales are summed before they are cut, as a block of 32."""
    del reference
    groups: list[list[Product]] = []
    for k in range(0, len(part), GROUP):
        group, before = part[k : k + GROUP], groups[-1] if k % (2 * GROUP) else None
        if before and _scales(before[0]) == _scales(group[0]):
            before += group
        else:
            groups.append(group)
    return _cut_groups(groups, c, profile)


def _cut_groups(groups: list[list[Product]], c: float, profile: DotProfile) -> Chunk:
    terms = [dot_nvidia.term_of_group(group, profile) for group in groups]
    return dot_nvidia.cut_chunk(terms, c, profile)


def _scales(one: Product) -> tuple[Factor, Factor]:
    return one.scale_a, one.scale_b


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
