"""Dot products that differ: subnormal numbers of several kinds become zeros at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.deviations.domains import DOT_INTEGERS, DOTS
from mor_ref.deviations.dot import flushed
from mor_ref.deviations.dot_flushed import (
    OF_SUMS,
    Flush,
    c_of_chunk,
    has_binary32,
    has_exponents,
    has_inner_sums,
    of_sums,
    takes_c,
    to_plus,
    to_plus_zero,
    to_signed,
)
from mor_ref.exact import dot, dot_amd, dot_binary32, dot_terms
from mor_ref.exact.dot_terms import Chunk, Factor

Reference = Callable[..., Any]


def _everything(name: str, summary: str, flush: Flush, operand: Callable[..., Factor]) -> Deviation:
    """Return the deviation of a program that flushes operands, c and results."""
    changes = (
        Change(dot_terms.number, operand, has_exponents),
        Change(dot_amd.c_of_chunk, c_of_chunk(flush), takes_c),
        *of_sums(flush, lambda *_: True),
    )
    return Deviation(name, summary, ("DOT-001", "DOT-003", *OF_SUMS), DOTS, changes)


DOT_SUBNORMALS_FLUSHED = _everything(
    "dot_subnormals_flushed",
    "Subnormal operands, c and sums all become zeros of their signs.",
    flushed,
    to_signed,
)
DOT_SUBNORMALS_BECOME_PLUS_ZERO = _everything(
    "dot_subnormals_become_plus_zero",
    "Subnormal operands, c and sums all become +0.",
    to_plus_zero,
    to_plus,
)


def _at_both_ends(
    name: str, summary: str, flush: Flush, operand: Callable[..., Factor]
) -> Deviation:
    """Return the deviation of a function that flushes its arguments and its result."""

    def rows(
        reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
    ) -> list[Chunk]:
        start = flush(c, profile.start)
        *chunks, last = reference(a, b, start, profile, *more) or [Chunk(None, None, start)]
        return [*chunks, replace(last, c=flush(last.c, profile.result))]

    changes = (
        Change(dot_terms.number, operand, has_exponents),
        Change(dot.dot_chunks, rows, has_inner_sums),
    )
    return Deviation(name, summary, ("DOT-001", "DOT-003"), DOTS, changes)


DOT_SUBNORMALS_FLUSHED_AT_BOTH_ENDS = _at_both_ends(
    "dot_subnormals_flushed_at_both_ends",
    "Subnormal operands, a given c and the result become zeros of their signs; other sums stay.",
    flushed,
    to_signed,
)
DOT_SUBNORMALS_BECOME_PLUS_ZERO_AT_BOTH_ENDS = _at_both_ends(
    "dot_subnormals_become_plus_zero_at_both_ends",
    "Subnormal operands, a given c and the result become +0; other sums stay.",
    to_plus_zero,
    to_plus,
)


def _is_wide(_code: int, fmt: Format, *_: Any) -> bool:
    return fmt.smallest_exponent == formats["f32"].smallest_exponent and fmt.mantissa_bits > 0


def _factor_in_binary32(reference: Reference, *code: Any) -> Factor:
    found: Factor = reference(*code)
    return found._replace(value=flushed(found.value, "f32"))


def _fused_with_ftz(reference: Reference, a: float, b: float, c: float) -> float:
    taken = (flushed(x, "f32") for x in (a, b, c))
    return flushed(float(reference(*taken)), "f32")


DOT_FLUSHED_IN_BINARY32 = Deviation(
    "dot_flushed_in_binary32",
    "Numbers and results that are subnormal in binary32 become zeros, as with -ftz=true.",
    ("DOT-001", "DOT-003", *OF_SUMS),
    (*DOTS, *DOT_INTEGERS),
    (
        Change(dot_terms.number, _factor_in_binary32, _is_wide),
        Change(dot_terms.scale, _factor_in_binary32, _is_wide),
        Change(dot_amd.c_of_chunk, c_of_chunk(flushed), has_binary32),
        *of_sums(flushed, has_binary32),
        Change(dot_binary32.fused, _fused_with_ftz),
    ),
)

DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
