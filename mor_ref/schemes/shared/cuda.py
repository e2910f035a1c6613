"""Shared exponents on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Bits, Device, launch
from mor_ref.definitions.blocks import partition
from mor_ref.schemes.shared.definition import BLOCK, PAIR, SharedKind, SharedProfile

_RULE = rows.structure("u4 magnitude_bits,shifts,carries,nan_blocks,keeps_signs")
_FIELDS = rows.structure("u8 shared_exponent,tau,sign,magnitude,code,y")


class SharedArrays(NamedTuple):
    """A tensor in blocks that share an exponent."""

    shared_exponent: Array
    tau: Array
    sign: Array
    magnitude: Array
    code: Array
    y: Array


def quantize_shared(
    device: Device, x: Bits, kind: SharedKind, profile: SharedProfile
) -> SharedArrays:
    """Quantize a tensor of rows and columns."""
    shape = x.array.shape
    blocks, pairs = (partition(shape, (1, side)).grid for side in (BLOCK, PAIR))
    small = [device.empty(grid, np.uint8) for grid in (blocks, pairs, shape, shape, shape)]
    fields = SharedArrays._make([*small, device.empty(shape, np.uint32)])
    rule = rows.row(
        _RULE,
        magnitude_bits=kind.magnitude_bits,
        shifts=kind.shifts,
        carries=kind.carries,
        nan_blocks=profile.nan_blocks,
        keeps_signs=profile.keeps_signs,
    )
    places = {name: device.address(array) for name, array in fields._asdict().items()}
    arguments = (*map(np.uint64, shape), rule, rows.row(_FIELDS, **places))
    count = blocks[0] * blocks[1]
    launch(device, "shared", f"shared_{x.source}", count, x.array, *arguments)
    return fields


def packed_blocks(
    device: Device, codes: Array, tau: Array, exponent: Array, kind: SharedKind
) -> Array:
    """Return the bytes of each row of blocks (SHX-007)."""
    height, width = codes.shape
    packed = device.empty((height, kind.row_bytes(width)), np.uint8)
    sizes = np.uint64(height), np.uint64(width), np.uint32(kind.code_bits), np.uint32(kind.shifts)
    launch(
        device, "packing", "packed_blocks", int(packed.size), codes, tau, exponent, *sizes, packed
    )
    return packed
