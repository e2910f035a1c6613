"""Dot products that differ: the numbers of scales."""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS, IN_SCALED_DOTS
from mor_ref.exact import dot_terms
from mor_ref.exact.dot_terms import Factor

Reference = Callable[..., Any]


def _is_ue4m3(_code: int, fmt: Format) -> bool:
    return fmt.name == "e4m3"


@deviation(
    dot_terms.scale,
    where=_is_ue4m3,
    rules=("DOT-006",),
    domain=IN_SCALED_DOTS,
    exemptions={"matmul": "Scales are numbers, and none is negative."},
)
def dot_scales_have_signs(_: Reference, code: int, fmt: Format) -> Factor:
    """The sign bit of a scale in e4m3 is read."""
    return dot_terms.factor(fmt.value(code), fmt)


def _is_e8m0(_code: int, fmt: Format) -> bool:
    return fmt.is_power_of_two


@deviation(dot_terms.scale, where=_is_e8m0, rules=("DOT-006",), domain=IN_SCALED_DOTS)
def dot_smallest_scale_is_zero(reference: Reference, code: int, fmt: Format) -> Factor:
    """The scale of code 0 is the bits code << 23: zero."""
    found: Factor = reference(code, fmt)
    return Factor(0.0, found.exponent) if code == 0 else found


@deviation(dot_terms.scale, where=_is_e8m0, rules=("DOT-006", "DOT-008"), domain=IN_SCALED_DOTS)
def dot_nan_scale_is_a_number(reference: Reference, code: int, fmt: Format) -> Factor:
    """The scale of code 0xFF is 2^128, and not NaN."""
    found: Factor = reference(min(code, fmt.code_count - 2), fmt)
    return Factor(2 * found.value, found.exponent + 1) if code == fmt.code_count - 1 else found


@deviation(dot_terms.scale, rules=("DOT-006", "DOT-008"), domain=(*IN_SCALED_DOTS, *DOT_INTEGERS))
def dot_nan_scale_is_infinite(reference: Reference, code: int, fmt: Format) -> Factor:
    """A scale of NaN is infinite."""
    found: Factor = reference(code, fmt)
    return found._replace(value=math.inf) if math.isnan(found.value) else found


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
