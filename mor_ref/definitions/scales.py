"""Kinds of scaling, the formats that numbers can be scaled into, and amaxes that are given."""

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, SupportsFloat

from mor_ref.argument_checks import binary32_number, known_name, shown
from mor_ref.definitions.blocks import CutLike, Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike, as_format, formats

Scaling = Literal["gam", "e8m0", "fp32"]
STORED_IN: Mapping[Scaling, Format] = {  # the format of a stored scale (ERR-009)
    "gam": formats["e8m0"],
    "e8m0": formats["e8m0"],
    "fp32": formats["f32"],
}
SCALINGS: tuple[Scaling, ...] = tuple(STORED_IN)
USUAL_SCALING: Scaling = "gam"  # where none is given
_OTHER_SCALINGS = {
    **dict.fromkeys(("f32", "float", "float32"), ("fp32",)),
    **dict.fromkeys(("ue8m0", "e8m0fnu", "float8e8m0fnu", "pow2", "poweroftwo"), ("e8m0",)),
}

_SMALLEST_LARGEST = 2.0
_WIDEST = 8
_SMALLEST_NORMAL = math.ldexp(1.0, -126)


def check_scaling(scaling: object) -> None:
    """Refuse the name of a kind of scales that there is not."""
    known_name("scaling", scaling, SCALINGS, _OTHER_SCALINGS)


def scaling_or_usual(scaling: Scaling | None) -> Scaling:
    """Return the kind of scales that is given, or gam; refuse a name that there is not."""
    if scaling is None:
        return USUAL_SCALING
    check_scaling(scaling)
    return scaling


def is_scaled(fmt: Format) -> bool:
    """Return whether numbers can be scaled into a format (SCL-003)."""
    return fmt.bits <= _WIDEST and fmt.sign != "none" and fmt.largest >= _SMALLEST_LARGEST


def scaled_format(fmt: FormatLike) -> Format:
    """Return a format that numbers can be scaled into; refuse any other (SCL-003)."""
    target = as_format(fmt)
    if not is_scaled(target):
        raise ValueError(
            f"format {target.name!r} has {target.bits} bits, largest value {target.largest:g} and "
            f"sign {target.sign!r}; give a signed format of at most {_WIDEST} bits whose "
            f"largest value is at least {_SMALLEST_LARGEST:g}, such as e4m3, e5m2 or e2m1"
        )
    return target


def check_group(cut: Partition, group: CutLike, scaling: Scaling) -> None:
    """Refuse groups if the scaling shares nothing (GAM-006)."""
    if scaling != "gam" and max(cut.group_grid) > 1:
        raise ValueError(
            f"group is {group!r}, but scaling is {scaling!r}, which shares nothing; "
            "omit group, or give scaling 'gam'"
        )


class AmaxOrScale(NamedTuple):
    """A given amax or scale: of the blocks of a format (SCL-006, SCL-007), or of a tensor in NVFP4.

    Of NVFP4, the scale is the global one (NVF-013, NVF-014). It is one number, or has one for each
    place in a sequence of the implementation: of rows of blocks or groups, or of rows of NVFP4.
    """

    amax: Any = None
    scale: Any = None


NOTHING_GIVEN = AmaxOrScale()
GivenScales = Mapping[str, AmaxOrScale]  # by the name of a scale of a block format (BLF-008)
NO_SCALES_GIVEN: GivenScales = {}


def given_of(name: str, given: AmaxOrScale) -> GivenScales:
    """Return what is given of a scale by its name; an empty mapping if that is nothing."""
    return NO_SCALES_GIVEN if given is NOTHING_GIVEN else {name: given}


class GivenAmaxes(NamedTuple):
    """Amaxes of the whole tensor, for use on some of its rows.

    One is for scaled formats, and one for NVFP4.
    """

    scaled: AmaxOrScale = NOTHING_GIVEN
    nvfp4: AmaxOrScale = NOTHING_GIVEN


WHOLE = GivenAmaxes()


class ScalingBlocks(NamedTuple):
    """The scaling blocks of a tensor: how it is cut, the kind of scales, and each block's amax.

    `amax` is an array of the implementation, of binary32 bits; None if it is not known yet.
    """

    parts: Partition
    scaling: Scaling
    amax: Any
    given: GivenAmaxes = WHOLE


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


def given_for(
    scaling: Scaling, amax: SupportsFloat | None, scale: SupportsFloat | None
) -> AmaxOrScale:
    """Return a given amax or scale for a kind of scales; refuse both, and a wrong number."""
    check_scale_given(scaling, amax, scale)
    if scale is None:
        return AmaxOrScale(None if amax is None else given_amax("amax", amax))
    return AmaxOrScale(scale=given_scale("scale", scale))


def check_scale_given(scaling: Scaling, amax: object, scale: object) -> None:
    """Refuse a scale with an amax, and one of a kind of scales that follow from an amax."""
    if scale is not None and amax is not None:
        raise ValueError(f"amax is {shown(amax)} and scale is {shown(scale)}; give one of them")
    if scale is not None and scaling != "fp32":
        raise ValueError(f"scale is given with scaling {scaling!r}; give scaling 'fp32'")
