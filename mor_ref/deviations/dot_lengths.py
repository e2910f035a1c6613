"""Dot products that differ: chunks of another length, in promoted sums too."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import CUTS, DotProfile
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.deviations.domains import DOTS
from mor_ref.deviations.dot import is_of_nvidia
from mor_ref.exact import dot, dot_nvidia
from mor_ref.exact.dot_terms import Chunk, Product

_FILLED = {"dot_chunks": "Zeros that fill a chunk change nothing: c is 0, too, or is larger."}


def _is_halved(profile: DotProfile) -> bool:
    return profile.family in (*CUTS, "e_fdpa", "ftz_mul_add")


def _is_doubled(profile: DotProfile) -> bool:
    return is_of_nvidia(profile) or profile.family == "e_fdpa"


def _longer(
    name: str,
    summary: str,
    factor: Fraction,
    where: Callable[[DotProfile], bool],
    exemptions: Mapping[str, str],
) -> Deviation:
    """Return the deviation of chunks that are longer by a factor."""

    def length(reference: Callable[..., Any], profile: DotProfile) -> int:
        return int(reference(profile) * factor)

    def within(
        reference: Callable[..., Any], part: list[Product], c: float, profile: DotProfile
    ) -> Chunk:
        found: Chunk = reference(part, c, replace(profile, chunk=int(profile.chunk * factor)))
        return found

    changes = Change(dot.chunk_length, length, where), Change(dot_nvidia.promoted, within)
    return Deviation(name, summary, ("DOT-003",), DOTS, changes, exemptions)


DOT_CHUNKS_ARE_HALF_AS_LONG = _longer(
    "dot_chunks_are_half_as_long",
    "A chunk has half of its products, as in the instruction of another architecture.",
    Fraction(1, 2),
    _is_halved,
    {},
)
DOT_CHUNKS_ARE_TWICE_AS_LONG = _longer(
    "dot_chunks_are_twice_as_long",
    "A chunk has twice as many products.",
    Fraction(2),
    _is_doubled,
    _FILLED,
)

DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
