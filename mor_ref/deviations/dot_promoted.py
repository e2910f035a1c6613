"""Dot products that differ: how partial sums are scaled and added to c in promoted."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import IN_DOT, IN_PRODUCTS
from mor_ref.deviations.dot_exponents import FROM_ZERO
from mor_ref.deviations.dot_loops import factor_of, first_products, has_scales
from mor_ref.exact import dot, dot_binary32, dot_nvidia
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.dot import Scales
from mor_ref.exact.dot_terms import ONE, Chunk, Product

Reference = Callable[..., Any]
_WITHOUT_SCALES = dict.fromkeys(("dot", *IN_PRODUCTS), "Without scales, both factors are 1.")


def _is_promoted(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    return profile.family == "promoted"


def _is_promoted_profile(profile: DotProfile) -> bool:
    return profile.family == "promoted"


def _instruction(profile: DotProfile) -> DotProfile:
    """Return the profile of the instruction that adds up a partial sum."""
    return replace(profile, family="t_fdpa", scales=())


@deviation(dot.dot_chunks, where=_is_promoted, rules=("DOT-011",), domain=IN_DOT)
def dot_promoted_tail_left_out(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, *more: Any
) -> list[Chunk]:
    """The last products are lost if they are less than 128: their sum is never promoted."""
    return first_products(reference, len(a) // PERIOD * PERIOD, a, b, c, profile, *more)


@deviation(
    dot.dot_chunks,
    where=_is_promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
)
def dot_promoted_tail_added_by_instructions(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, *scales: Any
) -> list[Chunk]:
    """The last products are added to c as in t_fdpa, without scales, if they are less than 128."""
    k = len(a) // PERIOD * PERIOD
    found = first_products(reference, k, a, b, c, profile, of, *scales)
    if k < len(a):
        plain = _instruction(profile)
        last = reference(a[k:], b[k:], found[-1].c, plain, of, None)[-1]
        found.append(Chunk(None, None, last.c))
    return found


@deviation(
    dot.dot_chunks,
    where=_is_promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=_WITHOUT_SCALES,
)
def dot_promoted_tail_without_scales(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, *scales: Any
) -> list[Chunk]:
    """The last products are added up and then added to c, without scales, if less than 128."""
    k = len(a) // PERIOD * PERIOD
    found = first_products(reference, k, a, b, c, profile, of, *scales)
    if k < len(a):
        last = reference(a[k:], b[k:], 0.0, profile, of, None)[-1]
        found.append(Chunk(None, None, dot_binary32.total(last.c, found[-1].c)))
    return found


@deviation(dot.dot_chunks, where=_is_promoted, rules=("DOT-011",), domain=IN_DOT)
def dot_promoted_sums_go_on(
    reference: Reference,
    a: Any,
    b: Any,
    c: float,
    profile: DotProfile,
    of: Any,
    scales: Scales | None = None,
) -> list[Chunk]:
    """A partial sum goes on from the one before, which is in c already, and not from 0."""
    plain, partial, found = _instruction(profile), 0.0, []
    for k in range(0, len(a), PERIOD):
        part = slice(k, k + PERIOD)
        partial = reference(a[part], b[part], partial, plain, of, None)[-1].c
        c = dot_binary32.fused(factor_of(scales, k), partial, c)
        found.append(Chunk(None, None, c))
    return found


@deviation(
    dot_nvidia.promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=dict.fromkeys(
        ("dot", *IN_PRODUCTS), "Without scales, the product is the partial sum itself."
    ),
)
def dot_promoted_unfused(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The scaled partial sum is rounded before it is added to c."""
    partial: Chunk = reference(part, -0.0, profile)
    return replace(partial, c=dot_binary32.total(partial.c, c))


@deviation(
    dot_nvidia.promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=_WITHOUT_SCALES,
)
def dot_promoted_by_one_scale_after_the_other(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The scale of a multiplies the partial sum, and the fused operation has the scale of b."""
    first = part[0]
    unscaled = [one._replace(scale_a=ONE, scale_b=ONE) for one in part]
    partial = reference(unscaled, 0.0, profile).c
    inner = dot_binary32.product(first.scale_a.value, partial)
    return Chunk(None, None, dot_binary32.fused(first.scale_b.value, inner, c))


@deviation(
    dot_nvidia.promoted,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=_WITHOUT_SCALES,
)
def dot_promoted_with_exact_scales(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The product of both scales is not rounded before it multiplies the partial sum."""
    first, found = part[0], reference(part, c, profile)
    unscaled = [one._replace(scale_a=ONE, scale_b=ONE) for one in part]
    factors = (first.scale_a.value, first.scale_b.value, reference(unscaled, 0.0, profile).c)
    if not all(map(math.isfinite, (*factors, c, found.c))):
        return Chunk(None, None, found.c)
    exact = math.prod(map(Fraction, factors), start=Fraction(1)) + Fraction(c)
    return Chunk(None, None, rn32(exact))


@deviation(dot.chunk_length, where=_is_promoted_profile, rules=("DOT-011",), domain=IN_DOT)
def dot_promoted_half_as_often(reference: Reference, profile: DotProfile) -> int:
    """A partial sum has 256 products, and not 128."""
    return 2 * int(reference(profile))


@deviation(dot.chunk_length, where=_is_promoted_profile, rules=("DOT-011",), domain=IN_DOT)
def dot_promoted_twice_as_often(reference: Reference, profile: DotProfile) -> int:
    """A partial sum has 64 products, and not 128."""
    return int(reference(profile)) // 2


@deviation(
    dot.dot_chunks, where=_is_promoted, rules=("DOT-011",), domain=IN_DOT, exemptions=FROM_ZERO
)
def dot_promoted_from_c_on(
    reference: Reference,
    a: Any,
    b: Any,
    c: float,
    profile: DotProfile,
    of: Any,
    scales: Scales | None = None,
) -> list[Chunk]:
    """The first partial sum starts from c, which instructions cut and the scales multiply."""
    plain, partial, value, found = _instruction(profile), c, 0.0, []
    for k in range(0, len(a), PERIOD):
        part = slice(k, k + PERIOD)
        partial = reference(a[part], b[part], partial, plain, of, None)[-1].c
        value, partial = dot_binary32.fused(factor_of(scales, k), partial, value), 0.0
        found.append(Chunk(None, None, value))
    return found


def _has_scales(*arguments: Any) -> bool:
    return has_scales(*arguments) and _is_promoted(*arguments)


def _scaled_and_added(chunks: list[Chunk], scales: Scales, c: float) -> list[Chunk]:
    """Return chunks whose last sum is scaled by the first two scales, and added to c."""
    if not chunks:
        return chunks
    last = dot_binary32.fused(factor_of(scales, 0), chunks[-1].c, c)
    return [*chunks[:-1], replace(chunks[-1], c=last)]


@deviation(
    dot.dot_chunks,
    where=_has_scales,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=_WITHOUT_SCALES,
)
def dot_promoted_scaled_at_the_end(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, scales: Scales
) -> list[Chunk]:
    """Partial sums are added to c without scales; the first two multiply the sum of the row."""
    return _scaled_and_added(reference(a, b, c, profile, of, None), scales, -0.0)


@deviation(
    dot.dot_chunks,
    where=_has_scales,
    rules=("DOT-011",),
    domain=IN_DOT,
    exemptions=_WITHOUT_SCALES,
)
def dot_promoted_scaled_before_c(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, scales: Scales
) -> list[Chunk]:
    """The first two scales multiply the sum of the row, which a fused operation adds to c."""
    return _scaled_and_added(reference(a, b, 0.0, profile, of, None), scales, c)


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
