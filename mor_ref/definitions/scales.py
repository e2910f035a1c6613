"""Kinds of scaling, the formats that numbers can be scaled into, and amaxes that are given."""

import math
import struct
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from mor_ref.argument_checks import binary32_number
from mor_ref.definitions.blocks import Cut, Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format, formats

Scaling = Literal["gam", "e8m0", "fp32"]
STORED_IN: Mapping[Scaling, Format] = {  # the format of a stored scale (ERR-009)
    "gam": formats["e8m0"],
    "e8m0": formats["e8m0"],
    "fp32": formats["f32"],
}
SCALINGS: tuple[Scaling, ...] = tuple(STORED_IN)

_SMALLEST_LARGEST = 2.0
_WIDEST = 8
_SMALLEST_NORMAL = math.ldexp(1.0, -126)


def scaled_format(fmt: str | Format) -> Format:
    """Return a format that numbers can be scaled into; refuse any other (SCL-003)."""
    target = as_format(fmt)
    if target.bits > _WIDEST or target.sign == "none" or target.largest < _SMALLEST_LARGEST:
        raise ValueError(
            f"format {target.name!r} has {target.bits} bits, largest value {target.largest:g} and "
            f"sign {target.sign!r}; give a signed format of at most {_WIDEST} bits whose "
            f"largest value is at least {_SMALLEST_LARGEST:g}, such as e4m3, e5m2 or e2m1"
        )
    return target


def check_group(cut: Partition, group: Cut, scaling: Scaling) -> None:
    """Refuse groups if the scaling shares nothing (GAM-006)."""
    if scaling != "gam" and max(cut.group_grid) > 1:
        raise ValueError(
            f"group is {group!r}, but scaling is {scaling!r}, which shares nothing; "
            "omit group, or give scaling 'gam'"
        )


class AmaxOrScale(NamedTuple):
    """A given amax or scale: of the blocks of a format (SCL-006, SCL-007), or of a tensor in NVFP4.

    Of NVFP4, the scale is the global one (NVF-013, NVF-014).
    """

    amax: float | None = None
    scale: float | None = None


NOTHING_GIVEN = AmaxOrScale()


class GivenAmaxes(NamedTuple):
    """Amaxes of the whole tensor, for use on some of its rows.

    One is for scaled formats, and one for NVFP4.
    """

    scaled: AmaxOrScale = NOTHING_GIVEN
    nvfp4: AmaxOrScale = NOTHING_GIVEN


WHOLE = GivenAmaxes()


class ScalingBlocks(NamedTuple):
    """The scaling blocks of a tensor: how it is cut, the kind of scales, and each block's amax.

    `amax` is an array of the implementation, of binary32 bits.
    """

    parts: Partition
    scaling: Scaling
    amax: Any
    given: GivenAmaxes = WHOLE


def is_binary32(value: object) -> bool:
    """Return whether a value is a finite number that binary32 has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value) and struct.unpack("<f", struct.pack("<f", value))[0] == value
    except (struct.error, OverflowError):
        return False


def is_amax(value: object) -> bool:
    """Return whether a value is an amax that can be given."""
    return is_binary32(value) and float(value) >= 0  # type: ignore[arg-type]  # it is a number


def is_scale(value: object) -> bool:
    """Return whether a value is a scale that can be given: positive and normal."""
    return is_binary32(value) and float(value) >= _SMALLEST_NORMAL  # type: ignore[arg-type]


def given_amax(argument: str, value: object) -> float:
    """Return a given amax; refuse a number that cannot be one."""
    amax = binary32_number(argument, value, "3.5")
    if amax < 0:
        raise ValueError(f"{argument} is {amax!r}; give a number that is not negative")
    return amax


def given_scale(argument: str, value: object) -> float:
    """Return a given scale; refuse a number that cannot be one."""
    scale = binary32_number(argument, value, "0.25")
    if scale < _SMALLEST_NORMAL:
        raise ValueError(
            f"{argument} is {scale!r}; give a positive, normal number of binary32, such as 0.25"
        )
    return scale


def given_for(scaling: Scaling, amax: float | None, scale: float | None) -> AmaxOrScale:
    """Return a given amax or scale for a kind of scales; refuse both, and a wrong number."""
    if scale is None:
        return AmaxOrScale(None if amax is None else given_amax("amax", amax))
    if amax is not None:
        raise ValueError(f"amax is {amax!r} and scale is {scale!r}; give one of them")
    if scaling != "fp32":
        raise ValueError(f"scale is given with scaling {scaling!r}; give scaling 'fp32'")
    return AmaxOrScale(scale=given_scale("scale", scale))
