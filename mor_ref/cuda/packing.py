"""Codes as bytes on a device."""

import numpy as np

from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.definitions.levels import TERNARY_DIGITS, LevelKind
from mor_ref.definitions.shared import BLOCK, SharedKind


def levels(device: Device, codes: Array, kind: LevelKind) -> Array:
    """Return the bytes of each row of levels (LVL-008)."""
    height, width = codes.shape
    count = -(-width * kind.bits // 8) if kind.bits else -(-width // TERNARY_DIGITS)
    packed = device.empty((height, count), np.uint8)
    sides = [np.uint64(side) for side in (height, width, count)]
    launch(
        device, "packing", "packed_levels", height * count, codes, *sides, np.uint32(kind.bits),
        packed,
    )  # fmt: skip
    return packed


def blocks(device: Device, codes: Array, tau: Array, exponent: Array, kind: SharedKind) -> Array:
    """Return the bytes of each row of blocks (SHX-007)."""
    height, width = codes.shape
    packed = device.empty((height, -(-width // BLOCK) * kind.block_bytes), np.uint8)
    sizes = np.uint64(height), np.uint64(width), np.uint32(kind.code_bits), np.uint32(kind.shifts)
    launch(
        device, "packing", "packed_blocks", int(packed.size), codes, tau, exponent, *sizes, packed
    )
    return packed
