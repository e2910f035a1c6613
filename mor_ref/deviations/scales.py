"""Scales that differ."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import MIXED, OWN_SCALES, SCALES
from mor_ref.deviations.exemptions import NOT_STORED, ZEROS
from mor_ref.exact.arithmetic import FLT_MAX, rn32, units_next_to
from mor_ref.exact.encoding import Ratio, floor_log2, in_units_of
from mor_ref.exact.scales import (
    IdealScale,
    Scale,
    e8m0_scale,
    fp32_scale,
    gam_scale,
    group_mantissa,
    ideal_scale,
)

Reference = Callable[..., Any]


def _ideal(value: float) -> IdealScale:
    """Return the mantissa and the exponent of a positive number of 24 significant bits."""
    exponent = floor_log2(value)
    significand, _, _ = in_units_of(exponent - 23, value)
    return IdealScale(significand - 2**23, exponent)


@deviation(ideal_scale, rules=("SCL-002",), domain=OWN_SCALES)
def scale_by_rounded_reciprocal(_: Reference, largest: float, amax: float) -> IdealScale:
    """The scale is largest * RN(1 / amax): two roundings."""
    inverse = rn32(Ratio.of(1.0, amax))  # infinite for a tiny amax, and subnormal for a huge one
    scale = rn32(Ratio.of(largest * inverse, 1.0)) if math.isfinite(inverse) else math.inf
    return _ideal(min(scale, FLT_MAX))


@deviation(ideal_scale, rules=("SCL-002",), domain=OWN_SCALES)
def scale_as_inverse_of_a_quotient(_: Reference, largest: float, amax: float) -> IdealScale:
    """The scale is 1 / RN(amax / largest): two roundings."""
    return _ideal(_rounded(Ratio.of(1.0, _rounded(Ratio.of(amax, largest)))))


@deviation(ideal_scale, rules=("SCL-002",), domain=OWN_SCALES)
def scale_truncated(_: Reference, largest: float, amax: float) -> IdealScale:
    """The quotient is cut to 24 bits instead of rounded."""
    return _ideal(_cut(Ratio.of(largest, amax)))


@deviation(ideal_scale, rules=("SCL-002",), domain=OWN_SCALES)
def scale_by_truncated_reciprocal(_: Reference, largest: float, amax: float) -> IdealScale:
    """The scale is largest times a truncated reciprocal, as of an approximate division."""
    return _ideal(_rounded(largest * _cut(Ratio.of(1.0, amax))))


def _for_e4m3(largest: float, _amax: float) -> bool:
    return largest == formats["e4m3"].largest


def _below_four(largest: float, _: float) -> bool:
    return largest < 4


@deviation(ideal_scale, where=_below_four, rules=("SCL-002",), domain=MIXED)  # fmt: skip
def scale_is_subnormal(reference: Reference, largest: float, amax: float) -> IdealScale:
    """The scale of a huge amax is less than 2^-126, and subnormal."""
    found: IdealScale = reference(largest, amax)
    halved: IdealScale = reference(largest, amax / 2)
    is_least = (found.mantissa, found.exponent) == (0, -126)
    return IdealScale(halved.mantissa, halved.exponent - 1) if is_least else found


@deviation(ideal_scale, where=_for_e4m3, rules=("SCL-002",), domain=OWN_SCALES)
def scale_aims_at_240(reference: Reference, _largest: float, amax: float) -> IdealScale:
    """e4m3 is scaled to 240, the largest number of another e4m3."""
    chosen: IdealScale = reference(240.0, amax)
    return chosen


@deviation(ideal_scale, rules=("SCL-002",), domain=OWN_SCALES)
def scale_aims_at_a_power_of_two(reference: Reference, largest: float, amax: float) -> IdealScale:
    """The scale is for the exponent of the largest number alone: 256 for 448."""
    chosen: IdealScale = reference(2.0 ** floor_log2(largest), amax)
    return chosen


def _rounded(value: float | Ratio) -> float:
    """Return 24 significant bits, to nearest, ties to even, with an unbounded exponent.

    A binary64 number holds them, and the product of two such numbers.
    """
    unit = floor_log2(value) - 23
    return math.ldexp(units_next_to(value, unit), unit)


def _cut(value: Ratio) -> float:
    unit = floor_log2(value) - 23
    below, _, _ = in_units_of(unit, value)
    return math.ldexp(below, unit)


@deviation(fp32_scale, rules=("SCL-004",), domain=OWN_SCALES)
def scale_overflows_to_infinity(reference: Reference, ideal: IdealScale | None) -> Scale:
    """A scale above the largest binary32 number is infinite."""
    if ideal is not None and ideal.value > FLT_MAX:
        return Scale(math.inf, None)
    found: Scale = reference(ideal)
    return found


@deviation(e8m0_scale, rules=("SCL-005",), domain=SCALES)
def e8m0_scale_rounded_up(reference: Reference, ideal: IdealScale | None) -> Scale:
    """The exponent of an e8m0 scale is rounded up: the largest number saturates."""
    if ideal is not None and ideal.mantissa:
        ideal = IdealScale(0, ideal.exponent + 1)
    found: Scale = reference(ideal)
    return found


@deviation(e8m0_scale, rules=("SCL-005",), domain=SCALES)
def e8m0_scale_rounded_to_nearest(reference: Reference, ideal: IdealScale | None) -> Scale:
    """An e8m0 scale is the nearest power of two."""
    if ideal is not None and ideal.mantissa >= 1 << 22:
        ideal = IdealScale(0, ideal.exponent + 1)
    found: Scale = reference(ideal)
    return found


@deviation(
    fp32_scale,
    e8m0_scale,
    rules=("SCL-004", "SCL-005"),
    domain=OWN_SCALES,
)
def zero_block_has_scale_zero(reference: Reference, ideal: IdealScale | None) -> Scale:
    """A block of zeros has the smallest scale that can be stored, not 1."""
    found: Scale = reference(ideal)
    if ideal is not None:
        return found
    return Scale(0.0, None) if found.exponent_code is None else Scale(2.0**-127, 0)


@deviation(gam_scale, rules=("GAM-003",), domain=SCALES)
def gam_without_decrement(_: Reference, ideal: IdealScale | None, shared: int) -> Scale:
    """The exponent of a block is never lowered: its scale may exceed the ideal one."""
    exponent = min(ideal.exponent, 127) if ideal else 0
    return rebuilt(exponent, shared)


@deviation(gam_scale, rules=("GAM-003",), domain=SCALES)
def gam_decrement_at_equality(_: Reference, ideal: IdealScale | None, shared: int) -> Scale:
    """The exponent is also lowered if both mantissas are equal: >= for >."""
    exponent = ideal.exponent - (shared >= ideal.mantissa) if ideal else 0
    return rebuilt(min(exponent, 127), shared)


@deviation(gam_scale, rules=("GAM-003",), domain=SCALES)
def gam_decrement_the_wrong_way(_: Reference, ideal: IdealScale | None, shared: int) -> Scale:
    """The exponent is lowered if the mantissa of the group is below the ideal one: < for >."""
    exponent = ideal.exponent - (shared < ideal.mantissa) if ideal else 0
    return rebuilt(min(exponent, 127), shared)


@deviation(gam_scale, rules=("GAM-004",), domain=SCALES)
def gam_clamped_before_decrement(_: Reference, ideal: IdealScale | None, shared: int) -> Scale:
    """The exponent is limited to 127 first, and lowered then."""
    exponent = min(ideal.exponent, 127) - (shared > ideal.mantissa) if ideal else 0
    return rebuilt(exponent, shared)


@deviation(group_mantissa, rules=("GAM-001",), domain=SCALES)
def gam_mantissa_of_7_bits(reference: Reference, *arguments: float) -> int:
    """The shared mantissa has the 7 bits of bfloat16."""
    return int(reference(*arguments)) & 0x7F0000


@deviation(gam_scale, rules=("GAM-001",), domain=SCALES)
def gam_with_the_own_mantissa(_: Reference, ideal: IdealScale | None, shared: int) -> Scale:
    """A block is scaled with its own mantissa, not with the mantissa of its group."""
    exponent = min(ideal.exponent, 127) if ideal else 0
    return rebuilt(exponent, ideal.mantissa if ideal else shared)


@deviation(group_mantissa, rules=("GAM-001",), domain=SCALES)
def gam_mantissa_of_amax(_: Reference, largest: float, amax: float) -> int:
    """The shared mantissa is the mantissa of amax, not of largest / amax."""
    del largest
    return _ideal(amax).mantissa if amax else 0


@deviation(gam_scale, rules=("GAM-004",), domain=SCALES, exemptions=ZEROS)
def gam_zero_block_stores_0(reference: Reference, ideal: IdealScale | None, shared: int) -> Scale:
    """A block of zeros stores the exponent 0 instead of 127."""
    found: Scale = reference(ideal, shared)
    return rebuilt(-127, shared) if ideal is None else found


@deviation(gam_scale, rules=("GAM-003",), domain=SCALES, exemptions=ZEROS)
def gam_zero_block_is_decremented(
    reference: Reference, ideal: IdealScale | None, shared: int
) -> Scale:
    """A block of zeros counts as a block with mantissa 0, and its exponent is lowered."""
    return reference(ideal, shared) if ideal else rebuilt(-(shared > 0), shared)


def rebuilt(exponent: int, mantissa: int) -> Scale:
    """Return the scale of an exponent and a mantissa, and the stored exponent."""
    return Scale(IdealScale(mantissa, exponent).value, exponent + 127)


@deviation(
    e8m0_scale, gam_scale, rules=("SCL-005", "GAM-005"), domain=SCALES, exemptions=NOT_STORED
)
def exponent_of_the_inverse_stored(reference: Reference, *arguments: Any) -> Scale:
    """254 - code is stored: the exponent of the scale that codes are multiplied by."""
    found: Scale = reference(*arguments)
    return replace(found, exponent_code=254 - (found.exponent_code or 0))


@deviation(
    e8m0_scale, gam_scale, rules=("SCL-005", "GAM-005"), domain=SCALES, exemptions=NOT_STORED
)
def stored_exponent_has_bias_128(reference: Reference, *arguments: Any) -> Scale:
    """The stored exponent is e + 128, one more than in e8m0."""
    found: Scale = reference(*arguments)
    return replace(found, exponent_code=(found.exponent_code or 0) + 1)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
