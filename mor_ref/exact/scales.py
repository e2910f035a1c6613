"""amax, the ideal scale, and the three kinds of scales."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mor_ref.definitions.scales import Scaling
from mor_ref.exact.arithmetic import FLT_MAX, units_next_to
from mor_ref.exact.encoding import Ratio, floor_log2
from mor_ref.exact.step import step

_LARGEST_EXPONENT, _SMALLEST_EXPONENT = 127, -126
_BIAS = 127


@dataclass(frozen=True)
class IdealScale:
    """(1 + mantissa / 2^23) * 2^exponent; the exponent can be above all of binary32."""

    mantissa: int
    exponent: int

    @property
    def value(self) -> float:
        """The number itself, which may be above all binary32 numbers."""
        return math.ldexp(2**23 + self.mantissa, self.exponent - 23)


@dataclass(frozen=True)
class Scale:
    """The scale of a block; exponent_code is the stored exponent, None with fp32 scales."""

    value: float
    exponent_code: int | None

    @property
    def stored_exponent(self) -> int:
        """The stored exponent; 0 if there is none."""
        return self.exponent_code or 0


@step
def amax(numbers: Iterable[float]) -> float:
    """Return the largest magnitude among the finite numbers, 0 if there is none (SCL-001)."""
    return max(map(abs, filter(math.isfinite, numbers)), default=0.0)


@step
def ideal_scale(largest: float, amax: float) -> IdealScale:
    """Return largest / amax, rounded to 24 significant bits, or 2^-126 if it is less (SCL-002)."""
    ratio = Ratio.of(largest, amax)
    exponent = floor_log2(ratio)
    if exponent < _SMALLEST_EXPONENT:
        return IdealScale(0, _SMALLEST_EXPONENT)
    return IdealScale(units_next_to(ratio, exponent - 23) - 2**23, exponent)


@step
def group_mantissa(largest: float, group_amax: float) -> int:
    """Return the mantissa that the blocks of a group share (GAM-001).

    A block of the group's own amax keeps its ideal scale under it (THM-003), and e4m3 and e5m2 have
    the same one (THM-005).
    """
    return ideal_scale(largest, group_amax).mantissa if group_amax else 0


@step
def scale_of_block(kind: Scaling, largest: float, amax: float, shared_mantissa: int) -> Scale:
    """Return the scale of a block with this amax (SCL-002); only gam uses the shared mantissa."""
    ideal = ideal_scale(largest, amax) if amax else None
    match kind:
        case "fp32":
            return fp32_scale(ideal)
        case "e8m0":
            return e8m0_scale(ideal)
        case "gam":
            return gam_scale(ideal, shared_mantissa)


@step
def fp32_scale(ideal: IdealScale | None) -> Scale:
    """SCL-004."""
    return Scale(1.0 if ideal is None else min(ideal.value, FLT_MAX), None)


@step
def e8m0_scale(ideal: IdealScale | None) -> Scale:
    """SCL-005."""
    exponent = 0 if ideal is None else min(ideal.exponent, _LARGEST_EXPONENT)
    return Scale(math.ldexp(1.0, exponent), exponent + _BIAS)


@step
def gam_scale(ideal: IdealScale | None, shared_mantissa: int) -> Scale:
    """Return the scale of a block in a group (GAM-005).

    Hardware compares the mantissas without a division (THM-006).
    """
    exponent = 0  # GAM-002
    if ideal is not None:
        exponent = ideal.exponent
        if shared_mantissa > ideal.mantissa:  # GAM-003
            exponent -= 1  # GAM-003
        exponent = min(exponent, _LARGEST_EXPONENT)  # GAM-004
    code = exponent + _BIAS  # GAM-004
    return Scale(IdealScale(shared_mantissa, exponent).value, code)
