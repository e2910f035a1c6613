"""NVFP4 and MX otherwise: other profiles, other guards, other orders."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.block_recipes import PROFILES, SCALE_RULES, Nvfp4Profile, ScaleRule
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import IN_MX, IN_NVFP4, NVFP4, NVFP4_FOREIGN
from mor_ref.deviations.unseen import (
    DIVIDED_FOR_DECODING,
    DIVIDED_FOR_ENCODING,
    NORMAL_SCALES,
    SCALES_ABOVE_ZERO,
    SCALES_THAT_UNDERFLOW,
    SHORT_NUMBERS,
    for_generated,
)
from mor_ref.exact import mx, nvfp4
from mor_ref.exact.arithmetic import FLT_MAX, product, quotient, rn32
from mor_ref.exact.conversions import encode, floor_log2
from mor_ref.exact.nvfp4 import SCALE_FORMAT, GlobalScale, TileScale
from mor_ref.exact.quantization import Element
from mor_ref.format import Format

Reference = Callable[..., Any]
_E4M3_SMALLEST = 2.0**-9

_BY_ENCODE_SCALE = tuple(name for name in IN_NVFP4 if name not in NVFP4_FOREIGN)


def _beside(profile: str) -> tuple[str, ...]:
    """The suites of other profiles; policies take te."""
    own = (f"nvfp4_{profile}", "policies" if profile == "te" else "")
    return tuple(name for name in IN_NVFP4 if name not in own)


def _nvfp4_as(other: Nvfp4Profile) -> Deviation:
    """A profile in the place of every other."""

    def comes_first(profile: Nvfp4Profile, *_: Any) -> bool:
        return profile != other

    def comes_last(*arguments: Any) -> bool:
        return bool(arguments[-1] != other)

    def swapped_first(reference: Reference, _: Nvfp4Profile, *rest: Any) -> Any:
        return reference(other, *rest)

    def swapped_last(reference: Reference, *arguments: Any) -> Any:
        return reference(*arguments[:-1], other)

    return Deviation(
        f"nvfp4_as_{other.name}",
        f"NVFP4 is computed as the profile {other.name} does.",
        ("NVF-002",),
        _beside(other.name),
        (
            Change(nvfp4.amaxes_of, swapped_last, comes_last),
            Change(nvfp4.global_scale, swapped_first, comes_first),
            Change(nvfp4.tile_scale, swapped_first, comes_first),
            Change(nvfp4.quantize_element, swapped_last, comes_last),
        ),
    )


def _mx_as(other: ScaleRule) -> Deviation:
    """A scale rule in the place of every other."""

    def is_another(_numbers: list[float], _fmt: Format, rule: ScaleRule) -> bool:
        return rule != other

    def swapped(reference: Reference, numbers: list[float], fmt: Format, _: ScaleRule) -> Any:
        return reference(numbers, fmt, other)

    return Deviation(
        f"mx_as_{other}",
        f"The scales of MX follow {other} whatever is asked for.",
        ("MXS-003", "MXS-004", "MXS-005", "MXS-006"),
        IN_MX,
        (Change(mx.scale_code, swapped, is_another),),
    )


@deviation(
    nvfp4.block_scale_code,
    rules=("NVF-002", "NVF-004"),
    domain=IN_NVFP4,
    unseen=SCALES_ABOVE_ZERO,
)
def block_scale_at_least_smallest(reference: Reference, s: float) -> int:
    """The scale of a tile is at least 2^-9, the smallest number of e4m3."""
    return int(reference(max(s, _E4M3_SMALLEST)))


@deviation(
    nvfp4.block_scale_code, rules=("NVF-002", "NVF-004"), domain=IN_NVFP4, unseen=NORMAL_SCALES
)
def block_scale_at_least_smallest_normal(reference: Reference, s: float) -> int:
    """The scale of a tile is at least 2^-6, the smallest normal number of e4m3."""
    return int(reference(max(s, 2.0**-6)))


@deviation(
    nvfp4.block_scale_code,
    rules=("NVF-002", "NVF-004"),
    domain=IN_NVFP4,
    unseen=SCALES_THAT_UNDERFLOW,
)
def zero_block_scale_is_one(reference: Reference, s: float) -> int:
    """A scale of a tile that becomes 0 is stored as 1."""
    return int(reference(s)) or 0x38


@deviation(nvfp4.block_scale_code, rules=("NVF-002",), domain=IN_NVFP4)
def block_scale_truncated(_: Reference, s: float) -> int:
    """The scale of a tile is cut to e4m3 instead of rounded."""
    return encode(s, SCALE_FORMAT, "rtz")


@deviation(nvfp4.block_scale_code, rules=("NVF-002",), domain=IN_NVFP4)
def block_scale_rounded_up(_: Reference, s: float) -> int:
    """The scale of a tile is rounded up to e4m3, so that nothing saturates."""
    return encode(s, SCALE_FORMAT, "rtp")


@deviation(nvfp4.global_scale, rules=("NVF-003",), domain=IN_NVFP4)
def global_scale_inverted(reference: Reference, *arguments: Any) -> GlobalScale:
    """The global scales for numbers and for codes are exchanged."""
    found: GlobalScale = reference(*arguments)
    return GlobalScale(found.decode, found.encode)


@deviation(nvfp4.global_scale, rules=("NVF-003",), domain=IN_NVFP4)
def global_scale_by_reciprocal(
    reference: Reference, profile: Nvfp4Profile, amax: float
) -> GlobalScale:
    """S_enc is Q * RN(1 / amax): two roundings."""
    if amax == 0 or not math.isfinite(amax):
        found: GlobalScale = reference(profile, amax)
        return found
    s = min(product(profile.range, quotient(1.0, amax)), FLT_MAX) or 1.0
    return GlobalScale(s, quotient(1.0, s))


@deviation(nvfp4.global_scale, rules=("NVF-003",), domain=IN_NVFP4, unseen=DIVIDED_FOR_DECODING)
def global_decode_scale_by_division(
    reference: Reference, profile: Nvfp4Profile, amax: float
) -> GlobalScale:
    """S_dec is amax / Q, not the inverse of the rounded S_enc."""
    found: GlobalScale = reference(profile, amax)
    if amax == 0 or not math.isfinite(amax):
        return found
    return GlobalScale(found.encode, quotient(amax, profile.range))


@deviation(nvfp4.restored, rules=("NVF-010",), domain=IN_NVFP4)
def global_scale_left_out(_: Reference, value: float, scale: TileScale) -> float:
    """Y lacks the global scale: it is the code times the scale of its tile."""
    return product(value, SCALE_FORMAT.value(scale.code))


@deviation(nvfp4.restored, rules=("NVF-010",), domain=IN_NVFP4)
def global_scale_applied_twice(reference: Reference, value: float, scale: TileScale) -> float:
    """Y has the global scale twice."""
    own = SCALE_FORMAT.value(scale.code)
    found = float(reference(value, scale))
    return product(found, quotient(scale.decode, own)) if own else found


@deviation(nvfp4.restored, rules=("NVF-010",), domain=IN_NVFP4)
def block_scale_applied_twice(reference: Reference, value: float, scale: TileScale) -> float:
    """Y has the scale of its tile twice."""
    return product(float(reference(value, scale)), SCALE_FORMAT.value(scale.code))


def _by_encode_scale(profile: Nvfp4Profile, *_: Any) -> bool:
    return profile.rule in ("te", "te_2_13", "4over6_mae", "4over6_mse")


@deviation(nvfp4.tile_scale, where=_by_encode_scale, rules=("NVF-004",), domain=_BY_ENCODE_SCALE)
def encode_scale_by_division(reference: Reference, *arguments: Any) -> TileScale:
    """Numbers are multiplied by S_enc / s, not by the inverse of the rounded s * S_dec."""
    found: TileScale = reference(*arguments)
    s = SCALE_FORMAT.value(found.code)
    return replace(found, encode=min(quotient(arguments[-1].encode, s), FLT_MAX))


@deviation(nvfp4.scaled, rules=("NVF-010",), domain=IN_NVFP4, unseen=DIVIDED_FOR_ENCODING)
def nvfp4_divides(_: Reference, x: float, scale: TileScale) -> float:
    """Numbers are divided by s * S_dec, not multiplied by its rounded inverse."""
    return quotient(x, scale.decode)


@deviation(nvfp4.packed, rules=("NVF-011",), domain=NVFP4)
def nibbles_swapped(reference: Reference, low: int, high: int) -> int:
    """The even element of a pair lies in the high nibble."""
    return int(reference(high, low))


@deviation(mx.scale_code, rules=("MXS-002",), domain=IN_MX, unseen=for_generated(IN_MX))
def mx_zero_block_is_127(reference: Reference, numbers: list[float], *rest: Any) -> int:
    """A block of zeros has the scale 1, the code 127."""
    return int(reference(numbers, *rest)) if any(numbers) else 127


@deviation(mx.scale_code, rules=("MXS-002",), domain=IN_MX, unseen=for_generated(IN_MX))
def mx_ignores_nan(reference: Reference, numbers: list[float], *rest: Any) -> int:
    """The scale of a block with a NaN is that of its other elements."""
    return int(reference([x for x in numbers if not math.isnan(x)], *rest))


@deviation(mx.scale_code, rules=("MXS-002",), domain=IN_MX, unseen=for_generated(IN_MX))
def mx_infinity_is_nan(reference: Reference, numbers: list[float], *rest: Any) -> int:
    """A block with an infinity has the scale NaN."""
    return 0xFF if any(math.isinf(x) for x in numbers) else int(reference(numbers, *rest))


def _by_rceil(_numbers: list[float], _fmt: Format, rule: ScaleRule) -> bool:
    return rule == "rceil"


@deviation(
    mx.scale_code,
    where=_by_rceil,
    rules=("MXS-006",),
    domain=IN_MX,
    unseen=for_generated(IN_MX),
)
def mx_underflow_is_one(
    reference: Reference, numbers: list[float], fmt: Format, rule: ScaleRule
) -> int:
    """A quotient amax / largest that underflows to 0 is stored as the scale 1, the code 127."""
    amax = mx.amax_of(numbers)
    underflows = amax > 0 and quotient(amax, fmt.largest) == 0
    return 127 if underflows else int(reference(numbers, fmt, rule))


@deviation(mx.scale_code, rules=("MXS-001", "MXS-008"), domain=IN_MX)
def mx_stores_the_inverse(reference: Reference, *arguments: Any) -> int:
    """254 - code is stored, the scale that numbers are multiplied by."""
    code = int(reference(*arguments))
    return code if code == 0xFF else 254 - code


def _by_floor(_amax: float, _fmt: Format, rule: ScaleRule) -> bool:
    return rule == "floor"


@deviation(
    mx.shared_exponent, where=_by_floor, rules=("MXS-003",), domain=IN_MX, unseen=SHORT_NUMBERS
)
def mx_log2_in_floating_point(reference: Reference, amax: float, *rest: Any) -> int:
    """The exponent is floor(log2(amax)) in binary32: too large just below powers of two."""
    return (
        math.floor(log2_in_binary32(amax)) if math.isfinite(amax) else int(reference(amax, *rest))
    )


def log2_in_binary32(x: float) -> float:
    """The logarithm of a positive number; binary64 has more bits than the rounding needs here."""
    mantissa, exponent = math.frexp(x)
    return rn32(Fraction(math.log2(mantissa)) + exponent)


@deviation(mx.shared_exponent, rules=("MXS-002",), domain=IN_MX)
def mx_element_exponent_left_out(
    reference: Reference, amax: float, fmt: Format, rule: ScaleRule
) -> int:
    """The code is that of amax alone: the exponent of the largest number is not subtracted."""
    return int(reference(amax, fmt, rule)) + floor_log2(fmt.largest)


@deviation(mx.quantize_element, rules=("MXS-008",), domain=IN_MX, unseen=for_generated(IN_MX))
def mx_scale_by_a_shift(
    reference: Reference, x: float, code: int, fmt: Format, rule: ScaleRule
) -> Element:
    """Y has the scale of the bits code << 23: code 0 is 0, and code 255 infinity."""
    found: Element = reference(x, code, fmt, rule)
    if code not in (0, 0xFF):
        return found
    scale = math.inf if code else 0.0
    return replace(found, y=product(fmt.value(found.code), scale))


DEVIATIONS = (
    *(_nvfp4_as(profile) for profile in PROFILES.values()),
    *(_mx_as(rule) for rule in SCALE_RULES),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
