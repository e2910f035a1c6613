"""Dot products that differ: results in f16."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DOTS_ALONE, IN_PRODUCTS
from mor_ref.deviations.dot import flushed
from mor_ref.exact import dot_nvidia, dot_terms

Reference = Callable[..., Any]


def _is_f16(_value: Fraction, profile: DotProfile) -> bool:
    return profile.result == "f16"


@deviation(
    dot_nvidia.result,
    where=_is_f16,
    rules=("DOT-010",),
    domain=(*DOTS_ALONE, *IN_PRODUCTS),
    exemptions=dict.fromkeys(IN_PRODUCTS, "Sums of FP8 products on Hopper have 20 bits at most."),
)
def dot_f16_results_rounded_twice(
    reference: Reference, value: Fraction, profile: DotProfile
) -> float:
    """A sum in f16 is rounded to binary32 first."""
    fmt = formats["f32"]
    return float(reference(Fraction(dot_terms.rounded(value, 23, fmt, "rne")), profile))


@deviation(dot_nvidia.result, where=_is_f16, rules=("DOT-010",), domain=(*DOTS_ALONE, *IN_PRODUCTS))
def dot_f16_subnormal_sums_flushed(
    reference: Reference, value: Fraction, profile: DotProfile
) -> float:
    """A subnormal sum in f16 becomes zero."""
    return flushed(float(reference(value, profile)), profile.result) or 0.0


@deviation(
    dot_nvidia.result,
    where=_is_f16,
    rules=("DOT-010",),
    domain=(*DOTS_ALONE, *IN_PRODUCTS),
)
def dot_f16_saturates(reference: Reference, value: Fraction, profile: DotProfile) -> float:
    """A sum in f16 beyond the largest number becomes the largest."""
    found = float(reference(value, profile))
    return math.copysign(formats["f16"].largest, found) if math.isinf(found) else found


@deviation(dot_nvidia.result, where=_is_f16, rules=("DOT-010",), domain=(*DOTS_ALONE, *IN_PRODUCTS))
def dot_f16_results_cut(_: Reference, value: Fraction, profile: DotProfile) -> float:
    """A sum in f16 is rounded toward zero, and not to nearest."""
    fmt = formats[profile.result]
    return dot_terms.rounded(value, fmt.mantissa_bits, fmt, "rtz") + 0.0


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
