"""FP8-LM that differs: the paper in place of the code, other scales, casts and sums."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.floating_point import flushed
from mor_ref.exact.arithmetic import (
    FLT_MAX,
    product,
    quotient,
)
from mor_ref.exact.encoding import encode, floor_log2
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.fp8lm.exact import Element, Scale

Reference = Callable[..., Any]
_SCALES, _CASTS, _SUMS = (
    ("fp8lm_scales",), ("fp8lm_casts", "fp8lm_recasts", "fp8lm_steps"), ("fp8lm_sums",),
)  # fmt: skip

_SHARED, _STORED = ("fp8lm_shared",), ("fp8lm_stored", "fp8lm_steps")
_OF_MSAMP = (*_SCALES, *_SHARED, *_STORED)  # the suites of scales under msamp
_OF_EXACT = (*_SCALES, *_SHARED)
_NO_MARGIN = dict.fromkeys((*_SHARED, *_STORED), "The margin is 0.")
_NO_Y = {"fp8lm_steps": "The suite has codes alone, without y."}
_POWERS_OF_TWO = {
    "fp8lm_steps": "Scales are powers of two: products and quotients round to one code."
}
_ONE_BEFORE = {"fp8lm_shared": "The scale before is 1, whose inverse is 1."}

# ---------------------------------------------------------------------- scales


def _of_profile(name: str) -> Callable[..., bool]:
    return lambda *arguments: bool(arguments[-1] == name)


@deviation(
    fp8lm.scale_of, where=_of_profile("msamp"), rules=("FLM-002", "FLM-003"), domain=_OF_MSAMP
)
def fp8lm_scales_of_the_paper(reference: Reference, *arguments: Any) -> Scale:
    """The scale is exact, as in the paper, even if the scale of MS-AMP is asked for."""
    found: Scale = reference(*arguments[:-1], "exact")
    return found


@deviation(fp8lm.scale_of, where=_of_profile("exact"), rules=("FLM-004",), domain=_OF_EXACT)
def fp8lm_scales_of_the_code(reference: Reference, *arguments: Any) -> Scale:
    """The scale is computed as in MS-AMP, even if the exact one is asked for."""
    found: Scale = reference(*arguments[:-1], "msamp")
    return found


@deviation(fp8lm.exponent_of, rules=("FLM-002",), domain=_OF_MSAMP)
def fp8lm_logarithm_not_rounded(reference: Reference, ratio: float, margin: int) -> float:
    """The logarithm is not rounded to binary32 before its floor is taken."""
    if ratio == 0 or not math.isfinite(ratio):
        return float(reference(ratio, margin))
    return floor_log2(ratio) - margin


@deviation(fp8lm.exponent_of, rules=("FLM-002",), domain=_OF_MSAMP, exemptions=_NO_MARGIN)
def fp8lm_margin_left_out(reference: Reference, ratio: float, margin: int) -> float:
    """The margin is not subtracted."""
    return float(reference(ratio, 0 * margin))


@deviation(fp8lm.exponent_of, rules=("FLM-002",), domain=_OF_MSAMP, exemptions=_NO_MARGIN)
def fp8lm_margin_added(reference: Reference, ratio: float, margin: int) -> float:
    """The margin is added, so that it makes the scale larger."""
    return float(reference(ratio, -margin))


@deviation(fp8lm.scale_of, rules=("FLM-003",), domain=_OF_MSAMP, exemptions=_ONE_BEFORE)
def fp8lm_scale_before_is_one(
    reference: Reference, amax: float, previous: float, *rest: Any
) -> Scale:
    """The scale of a tensor without an amax is 1, and not the previous scale."""
    del previous
    found: Scale = reference(amax, 1.0, *rest)
    return found


@deviation(fp8lm.scale_of_msamp, rules=("FLM-003",), domain=_OF_MSAMP, exemptions=_ONE_BEFORE)
def fp8lm_scale_stays(
    reference: Reference, amax: float, previous: float, largest: float, margin: int
) -> Scale:
    """If amax is 0 or not finite, the scale stays: it is not inverted."""
    found: Scale = reference(amax, previous, largest, margin)
    if amax > 0 and math.isfinite(amax):
        return found
    return found._replace(scale=previous, scale_inv=quotient(1.0, previous))


@deviation(fp8lm.ratio_of, rules=("FLM-002",), domain=_OF_MSAMP)
def fp8lm_ratio_in_one_division(reference: Reference, largest: float, amax: float) -> float:
    """The ratio is Q / amax, rounded once."""
    del reference
    return quotient(largest, amax)


@deviation(fp8lm.scale_of_msamp, rules=("FLM-003",), domain=_OF_MSAMP)
def fp8lm_scales_are_finite(
    reference: Reference, amax: float, previous: float, largest: float, margin: int
) -> Scale:
    """The power of two is at most 2^126: no scale is infinite."""
    found: Scale = reference(amax, previous, largest, margin)
    if not (amax > 0 and math.isfinite(amax)):
        return found
    power = math.ldexp(1.0, int(min(abs(found.exponent), 126)))
    scale = quotient(1.0, power) if found.exponent < 0 else power
    return found._replace(scale=scale, scale_inv=quotient(1.0, scale))


@deviation(fp8lm.scale_exactly, rules=("FLM-004",), domain=_OF_EXACT, exemptions=_ONE_BEFORE)
def fp8lm_one_for_zeros(
    reference: Reference, amax: float, previous: float, largest: float, margin: int
) -> Scale:
    """The exact scale of a tensor of zeros is 1, not the previous scale."""
    found: Scale = reference(amax, previous, largest, margin)
    return found._replace(scale=1.0, scale_inv=1.0) if amax == 0 else found


# ---------------------------------------------------------------------- casts


@deviation(fp8lm.cast, rules=("FLM-005",), domain=_CASTS, exemptions=_NO_Y)
def fp8lm_y_by_division(reference: Reference, x: float, scale: float, fmt: Format) -> Element:
    """Y is v / s, without the rounded inverse."""
    found: Element = reference(x, scale, fmt)
    return found._replace(y=quotient(fmt.value(found.code), scale))


@deviation(fp8lm.cast, rules=("FLM-005",), domain=_CASTS, exemptions=_POWERS_OF_TWO)
def fp8lm_divided_by_the_inverse(
    reference: Reference, x: float, scale: float, fmt: Format
) -> Element:
    """The quotient x / scale_inv is encoded."""
    found: Element = reference(x, scale, fmt)
    inverse = quotient(1.0, scale)
    code = encode(quotient(x, inverse), fmt, "rne")
    return found._replace(code=code, y=product(fmt.value(code), inverse))


@deviation(fp8lm.cast, rules=("FLM-005",), domain=_CASTS, exemptions=_POWERS_OF_TWO)
def fp8lm_product_not_rounded(reference: Reference, x: float, scale: float, fmt: Format) -> Element:
    """The product of x and the scale is not rounded to binary32 before its code is taken."""
    found: Element = reference(x, scale, fmt)
    exact = x * scale  # in binary64, which holds products of binary32 numbers
    if not abs(exact) <= FLT_MAX:
        return found
    code = encode(exact, fmt, "rne")
    return Element(code, product(fmt.value(code), quotient(1.0, scale)))


@deviation(fp8lm.cast, rules=("FLM-005",), domain=_CASTS)
def fp8lm_x_flushed(reference: Reference, x: float, scale: float, fmt: Format) -> Element:
    """A subnormal x counts as zero."""
    found: Element = reference(flushed(x), scale, fmt)
    return found


@deviation(fp8lm.cast, rules=("FLM-005",), domain=_CASTS, exemptions=_NO_Y)
def fp8lm_y_flushed(reference: Reference, x: float, scale: float, fmt: Format) -> Element:
    """A subnormal y becomes zero."""
    found: Element = reference(x, scale, fmt)
    return found._replace(y=flushed(found.y))


@deviation(fp8lm.recast, rules=("FLM-007",), domain=_CASTS[1:2])
def fp8lm_recast_from_x(
    reference: Reference, x: float, scale: float, shared: float, fmt: Format
) -> Element:
    """A number is cast with the shared scale at once, not from its code."""
    del reference, scale
    return fp8lm.cast(x, shared, fmt)


@deviation(
    fp8lm.cast,
    where=lambda _x, _scale, fmt: bool(fmt.bits == 16),
    rules=("FLM-005",),
    domain=_CASTS,
)
def fp8lm_nan_clamped_in_f16(reference: Reference, x: float, scale: float, fmt: Format) -> Element:
    """min(max(x * s, -Q), Q) makes a NaN the negative largest number of f16."""
    found: Element = reference(x, scale, fmt)
    if not math.isnan(product(x, scale)):
        return found
    return found._replace(
        code=fmt.largest_code | fmt.sign_bit, y=product(-fmt.largest, quotient(1.0, scale))
    )


# ---------------------------------------------------------------------- sums


def _other_sums(name: str) -> Callable[..., bool]:
    return lambda _values, _fmt, sums: bool(sums != name)


@deviation(fp8lm.sum_of, where=_other_sums("exact"), rules=("FLM-009",), domain=_SUMS)
def fp8lm_sums_are_exact(
    reference: Reference, values: Sequence[float], fmt: Format, sums: str
) -> int:
    """The exact sum is taken, also if each addition has to be rounded."""
    del sums
    return int(reference(values, fmt, "exact"))


@deviation(fp8lm.sum_of, where=_other_sums("by_rank"), rules=("FLM-009",), domain=_SUMS)
def fp8lm_sums_by_rank(
    reference: Reference, values: Sequence[float], fmt: Format, sums: str
) -> int:
    """Each addition is rounded, also if the exact sum has to be taken."""
    del sums
    return int(reference(values, fmt, "by_rank"))


@deviation(fp8lm.sum_of, where=_other_sums("exact"), rules=("FLM-009",), domain=_SUMS)
def fp8lm_ranks_backwards(
    reference: Reference, values: Sequence[float], fmt: Format, sums: str
) -> int:
    """Ranks are added from the last one, as a ring does in some of its parts."""
    return int(reference(values[::-1], fmt, sums))


@deviation(fp8lm.sum_of, rules=("FLM-009",), domain=_SUMS)
def fp8lm_sums_keep_negative_zero(
    reference: Reference, values: Sequence[float], fmt: Format, sums: str
) -> int:
    """A sum begins with the first rank, as in a ring: if all ranks have -0, the sum is -0."""
    found = int(reference(values, fmt, sums))
    is_negative = all(v == 0 and math.copysign(1.0, v) < 0 for v in values)
    return fmt.sign_bit if is_negative else found


@deviation(fp8lm.sum_of, rules=("FLM-009",), domain=_SUMS)
def fp8lm_nan_not_added(
    reference: Reference, values: Sequence[float], fmt: Format, sums: str
) -> int:
    """A NaN and an infinity count as 0."""
    return int(reference([v if math.isfinite(v) else 0.0 for v in values], fmt, sums))


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
