"""NVFP4 that differs: other profiles, other guards, other orders."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import IN_NVFP4, NVFP4, NVFP4_FOREIGN, POLICY_SUITES
from mor_ref.deviations.exemptions import (
    DIVIDED_FOR_DECODING,
    DIVIDED_FOR_ENCODING,
    NORMAL_SCALES,
    SCALES_ABOVE_ZERO,
    SCALES_THAT_UNDERFLOW,
)
from mor_ref.exact import nvfp4
from mor_ref.exact.arithmetic import FLT_MAX, product, quotient
from mor_ref.exact.encoding import encode
from mor_ref.exact.nvfp4 import SCALE_FORMAT, GlobalScale, TileScale

Reference = Callable[..., Any]
_E4M3_SMALLEST = 2.0**-9

_BY_ENCODE_SCALE = tuple(name for name in IN_NVFP4 if name not in NVFP4_FOREIGN)


def _suites_without(profile: str) -> tuple[str, ...]:
    """Return the suites of other profiles; policies take te."""
    own = (f"nvfp4_{profile}", *(POLICY_SUITES if profile == "te" else ()))
    return tuple(name for name in IN_NVFP4 if name not in own)


def _nvfp4_as(other: Nvfp4Profile) -> Deviation:
    """Return the deviation that takes one profile in place of every other."""

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
        f"NVFP4 is computed with the profile {other.name}.",
        ("NVF-002",),
        _suites_without(other.name),
        (
            Change(nvfp4.amaxes_of, swapped_last, comes_last),
            Change(nvfp4.global_scale, swapped_first, comes_first),
            Change(nvfp4.tile_scale, swapped_first, comes_first),
            Change(nvfp4.quantize_element, swapped_last, comes_last),
        ),
    )


@deviation(
    nvfp4.block_scale_code,
    rules=("NVF-002", "NVF-004"),
    domain=IN_NVFP4,
    exemptions=SCALES_ABOVE_ZERO,
)
def block_scale_at_least_smallest(reference: Reference, s: float) -> int:
    """The scale of a tile is at least 2^-9, the smallest number of e4m3."""
    return int(reference(max(s, _E4M3_SMALLEST)))


@deviation(
    nvfp4.block_scale_code, rules=("NVF-002", "NVF-004"), domain=IN_NVFP4, exemptions=NORMAL_SCALES
)
def block_scale_at_least_smallest_normal(reference: Reference, s: float) -> int:
    """The scale of a tile is at least 2^-6, the smallest normal number of e4m3."""
    return int(reference(max(s, 2.0**-6)))


@deviation(
    nvfp4.block_scale_code,
    rules=("NVF-002", "NVF-004"),
    domain=IN_NVFP4,
    exemptions=SCALES_THAT_UNDERFLOW,
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
    """The scale of a tile is rounded up to e4m3: no element saturates."""
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


@deviation(nvfp4.global_scale, rules=("NVF-003",), domain=IN_NVFP4, exemptions=DIVIDED_FOR_DECODING)
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
    return profile.scales.global_scale == "S_enc"


@deviation(nvfp4.tile_scale, where=_by_encode_scale, rules=("NVF-004",), domain=_BY_ENCODE_SCALE)
def encode_scale_by_division(reference: Reference, *arguments: Any) -> TileScale:
    """Numbers are multiplied by S_enc / s, not by the inverse of the rounded s * S_dec."""
    found: TileScale = reference(*arguments)
    s = SCALE_FORMAT.value(found.code)
    return replace(found, encode=min(quotient(arguments[-1].encode, s), FLT_MAX))


@deviation(nvfp4.scaled, rules=("NVF-010",), domain=IN_NVFP4, exemptions=DIVIDED_FOR_ENCODING)
def nvfp4_divides(_: Reference, x: float, scale: TileScale) -> float:
    """Numbers are divided by s * S_dec, not multiplied by its rounded inverse."""
    return quotient(x, scale.decode)


@deviation(nvfp4.packed, rules=("NVF-011",), domain=NVFP4)
def nibbles_swapped(reference: Reference, low: int, high: int) -> int:
    """The even element of a pair lies in the high nibble."""
    return int(reference(high, low))


DEVIATIONS = (
    *(_nvfp4_as(profile) for profile in map(PROFILES.__getitem__, PROFILES.specified)),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
