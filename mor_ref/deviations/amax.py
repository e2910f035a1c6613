"""Amaxes that are not finite, and their scales: two steps of different rules are wrong at once."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from mor_ref.definitions.scales import Scaling
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.deviations.domains import IN_NVFP4, IN_SCALES, joined
from mor_ref.deviations.exemptions import WITHOUT_NAN
from mor_ref.exact import nvfp4
from mor_ref.exact.scales import IdealScale, Scale, amax, group_mantissa, scale_of_block

Reference = Callable[..., Any]
_MANTISSA_OF_NAN = 0x7FFFFF
_WITHOUT_NAN = tuple(dict.fromkeys((*IN_SCALES, *IN_NVFP4, *joined("AMAXES"))))


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
    (*IN_SCALES, *joined("AMAXES")),
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
