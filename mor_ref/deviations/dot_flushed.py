"""Dot products that differ: subnormal operands, scales, c and results that become zeros."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.dot import WITHOUT_C, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS, DOTS, IN_DOT, IN_PRODUCTS, IN_SCALED_DOTS
from mor_ref.deviations.dot import flushed
from mor_ref.deviations.dot_exponents import FROM_ZERO, adds_to_c
from mor_ref.exact import dot, dot_amd, dot_binary32, dot_nvidia, dot_terms
from mor_ref.exact.dot_binary32 import product, total
from mor_ref.exact.dot_terms import Chunk, Factor, Product

Reference = Callable[..., Any]
Flush = Callable[[float, str], float]
_IN_BINARY32 = ("f32_fma", "f32_pairwise")  # families of operations that keep the signs of zeros
OF_SUMS = ("DOT-010", "DOT-011", "DOT-012", "DOT-013", "DOT-014", "DOT-015", "DOT-017")


def to_plus_zero(x: float, name: str) -> float:
    """Return a number, or +0 if it is zero or subnormal in a format."""
    return flushed(x, name) or 0.0


# ---------------------------------------------------------------- results of chunks


def has_binary32(*arguments: Any) -> bool:
    """Return whether the profile among the arguments has results in binary32."""
    return any(getattr(one, "result", "") == "f32" for one in arguments)


def of_sums(flush: Flush, where: Callable[..., bool]) -> tuple[Change, ...]:
    """Return the steps in which a family rounds a sum, each followed by a flush."""

    def result(reference: Reference, value: Any, profile: DotProfile) -> float:
        return flush(float(reference(value, profile)), profile.result)

    def nearest(reference: Reference, value: Any) -> float:
        return flush(float(reference(value)), "f32")

    def chunk(reference: Reference, part: Any, c: float, profile: DotProfile) -> Chunk:
        found: Chunk = reference(part, c, profile)
        return replace(found, c=flush(found.c, "f32"))

    def pairs(_: Reference, part: list[Product], c: float, profile: DotProfile) -> Chunk:
        del profile
        row = [flush(product(one.a.value, one.b.value), "f32") for one in part]
        while len(row) > 1:
            sums = [flush(total(*row[k : k + 2]), "f32") for k in range(0, len(row) - 1, 2)]
            row = sums + row[2 * len(sums) :]
        return Chunk(None, None, flush(total(row[0], c), "f32") if row else c)

    return (
        Change(dot_nvidia.result, result, where),
        Change(dot_nvidia.promoted, chunk),
        Change(dot_amd.nearest, nearest),
        Change(dot_binary32.exact_chunk, chunk),
        Change(dot_binary32.f32_fma, chunk),
        Change(dot_binary32.f32_pairwise, pairs),
    )


DOT_SUBNORMAL_SUMS_FLUSHED = Deviation(
    "dot_subnormal_sums_flushed",
    "A subnormal sum in binary32 becomes +0, and so does a sum of -0.",
    OF_SUMS,
    DOTS,
    of_sums(to_plus_zero, has_binary32),
)
DOT_SUBNORMAL_SUMS_FLUSHED_WITH_SIGN = Deviation(
    "dot_subnormal_sums_flushed_with_sign",
    "A subnormal sum becomes a zero of its sign.",
    OF_SUMS,
    DOTS,
    of_sums(flushed, lambda *_: True),
)


def has_inner_sums(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    """Return whether a result is not the only sum of a row."""
    return profile.family not in ("exact", *WITHOUT_C)


def _at_the_end(name: str, summary: str, flush: Flush) -> Deviation:
    """Return the deviation of a flush behind the last chunk of a row."""

    def rows(
        reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
    ) -> list[Chunk]:
        *chunks, last = reference(a, b, c, profile, *more) or [Chunk(None, None, c)]
        return [*chunks, replace(last, c=flush(last.c, profile.result))]

    changes = (Change(dot.dot_chunks, rows, has_inner_sums),)
    return Deviation(name, summary, ("DOT-001", "DOT-003"), DOTS, changes)


DOT_SUBNORMAL_RESULTS_FLUSHED = _at_the_end(
    "dot_subnormal_results_flushed",
    "A subnormal result becomes +0, and sums before it stay.",
    to_plus_zero,
)
DOT_SUBNORMAL_RESULTS_FLUSHED_WITH_SIGN = _at_the_end(
    "dot_subnormal_results_flushed_with_sign",
    "A subnormal result becomes a zero of its sign, and sums before it stay.",
    flushed,
)


# ---------------------------------------------------------------- c


def c_of_chunk(flush: Flush) -> Callable[..., float]:
    """Return the step in which a chunk takes c, followed by a flush."""

    def taken(reference: Reference, c: float, start: int, profile: DotProfile) -> float:
        return flush(
            float(reference(c, start, profile)), profile.result if start else profile.start
        )

    return taken


def takes_c(_c: float, _start: int, profile: DotProfile) -> bool:
    """Return whether products are added to a given number."""
    return profile.family not in WITHOUT_C


DOT_SUBNORMAL_C_FLUSHED = Deviation(
    "dot_subnormal_c_flushed",
    "Each chunk takes a subnormal c as a zero.",
    ("DOT-003", "DOT-004"),
    DOTS,
    (Change(dot_amd.c_of_chunk, c_of_chunk(flushed), takes_c),),
)


def _keeps_zeros_of_c(_c: float, _start: int, profile: DotProfile) -> bool:
    return profile.family in (*_IN_BINARY32, "promoted")


DOT_SUBNORMAL_C_BECOMES_PLUS_ZERO = Deviation(
    "dot_subnormal_c_becomes_plus_zero",
    "An operation of binary32 takes a subnormal c as +0, and loses its sign.",
    ("DOT-003", "DOT-011", "DOT-013", "DOT-014"),
    IN_DOT,
    (Change(dot_amd.c_of_chunk, c_of_chunk(to_plus_zero), _keeps_zeros_of_c),),
    dict.fromkeys(IN_PRODUCTS, "Without scales, no sum of FP8 products is subnormal."),
)


@deviation(
    dot.dot_chunks,
    where=adds_to_c,
    rules=("DOT-003", "DOT-004"),
    domain=DOTS,
    exemptions=FROM_ZERO,
)
def dot_subnormal_given_c_flushed(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """A given c becomes zero if it is subnormal, and later ones stay."""
    found: list[Chunk] = reference(a, b, flushed(c, profile.start), profile, *more)
    return found


# ---------------------------------------------------------------- operands and scales


def has_exponents(_code: int, fmt: Format, _profile: DotProfile) -> bool:
    """Return whether a format has subnormal numbers."""
    return fmt.exponent_bits > 0


def _keeps_zeros(_code: int, fmt: Format, profile: DotProfile) -> bool:
    return fmt.exponent_bits > 0 and profile.family in _IN_BINARY32


def to_plus(reference: Reference, code: int, fmt: Format, profile: DotProfile) -> Factor:
    """Return an operand, or +0 if it is zero or subnormal in its format."""
    found: Factor = reference(code, fmt, profile)
    return found._replace(value=0.0) if abs(found.value) < (fmt.smallest_normal or 0) else found


def to_signed(reference: Reference, code: int, fmt: Format, profile: DotProfile) -> Factor:
    """Return an operand, or a zero of its sign if it is subnormal in its format."""
    found = to_plus(reference, code, fmt, profile)
    is_negative = found.value == 0 and code & fmt.sign_bit
    return found._replace(value=-0.0) if is_negative else found


DOT_SUBNORMAL_OPERANDS_FLUSHED = Deviation(
    "dot_subnormal_operands_flushed",
    "A subnormal operand becomes zero.",
    ("DOT-001", "DOT-004"),
    DOTS,
    (Change(dot_terms.number, to_plus, has_exponents),),
)
DOT_SUBNORMAL_OPERANDS_FLUSHED_WITH_SIGN = Deviation(
    "dot_subnormal_operands_flushed_with_sign",
    "An operation of binary32 takes a subnormal operand as a zero of its sign.",
    ("DOT-001", "DOT-013", "DOT-014"),
    ("dot",),
    (Change(dot_terms.number, to_signed, _keeps_zeros),),
)


def _has_fractions(_code: int, fmt: Format) -> bool:
    return fmt.mantissa_bits > 0


@deviation(
    dot_terms.scale,
    where=_has_fractions,
    rules=("DOT-006",),
    domain=(*IN_SCALED_DOTS, *DOT_INTEGERS),
)
def dot_subnormal_scales_flushed(reference: Reference, code: int, fmt: Format) -> Factor:
    """A subnormal scale becomes zero; a scale in e8m0 is never subnormal."""
    found: Factor = reference(code, fmt)
    return found._replace(value=flushed(found.value, fmt.name))


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
