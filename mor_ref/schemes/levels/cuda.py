"""Levels on a device."""

from typing import NamedTuple

import ml_dtypes
import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Bits, Device, launch
from mor_ref.cuda.scales import ALL, extremes
from mor_ref.definitions.blocks import partition
from mor_ref.schemes.levels.definition import CLIP, SMALLEST_ALPHA, LevelKind

_RULE = rows.structure(
    "u4 grid,narrow,mask; f4 lowest,highest,below,above,steps,shift,divisor,smallest"
)
_FIELDS = rows.structure("u8 ratio,clipped,level,y,alpha_term,inside,code")
_GRIDS = {"integers": 0, "thirds": 1, "quarters": 1, "signs": 2}


class LevelArrays(NamedTuple):
    """Weights as levels."""

    alpha: Array
    ratio: Array
    clipped: Array
    level: Array
    y: Array
    alpha_term: Array
    inside: Array
    code: Array


def _rule(kind: LevelKind, arithmetic: str) -> rows.Row:
    narrow = arithmetic == "bf16"
    to = ml_dtypes.bfloat16 if narrow else np.float32
    limit = float(np.float32(CLIP).astype(to))
    is_clipped = kind.grid in ("thirds", "quarters")
    return rows.row(
        _RULE,
        grid=_GRIDS[kind.grid],
        narrow=narrow,
        mask=(1 << kind.bits) - 1,
        lowest=-limit if is_clipped else kind.lowest,
        highest=limit if is_clipped else kind.highest,
        below=kind.lowest,
        above=kind.highest,
        steps=kind.steps,
        shift=kind.shift,
        divisor=kind.divisor,
        smallest=float(np.float32(SMALLEST_ALPHA).astype(to)),
    )


def first_alphas(device: Device, x: Bits, kind: LevelKind, arithmetic: str) -> Array:
    """Return alpha of each row for which none is given."""
    height, width = x.array.shape
    rule, alpha = _rule(kind, arithmetic), device.empty((height,), np.uint32)
    if kind.divisor:
        amax = device.filled((height,), np.uint32, 0)  # of rows without weights
        if width:
            amax = extremes(device, x, partition(x.array.shape, "row"), ALL).amax
        launch(device, "levels", "alphas_of_amaxes", height, amax, np.uint64(height), rule, alpha)
    else:
        sides = (np.uint64(height), np.uint64(width))
        name = f"alphas_of_means_{x.source}"
        launch(device, "levels", name, height, x.array, *sides, rule, alpha)
    return alpha


def quantize_levels(
    device: Device, x: Bits, alpha: Array, kind: LevelKind, arithmetic: str
) -> LevelArrays:
    """Quantize a matrix whose rows have these alphas."""
    height, width = x.array.shape
    rule, used = _rule(kind, arithmetic), device.empty((height,), np.uint32)
    launch(device, "levels", "alphas_used", height, alpha, np.uint64(height), rule, used)
    numbers = [device.empty(x.array.shape, np.uint32) for _ in range(5)]
    small = [device.empty(x.array.shape, np.uint8) for _ in range(2)]
    fields = LevelArrays._make([used, *numbers, *small])
    places = {name: device.address(array) for name, array in fields._asdict().items()}
    del places["alpha"]
    arguments = (np.uint64(height), np.uint64(width), used, rule, rows.row(_FIELDS, **places))
    launch(device, "levels", f"levels_{x.source}", x.size, x.array, *arguments)
    return fields


def packed_rows(device: Device, codes: Array, kind: LevelKind) -> Array:
    """Return the bytes of each row of levels (LVL-008)."""
    height, width = codes.shape
    count = kind.row_bytes(width)
    packed = device.empty((height, count), np.uint8)
    sides = [np.uint64(side) for side in (height, width, count)]
    launch(
        device, "packing", "packed_levels", height * count, codes, *sides, np.uint32(kind.bits),
        packed,
    )  # fmt: skip
    return packed
