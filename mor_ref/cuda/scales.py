"""The extremes of blocks, and the three kinds of scales, on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Bits, Device, launch, run_team
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import NOTHING_GIVEN, SCALINGS, AmaxOrScale, Scaling

# The first magnitudes that do not count.
FINITE, NOT_NAN, ALL = 0x7F800000, 0x7F800001, 0x80000000


class Extremes(NamedTuple):
    """The largest and the smallest magnitude but zero of each block."""

    amax: Array
    amin: Array


def extremes(device: Device, x: Bits, parts: Partition, end: int = FINITE) -> Extremes:
    """Return the extremes of the magnitudes below `end`."""
    amax = device.filled(parts.grid, np.uint32, 0)
    amin = device.filled(parts.grid, np.uint32, 0xFF)
    run_team(device, "scales", "extremes", x, parts, np.uint32(end), amax, amin)
    count = parts.grid[0] * parts.grid[1]
    launch(device, "scales", "add_one", count, amin, np.uint64(count))
    return Extremes(amax, amin)


class BlockScales(NamedTuple):
    """The scale of each block, its stored fields, and the mantissa of each group."""

    scale: Array
    exponent: Array
    mantissa: Array


def _over_groups(device: Device, amax: Array, parts: Partition) -> Array:
    """Return the amax of each group: the amax of the amaxes of its blocks."""
    sides = tuple(-(-group // block) for group, block in zip(parts.group, parts.block, strict=True))
    blocks = partition(parts.grid, (sides[0], sides[1]))
    return extremes(device, Bits(amax, "f32"), blocks).amax


def scales(
    device: Device,
    kind: Scaling,
    amax: Array,
    fmt: Format,
    parts: Partition,
    given: AmaxOrScale = NOTHING_GIVEN,
) -> BlockScales:
    """Return the scale of each block: from amaxes (SCL-006), or the given one (SCL-007)."""
    largest = np.uint32(rows.bits_of(fmt.largest))
    if given.scale is not None:
        return BlockScales(
            device.upload(np.full(parts.grid, rows.bits_of(given.scale), np.uint32)),
            device.filled(parts.grid, np.uint8, 0),
            device.filled(parts.group_grid, np.uint32, 0),
        )
    if given.amax is not None and kind != "gam":
        amax = device.upload(np.full(parts.grid, rows.bits_of(given.amax), np.uint32))
    mantissa = device.filled(parts.group_grid, np.uint32, 0)
    if kind == "gam":
        groups = np.uint64(parts.group_grid[0] * parts.group_grid[1])
        if given.amax is None:
            group_amax = _over_groups(device, amax, parts)
        else:
            shared = np.full(parts.group_grid, rows.bits_of(given.amax), np.uint32)
            group_amax = device.upload(shared)
        launch(
            device, "scales", "shared_mantissas", int(groups), group_amax, groups, largest, mantissa
        )
    scale, exponent = device.empty(parts.grid, np.uint32), device.empty(parts.grid, np.uint8)
    arguments = (amax, mantissa, rows.cut(parts), scaling_of(kind), largest, scale, exponent)
    launch(device, "scales", "scales", parts.grid[0] * parts.grid[1], *arguments)
    return BlockScales(scale, exponent, mantissa)


def scaling_of(kind: Scaling) -> np.uint32:
    """Return the number that a kind has in kernels."""
    return np.uint32(SCALINGS.index(kind))


def scale_steps(
    device: Device, kind: Scaling, fmt: Format, group_amax: Array, block_amax: Array
) -> dict[str, Array]:
    """Return a scale from the amax of a group and of a block in it."""
    count = block_amax.size
    by_name = {
        "mantissa": device.empty((count,), np.uint32),
        "exponent": device.empty((count,), np.uint8),
        "scale": device.empty((count,), np.uint32),
    }
    largest = np.uint32(rows.bits_of(fmt.largest))
    arguments = (group_amax, block_amax, np.uint64(count), scaling_of(kind), largest)
    launch(device, "scales", "scale_steps", count, *arguments, *by_name.values())
    return by_name
