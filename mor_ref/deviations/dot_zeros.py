"""Dot products that differ: the signs of zeros, and the c that is given."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DOTS, DOTS_ALONE, IN_DOT, IN_PRODUCTS
from mor_ref.exact import dot_amd, dot_binary32, dot_nvidia
from mor_ref.exact.dot_terms import Chunk, Product, Term

Reference = Callable[..., Any]
_SUMS = (
    dot_nvidia.t_fdpa,
    dot_nvidia.gst_fdpa,
    dot_binary32.exact_chunk,
    dot_amd.tr_fdpa,
    dot_amd.gtr_fdpa,
)
_OF_ZEROS = ("DOT-010", "DOT-012", "DOT-015", "DOT-017")


def _is_negative_zero(x: float) -> bool:
    return x == 0 and math.copysign(1.0, x) < 0


def _are_negative_zeros(part: list[Product]) -> bool:
    """Return whether all products of a chunk are -0, as IEEE 754 multiplies."""
    terms = (one.a.value * one.b.value * one.scale_a.value * one.scale_b.value for one in part)
    return bool(part) and all(map(_is_negative_zero, terms))


@deviation(
    *_SUMS,
    rules=_OF_ZEROS,
    domain=DOTS,
    exemptions=dict.fromkeys(IN_PRODUCTS, "An entry starts from +0, to which -0 adds nothing."),
)
def dot_negative_zeros_stay(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The sum of a c of -0 and of products that are all -0 is -0, as in IEEE 754."""
    found: Chunk = reference(part, c, profile)
    stays = _is_negative_zero(c) and _are_negative_zeros(part)
    return replace(found, c=-0.0) if stays else found


@deviation(*_SUMS, rules=_OF_ZEROS, domain=DOTS)
def dot_zero_c_is_left_out(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """A sum starts with its first product if c is a zero: if all products are -0, it is -0."""
    found: Chunk = reference(part, c, profile)
    return replace(found, c=-0.0) if c == 0 and _are_negative_zeros(part) else found


@deviation(
    dot_nvidia.promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=dict.fromkeys(
        ("dot", *IN_PRODUCTS), "Without scales, the factor is 1, and no partial sum is -0."
    ),
)
def dot_promoted_zero_c_is_left_out(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """A scaled partial sum is stored if c is a zero, and not added to it, so that it can be -0."""
    found: Chunk = reference(part, c or -0.0, profile)
    return found


def _is_binary32(_value: Fraction, profile: DotProfile) -> bool:
    return profile.result == "f32"


@deviation(dot_nvidia.result, where=_is_binary32, rules=("DOT-010",), domain=DOTS)
def dot_small_negative_sums_are_minus_zero(
    reference: Reference, value: Fraction, profile: DotProfile
) -> float:
    """A negative sum that becomes zero keeps its sign."""
    found = float(reference(value, profile))
    return -0.0 if found == 0 and value < 0 else found


@deviation(
    dot_amd.e_fdpa,
    rules=("DOT-015",),
    domain=("dot", *IN_PRODUCTS),
    exemptions=dict.fromkeys(IN_PRODUCTS, "A piece is added to +0, to which -0 adds nothing."),
)
def dot_cdna1_small_sums_are_plus_zero(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """A negative sum that rounds to zero on CDNA 1 is +0, as it is on tensor cores."""
    found: Chunk = reference(part, c, profile)
    return replace(found, c=found.c + 0.0)


def _has_c_of_its_own(_c: float, profile: DotProfile) -> bool:
    return profile.first_c != ""


@deviation(
    dot_nvidia.term_of_c, where=_has_c_of_its_own, rules=("DOT-004", "DOT-007"), domain=DOTS_ALONE
)
def dot_first_c_in_binary32(reference: Reference, c: float, profile: DotProfile) -> Term:
    """A given c in f16 has the exponent that it has in binary32."""
    found: Term = reference(c, replace(profile, first_c=""))
    return found


def _flushes(_c: float, _start: int, profile: DotProfile) -> bool:
    return profile.flushed_every > 0


@deviation(dot_amd.c_of_chunk, where=_flushes, rules=("DOT-016",), domain=("dot",))
def dot_cdna2_flushes_the_first_c_alone(
    reference: Reference, c: float, start: int, profile: DotProfile
) -> float:
    """An instruction after another one takes its c as it is, -0 among them."""
    return float(reference(c, start, profile)) if start == 0 else c


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
