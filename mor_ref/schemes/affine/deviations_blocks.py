"""Scales and zero points that differ: other libraries, other ends, limits and orders."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.exact.arithmetic import (
    nearest_in,
    product,
    quotient,
    rn32_of_binary64,
    total,
)
from mor_ref.schemes.affine import exact as affine
from mor_ref.schemes.affine.definition import AFFINE_PROFILES, AffineProfile
from mor_ref.schemes.affine.deviations import how_among
from mor_ref.schemes.affine.domain import AFFINE_BLOCKS, FLOAT_ZEROS, IN_AFFINE, ONE_BY_ONE
from mor_ref.schemes.affine.exact import Choices

Reference = Callable[..., Any]
_HALF = 0.5  # the share of a power of two

# ---------------------------------------------------------------------- libraries


def _as_profile(name: str) -> Deviation:
    """Return the deviation that computes as another library does."""
    other = AFFINE_PROFILES[name]

    def swapped(reference: Reference, *arguments: Any) -> Any:
        how = how_among(arguments)
        return reference(*(replace(how, profile=other) if one is how else one for one in arguments))

    def is_another(*arguments: Any) -> bool:
        profile = how_among(arguments).profile
        return profile.name != name and profile.stores_amax == other.stores_amax

    steps = (affine.grid_of, affine.affine_block, affine.inverse, affine.affine_element)
    return Deviation(
        f"affine_as_{name}",
        f"Numbers, scales and zero points are those of {name}, whichever profile is asked for.",
        ("AFF-002", "AFF-004", "AFF-007", "AFF-008"),
        _suites_of(other),
        tuple(Change(step, swapped, is_another) for step in steps),
    )


def _suites_of(other: AffineProfile) -> tuple[str, ...]:
    """Return the suites that reach the steps of a profile like this one."""
    if other.stores_amax:
        return ONE_BY_ONE
    return IN_AFFINE if other.takes_float_zeros else (*IN_AFFINE, *FLOAT_ZEROS)


# ---------------------------------------------------------------------- scales


def is_symmetric(*arguments: Any) -> bool:
    """Return whether the grid is symmetric."""
    return how_among(arguments).symmetric


def has_zero_points(*arguments: Any) -> bool:
    """Return whether blocks have zero points of their own."""
    return not is_symmetric(*arguments)


def _has_a_limit(*arguments: Any) -> bool:
    return how_among(arguments).profile.smallest != 0


def _takes_half(profile: AffineProfile, _grid: IntegerGrid) -> bool:
    return profile.divisor == "half"


def _takes_the_highest(profile: AffineProfile, _grid: IntegerGrid) -> bool:
    return profile.divisor == "highest"


def _is_of_peg(*arguments: Any) -> bool:
    return any(isinstance(one, AffineProfile) and one.smallest_high > 0 for one in arguments)


@deviation(affine.extremes, rules=("AFF-003",), domain=AFFINE_BLOCKS)
def affine_extremes_skip_nan(reference: Reference, numbers: list[float]) -> tuple[float, float]:
    """A NaN does not count in the extremes of its block, as with fmin and fmax."""
    found: tuple[float, float] = reference([x for x in numbers if not math.isnan(x)])
    return found


@deviation(affine.extremes, rules=("AFF-003",), domain=AFFINE_BLOCKS)
def affine_extremes_are_finite(reference: Reference, numbers: list[float]) -> tuple[float, float]:
    """An infinity does not count in the extremes of its block."""
    found: tuple[float, float] = reference([x for x in numbers if not math.isinf(x)])
    return found


@deviation(affine.extremes, rules=("AFF-003",), domain=AFFINE_BLOCKS)
def affine_extremes_keep_minus_zero(
    reference: Reference, numbers: list[float]
) -> tuple[float, float]:
    """The minimum of a block of zeros keeps the sign of the first zero."""
    low, high = reference(numbers)
    return (min(numbers) if low == 0 else low), high


@deviation(affine.sides, rules=("AFF-003",), domain=AFFINE_BLOCKS)
def affine_range_without_zero(
    reference: Reference, minimum: float, maximum: float, profile: AffineProfile
) -> tuple[float, float]:
    """The range of a block is from its minimum to its maximum, even if 0 is outside."""
    if math.isnan(minimum):
        low, high = reference(minimum, maximum, profile)
        return float(low), float(high)
    least = profile.smallest_high
    return -minimum, max(maximum, rn32_of_binary64(least)) if least else maximum


@deviation(affine.sides, where=_is_of_peg, rules=("AFF-003",), domain=AFFINE_BLOCKS)
def affine_maximum_not_limited(
    reference: Reference, minimum: float, maximum: float, profile: AffineProfile
) -> tuple[float, float]:
    """The maximum of a block of PEG is at least 0, not 1e-8."""
    low, _ = reference(minimum, maximum, profile)
    return float(low), float(low) if math.isnan(minimum) else max(0.0, maximum)


@deviation(affine.symmetric_steps, where=_takes_half, rules=("AFF-004",), domain=AFFINE_BLOCKS)
def affine_scale_by_the_highest(
    reference: Reference, profile: AffineProfile, grid: IntegerGrid
) -> float:
    """A symmetric scale is amax / 127, as in papers, not amax / 127.5, as in torch and torchao."""
    return float(math.floor(reference(profile, grid)))


@deviation(
    affine.symmetric_steps, where=_takes_the_highest, rules=("AFF-004",), domain=AFFINE_BLOCKS
)
def affine_peg_scale_by_half_the_range(
    reference: Reference, profile: AffineProfile, grid: IntegerGrid
) -> float:
    """A symmetric scale of PEG is amax / 127.5, as in torch."""
    del reference, profile
    return (grid.highest - grid.lowest) / 2


@deviation(affine.scale_before_limit, where=is_symmetric, rules=("AFF-004",), domain=AFFINE_BLOCKS)
def affine_scale_of_the_maximum(
    reference: Reference, low: float, high: float, how: Choices
) -> float:
    """A symmetric scale follows from the maximum, not from the largest magnitude."""
    return float(reference(low if math.isnan(low) else 0.0, high, how))


@deviation(
    affine.scale_before_limit, where=has_zero_points, rules=("AFF-004",), domain=AFFINE_BLOCKS
)
def affine_scale_by_2_to_the_b(
    reference: Reference, low: float, high: float, how: Choices
) -> float:
    """The range is divided by 2^b, not by 2^b - 1."""
    if low + high == 0:
        return float(reference(low, high, how))
    steps = float(how.grid.highest - how.grid.lowest + 1)
    width = affine.operate(total, high, low, how.arithmetic)
    return affine.operate(quotient, width, steps, how.arithmetic)


@deviation(
    affine.scale_before_limit, where=has_zero_points, rules=("AFF-004",), domain=AFFINE_BLOCKS
)
def affine_scale_by_a_reciprocal(
    reference: Reference, low: float, high: float, how: Choices
) -> float:
    """The range is multiplied by the rounded reciprocal of 2^b - 1."""
    if low + high == 0:
        return float(reference(low, high, how))
    share = affine.operate(quotient, 1.0, float(how.grid.highest - how.grid.lowest), how.arithmetic)
    return affine.operate(product, affine.operate(total, high, low, how.arithmetic), share,
                          how.arithmetic)  # fmt: skip


@deviation(affine.limited, where=_has_a_limit, rules=("AFF-004",), domain=AFFINE_BLOCKS)
def affine_scale_not_limited(reference: Reference, scale: float, how: Choices) -> float:
    """A scale has no smallest value."""
    del reference, how
    return scale


# Of each smallest scale, its name in deviations, and how a sentence has it.
_SMALLEST = {
    "1e_5": (1e-5, "1e-5, as in many kernels of activations"),
    "binary32_eps": (2.0**-23, "2^-23, the eps of binary32, as in torch"),
}


def _at_least(name: str) -> Deviation:
    """Return the deviation that has another smallest scale."""
    least, said = _SMALLEST[name]

    def raised(reference: Reference, scale: float, how: Choices) -> float:
        other = replace(how, profile=replace(how.profile, smallest=least))
        return float(reference(scale, other))

    def has_another(*arguments: Any) -> bool:
        return how_among(arguments).profile.smallest != least

    return Deviation(
        f"affine_scale_at_least_{name}",
        f"A scale is at least {said}.",
        ("AFF-004",),
        AFFINE_BLOCKS,
        (Change(affine.limited, raised, has_another),),
    )


affine_scale_at_least_1e_5 = _at_least("1e_5")
affine_scale_at_least_binary32_eps = _at_least("binary32_eps")


@deviation(affine.scale_before_limit, rules=("AFF-004",), domain=AFFINE_BLOCKS)
def affine_range_at_least_1e_5(
    reference: Reference, low: float, high: float, how: Choices
) -> float:
    """The range of a block, or its amax, is at least 1e-5 before it is divided."""
    least = rn32_of_binary64(1e-5)
    width = max(low, high) if how.symmetric else affine.operate(total, high, low, how.arithmetic)
    is_smaller = width < least  # not so for NaN
    return float(reference(0.0 if is_smaller else low, least if is_smaller else high, how))


def _stored_in(name: str, dtype: str) -> Deviation:
    """Return the deviation that stores scales in a narrow format, which numbers are scaled with."""
    fmt = formats[name]

    def narrowed(reference: Reference, scale: float, how: Choices) -> float:
        return nearest_in(float(reference(scale, how)), fmt)

    return Deviation(
        f"affine_scale_in_{name}",
        f"A scale is rounded to {dtype} before its use.",
        ("AFF-004",),
        AFFINE_BLOCKS,
        (Change(affine.limited, narrowed),),
    )


affine_scale_in_bf16 = _stored_in("bf16", "bfloat16")
affine_scale_in_f16 = _stored_in("f16", "binary16")


def _power_of_two(scale: float, is_lower: Callable[[float], bool]) -> float:
    """Return the power of two above a scale, or below it for some of its shares of that above."""
    if scale == 0 or not math.isfinite(scale):
        return scale
    share, exponent = math.frexp(scale)
    return rn32_of_binary64(math.ldexp(1.0, exponent - is_lower(share)))


@deviation(affine.limited, rules=("AFF-004",), domain=AFFINE_BLOCKS)
def affine_scale_up_to_a_power_of_two(reference: Reference, scale: float, how: Choices) -> float:
    """A scale is rounded up to a power of two, as for shifts."""
    return _power_of_two(float(reference(scale, how)), lambda share: share == _HALF)


@deviation(affine.limited, rules=("AFF-004",), domain=AFFINE_BLOCKS)
def affine_scale_to_the_nearest_power_of_two(
    reference: Reference, scale: float, how: Choices
) -> float:
    """A scale is rounded to a power of two by its logarithm, to nearest."""
    # No binary32 number is the root of 1/2.
    return _power_of_two(float(reference(scale, how)), lambda share: share * share < _HALF)


DEVIATIONS = (
    *map(_as_profile, AFFINE_PROFILES.specified),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
