"""Dot products that differ: codes that are read in the format of others."""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DOTS, DOTS_ALONE
from mor_ref.exact import dot, dot_terms
from mor_ref.exact.dot_terms import Chunk, Factor

Reference = Callable[..., Any]


def _is_e4m3(_code: int, fmt: Format, _profile: DotProfile) -> bool:
    return fmt.name == "e4m3"


@deviation(dot_terms.number, where=_is_e4m3, rules=("DOT-001", "DOT-004"), domain=DOTS)
def dot_e4m3_read_as_e5m2(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """Codes of e4m3 are read as codes of e5m2."""
    del fmt
    found: Factor = reference(code, formats["e5m2"], profile)
    return found


@deviation(dot_terms.number, where=_is_e4m3, rules=("DOT-001", "DOT-008"), domain=DOTS)
def dot_nan_of_e4m3_is_a_number(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """The NaN of e4m3 is 480, the number that its code would have."""
    found: Factor = reference(code, fmt, profile)
    sign = -1.0 if code & fmt.sign_bit else 1.0
    return Factor(480.0 * sign, 8) if math.isnan(found.value) else found


def _is_fnuz(_code: int, fmt: Format, _profile: DotProfile) -> bool:
    return fmt.name.endswith("fnuz")


@deviation(dot_terms.number, where=_is_fnuz, rules=("DOT-001", "DOT-018"), domain=DOTS_ALONE)
def dot_fnuz_read_as_ocp(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """Codes of CDNA 3 are read in the FP8 formats of OCP."""
    found: Factor = reference(code, formats[fmt.name.removesuffix("fnuz")], profile)
    return found


def _differ(_a: Any, _b: Any, _c: float, _profile: Any, of: tuple[Format, Format], *_: Any) -> bool:
    return of[0] != of[1] and of[0].bits == of[1].bits


@deviation(dot.dot_chunks, where=_differ, rules=("DOT-001", "DOT-002"), domain=DOTS)
def dot_formats_swapped(
    reference: Reference, a: Any, b: Any, c: float, profile: DotProfile, of: Any, *scales: Any
) -> list[Chunk]:
    """Codes of a are read in the format of b, and codes of b in the format of a."""
    found: list[Chunk] = reference(a, b, c, profile, of[::-1], *scales)
    return found


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
