"""Kinds of scaling, and the formats that numbers can be scaled into."""

from typing import Any, Literal, NamedTuple, get_args

from mor_ref.definitions.blocks import Cut, Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format

Scaling = Literal["gam", "e8m0", "fp32"]
SCALINGS: tuple[Scaling, ...] = get_args(Scaling)

_SMALLEST_LARGEST = 4.0
_WIDEST = 8


def scaled_format(fmt: str | Format) -> Format:
    """Return a format that numbers can be scaled into; refuse any other (SCL-003)."""
    found = as_format(fmt)
    if found.bits > _WIDEST or found.sign == "none" or found.largest < _SMALLEST_LARGEST:
        raise ValueError(
            f"format {found.name!r} has {found.bits} bits, largest value {found.largest:g} and "
            f"sign {found.sign!r}; scaled are signed formats of at most {_WIDEST} bits whose "
            f"largest value is at least {_SMALLEST_LARGEST:g}, such as e4m3, e5m2 or e2m1"
        )
    return found


class ScalingBlocks(NamedTuple):
    """The scaling blocks of a tensor: how it is cut, the kind of scales, and each block's amax.

    `amax` is an array of the implementation, of binary32 bits.
    """

    parts: Partition
    scaling: Scaling
    amax: Any


def check_group(cut: Partition, group: Cut, scaling: Scaling) -> None:
    """Refuse groups if the scaling shares nothing (GAM-006)."""
    if scaling != "gam" and max(cut.group_grid) > 1:
        raise ValueError(
            f"group is {group!r}, but scaling is {scaling!r}, which shares nothing; "
            "omit group, or give scaling 'gam'"
        )
