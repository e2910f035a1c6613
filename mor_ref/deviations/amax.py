"""Amaxes that differ."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import AMAXES, IN_MIXED, IN_MX, IN_NVFP4, IN_SCALES
from mor_ref.deviations.exemptions import WITHOUT_NAN
from mor_ref.exact import mx, nvfp4
from mor_ref.exact.arithmetic import FLT_MAX, rn32
from mor_ref.exact.quantization import to_bf16
from mor_ref.exact.scales import IdealScale, Scale, amax, group_mantissa, scale_of_block

Reference = Callable[..., Any]
_EVERY = (amax, nvfp4.amax_of, mx.amax_of)
_RULES = ("SCL-001", "NVF-002", "MXS-002")
_MANTISSA_OF_NAN = 0x7FFFFF
_WITH_INFINITY = tuple(dict.fromkeys((*IN_NVFP4, *IN_MX)))
_WITHOUT_NAN = tuple(dict.fromkeys((*IN_SCALES, *IN_NVFP4, *IN_MIXED)))


@deviation(*_EVERY, rules=_RULES, domain=AMAXES)
def amax_without_magnitude(reference: Reference, numbers: Iterable[float]) -> float:
    """Negative numbers do not count in amax or block_amax."""
    return float(reference([x for x in numbers if not x < 0]))


@deviation(*_EVERY, rules=_RULES, domain=AMAXES)
def amax_stops_at_infinity(_: Reference, numbers: Iterable[float]) -> float:
    """Infinities count as FLT_MAX in amax or block_amax."""
    return min(max((abs(x) for x in numbers if not math.isnan(x)), default=0.0), FLT_MAX)


@deviation(
    nvfp4.amax_of,
    mx.amax_of,
    rules=("NVF-002", "MXS-002"),
    domain=_WITH_INFINITY,
)
def amax_ignores_infinity(reference: Reference, numbers: Iterable[float]) -> float:
    """An infinity does not count in amax or block_amax."""
    return float(reference([x for x in numbers if not math.isinf(x)]))


@deviation(
    amax, nvfp4.amax_of, rules=("SCL-001", "NVF-002"), domain=_WITHOUT_NAN, exemptions=WITHOUT_NAN
)
def nan_blanks_amax(reference: Reference, numbers: Iterable[float]) -> float:
    """With a NaN, amax or block_amax is 0: the block is scaled as a block of zeros."""
    found = list(numbers)
    return 0.0 if any(math.isnan(x) for x in found) else float(reference(found))


@deviation(*_EVERY, rules=_RULES, domain=AMAXES)
def amax_has_a_floor(reference: Reference, numbers: Iterable[float]) -> float:
    """Amax or block_amax is at least 1e-12, against a division by zero."""
    return max(float(reference(numbers)), rn32(Fraction(1, 10**12)))


@deviation(*_EVERY, rules=_RULES, domain=AMAXES)
def amax_in_bf16(reference: Reference, numbers: Iterable[float]) -> float:
    """Amax or block_amax is rounded to bfloat16; a finite one stays finite."""
    found = float(reference(numbers))
    rounded = formats["bf16"].value(to_bf16(found))
    return found if math.isinf(found) else min(rounded, formats["bf16"].largest)


@deviation(*_EVERY, rules=_RULES, domain=AMAXES)
def subnormal_amax_is_zero(reference: Reference, numbers: Iterable[float]) -> float:
    """A subnormal amax or block_amax is flushed to zero."""
    found = float(reference(numbers))
    return found if found >= 2.0**-126 else 0.0


# ------------------------------------------------- an amax that is not finite, and its scale


def _with_infinity(_: Reference, numbers: Iterable[float]) -> float:
    return max((abs(x) for x in numbers if not math.isnan(x)), default=0.0)


def _with_nan(reference: Reference, numbers: Iterable[float]) -> float:
    found = list(numbers)
    return math.nan if any(math.isnan(x) for x in found) else float(reference(found))


def _of_no_number(_largest: float, group_amax: float) -> bool:
    return not math.isfinite(group_amax)


def _for_no_number(_kind: Scaling, _largest: float, amax: float, _shared: int) -> bool:
    return not math.isfinite(amax)


def _mantissa(_: Reference, _largest: float, group_amax: float) -> int:
    """Return the mantissa of largest / amax, which is 0 or NaN."""
    return _MANTISSA_OF_NAN if math.isnan(group_amax) else 0


def _scale(_: Reference, kind: Scaling, _largest: float, amax: float, shared: int) -> Scale:
    """Return the scale largest / amax, 0 or NaN; in e8m0, the scale of its exponent field."""
    if math.isnan(amax):
        return Scale(math.nan, None if kind == "fp32" else 0xFF)
    mantissa = shared if kind == "gam" else 0
    return Scale(0.0, None) if kind == "fp32" else Scale(IdealScale(mantissa, -127).value, 0)


_ITS_SCALE = (
    Change(group_mantissa, _mantissa, _of_no_number),
    Change(scale_of_block, _scale, _for_no_number),
)
infinity_propagates_into_amax = Deviation(
    "infinity_propagates_into_amax",
    "An infinite element makes amax infinite, and the scale 0 or, as an exponent, the smallest.",
    ("SCL-001",),
    (*IN_SCALES, *IN_MIXED),
    (Change(amax, _with_infinity), *_ITS_SCALE),
)
nan_propagates_into_amax = Deviation(
    "nan_propagates_into_amax",
    "A NaN makes amax or block_amax NaN, and with it the scale and the whole block.",
    ("SCL-001", "NVF-002"),
    _WITHOUT_NAN,
    (Change(amax, _with_nan), Change(nvfp4.amax_of, _with_nan), *_ITS_SCALE),
    WITHOUT_NAN,
)
DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
