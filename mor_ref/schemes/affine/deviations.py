"""Integers with zero points that differ: the differences between libraries first."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.exact.arithmetic import (
    nearest_in,
    product,
    quotient,
    rn32,
    rn32_of_binary64,
    total,
)
from mor_ref.schemes.affine import exact as affine
from mor_ref.schemes.affine.domain import FLOAT_ZEROS, IN_AFFINE, ONE_BY_ONE
from mor_ref.schemes.affine.exact import AffineBlock, Choices

Reference = Callable[..., Any]
_ANY_ZEROS = (*IN_AFFINE, *FLOAT_ZEROS)
_FUSED = (*ONE_BY_ONE, *FLOAT_ZEROS)


def _multiplies(*arguments: Any) -> bool:
    return how_among(arguments).profile.application == "multiply"


def _divides(*arguments: Any) -> bool:
    return how_among(arguments).profile.application == "divide"


def _has_zero_in_xs(*arguments: Any) -> bool:
    return how_among(arguments).profile.zero_in_xs


def _adds_first(*arguments: Any) -> bool:
    return how_among(arguments).profile.adds_first


def _adds_later(*arguments: Any) -> bool:
    return not _has_zero_in_xs(*arguments)


def _limits_a_sum(*arguments: Any) -> bool:
    return not _has_zero_in_xs(*arguments) and not _stores_amax(*arguments)


def _stores_amax(*arguments: Any) -> bool:
    return how_among(arguments).profile.stores_amax


def _has_zero_points(*arguments: Any) -> bool:
    return not _stores_amax(*arguments)


def _has_integer_zeros(*arguments: Any) -> bool:
    return _has_zero_points(*arguments) and not how_among(arguments).profile.float_zeros


def _added_later(zero: float, how: Choices) -> float:
    """Return the zero point that is added after a number is rounded."""
    return 0 if how.profile.zero_in_xs or how.profile.stores_amax else zero


def how_among(arguments: tuple[Any, ...]) -> Choices:
    """Return the choices of a block (`how`) from the arguments of a step."""
    return next(one for one in arguments if isinstance(one, Choices))


# ---------------------------------------------------------------------- scaled numbers


@deviation(affine.scaled, where=_multiplies, rules=("AFF-007",), domain=IN_AFFINE)
def affine_divides(reference: Reference, x: float, block: AffineBlock, how: Choices) -> float:
    """Numbers are divided by the scale, as in ONNX, and not multiplied by its reciprocal."""
    return float(reference(x, block, _applied("divide", how)))


@deviation(affine.scaled, where=_divides, rules=("AFF-007",), domain=IN_AFFINE)
def affine_multiplies(reference: Reference, x: float, block: AffineBlock, how: Choices) -> float:
    """Numbers are multiplied by the reciprocal of the scale, as in torch, and not divided."""
    return float(reference(x, block, _applied("multiply", how)))


def _applied(application: Any, how: Choices) -> Choices:
    return replace(how, profile=replace(how.profile, application=application))


@deviation(affine.fused, rules=("AFF-007",), domain=_FUSED)
def affine_product_rounded_first(reference: Reference, a: float, b: float, c: float) -> float:
    """The product is rounded before the zero point is added to it."""
    del reference
    return total(product(a, b), c)


@deviation(affine.fused, rules=("AFF-007",), domain=_FUSED)
def affine_fused_in_binary64(reference: Reference, a: float, b: float, c: float) -> float:
    """The sum of the product and the zero point is rounded to binary64, then to binary32."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return float(reference(a, b, c))
    return rn32_of_binary64(a * b + c)


@deviation(affine.scaled, where=_adds_first, rules=("AFF-007",), domain=ONE_BY_ONE)
def affine_sum_fused(reference: Reference, x: float, block: AffineBlock, how: Choices) -> float:
    """The product and the zero point are summed in one rounding, as nvcc contracts them."""
    return float(reference(x, block, _applied("fuse", how)))


def _scaled_in(name: str, dtype: str) -> Deviation:
    """Return the deviation that rounds xs to a narrow format, in which it can be infinite."""
    fmt = formats[name]

    def narrowed(reference: Reference, x: float, block: AffineBlock, how: Choices) -> float:
        return nearest_in(float(reference(x, block, how)), fmt)

    return Deviation(
        f"affine_xs_in_{name}",
        f"A number is rounded to {dtype} after it is scaled.",
        ("AFF-007",),
        _ANY_ZEROS,
        (Change(affine.scaled, narrowed),),
    )


affine_xs_in_bf16 = _scaled_in("bf16", "bfloat16")
affine_xs_in_f16 = _scaled_in("f16", "binary16")


@deviation(affine.scaled, where=_multiplies, rules=("AFF-007",), domain=IN_AFFINE)
def affine_exact_quotient(
    reference: Reference, x: float, block: AffineBlock, how: Choices
) -> float:
    """The reciprocal is not rounded, as in a division of binary64."""
    scale = block.scale
    if not (math.isfinite(x) and math.isfinite(scale)) or x == 0 or how.profile.factor > 1:
        return float(reference(x, block, how))
    found = rn32(Fraction(x) * how.profile.inverse_factor / Fraction(scale))
    return total(found, float(block.zero_point)) if how.profile.adds_first else found


@deviation(affine.inverse, where=_stores_amax, rules=("AFF-007",), domain=ONE_BY_ONE)
def affine_quotient_of_127(reference: Reference, scale: float, how: Choices) -> float:
    """The factor is 127 / amax, rounded once, as written in the source of bitsandbytes."""
    if how.profile.inverse_factor == 1:
        return float(reference(scale, how))
    return quotient(float(how.profile.inverse_factor), scale)


# ---------------------------------------------------------------------- codes


@deviation(affine.rint, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_ties_away(reference: Reference, x: float) -> float:
    """Ties go away from zero, as in roundf."""
    del reference
    return math.copysign(float(math.floor(abs(x) + 0.5)), x) if math.isfinite(x) else x


@deviation(affine.integer, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_half_added(reference: Reference, xs: float, zero: float, how: Choices) -> int:
    """The integer is floor(xs + 1/2) in binary32: 1 also for the number below 1/2."""
    whole = math.floor(total(xs, 0.5)) if math.isfinite(xs) else xs
    return int(reference(float(whole), zero, how))


@deviation(affine.rint, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_truncates(reference: Reference, x: float) -> float:
    """Numbers are truncated, as in a cast."""
    del reference
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


@deviation(affine.integer, where=_adds_later, rules=("AFF-008",), domain=IN_AFFINE)
def affine_zero_point_before_rounding(
    reference: Reference, xs: float, zero: int, how: Choices
) -> int:
    """The zero point is added before numbers are rounded: 0.5 + 3 becomes 4."""
    return int(reference(total(xs, float(zero)), 0, how)) if zero % 2 else int(
        reference(xs, zero, how)
    )  # fmt: skip


@deviation(affine.integer, where=_has_zero_in_xs, rules=("AFF-008",), domain=_FUSED)
def affine_zero_point_after_rounding(
    reference: Reference, xs: float, zero: int, how: Choices
) -> int:
    """The zero point is added after numbers are rounded: 0.5 with 3 becomes 3."""
    own = float(affine.rint(total(xs, float(-zero))))
    return int(reference(total(own, float(zero)), zero, how))


@deviation(affine.clamped, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_not_limited(reference: Reference, whole: float, grid: IntegerGrid) -> int:
    """Codes outside the grid stay, in integers of 32 bits: 128 in int8."""
    del reference, grid
    return int(min(max(whole, -(2.0**31)), 2.0**31 - 1))


@deviation(affine.clamped, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_restricted_range(reference: Reference, whole: float, grid: IntegerGrid) -> int:
    """The lowest code of a signed grid is never used, so that the range is symmetric."""
    return max(int(reference(whole, grid)), grid.lowest + grid.signed)


@deviation(affine.integer, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_nan_is_the_highest(reference: Reference, xs: float, zero: int, how: Choices) -> int:
    """NaN has the highest code."""
    return how.grid.highest if math.isnan(xs) else int(reference(xs, zero, how))


@deviation(affine.integer, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_nan_is_zero(reference: Reference, xs: float, zero: int, how: Choices) -> int:
    """NaN has the code of 0."""
    return zero if math.isnan(xs) else int(reference(xs, zero, how))


@deviation(affine.integer, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_through_int32(reference: Reference, xs: float, zero: int, how: Choices) -> int:
    """Numbers become integers of 32 bits before they are limited, as in onnx."""
    del reference
    other = replace(how, profile=replace(how.profile, conversion="int32"))
    return int(affine.integer.__wrapped__(xs, _added_later(zero, how), other))  # type: ignore[attr-defined]


@deviation(affine.integer, where=_has_zero_points, rules=("AFF-008",), domain=_ANY_ZEROS)
def affine_wraps(reference: Reference, xs: float, zero: int, how: Choices) -> int:
    """Codes outside the grid wrap."""
    del reference
    return int(affine.cast(affine.rint(xs) + _added_later(zero, how), how.grid))


@deviation(affine.integer, where=_limits_a_sum, rules=("AFF-008",), domain=IN_AFFINE)
def affine_limited_before_the_zero_point(
    reference: Reference, xs: float, zero: int, how: Choices
) -> int:
    """Rounded numbers are limited to the grid, moved by the zero point, and limited again."""
    if math.isnan(xs):
        return int(reference(xs, zero, how))
    return int(reference(float(affine.clamped(affine.rint(xs), how.grid)), zero, how))


# ---------------------------------------------------------------------- the way back


@deviation(affine.restored, where=_has_zero_points, rules=("AFF-009",), domain=_ANY_ZEROS)
def affine_zero_point_subtracted_last(
    reference: Reference, code: int, block: AffineBlock, how: Choices
) -> float:
    """The way back is code * scale - zero_point * scale, in three roundings."""
    del reference, how
    own = product(float(code), block.scale)
    return total(own, -product(float(block.zero_point), block.scale))


@deviation(affine.restored, where=_has_zero_points, rules=("AFF-009",), domain=_ANY_ZEROS)
def affine_divides_by_the_inverse(
    reference: Reference, code: int, block: AffineBlock, how: Choices
) -> float:
    """The way back divides by the rounded reciprocal of the scale."""
    del reference, how
    return quotient(float(code - block.zero_point), block.inverse_scale)


@deviation(affine.restored, where=_has_integer_zeros, rules=("AFF-009",), domain=IN_AFFINE)
def affine_difference_wraps(
    reference: Reference, code: int, block: AffineBlock, how: Choices
) -> float:
    """The difference of a code and the zero point is an integer of the grid: it wraps."""
    zero = block.zero_point
    return float(reference(affine.cast(code - zero, how.grid) + zero, block, how))


@deviation(affine.restored, where=_stores_amax, rules=("AFF-009",), domain=ONE_BY_ONE)
def affine_divides_by_127(
    reference: Reference, code: int, block: AffineBlock, how: Choices
) -> float:
    """The way back divides by 127."""
    del reference, how
    return quotient(product(block.scale, float(code)), 127.0)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
