"""Tiles of NVFP4 with every scale, and tiles with infinite errors or errors that are NaN."""

import math

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.golden.inputs.edges import Bits, in_source
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.operations.bits import f32_array

_TILE = 16
_LOST = 5 * 2.0**-10  # s6 is 0, and s4 is not
# The amax of a tensor and of a tile, in units of 2^111, by range.
_OVERFLOWING = {1536: (249, 83), 2688: (252, 48)}


def every_scale(profile: Nvfp4Profile, tile: tuple[int, int], source: str) -> Tensor:
    """Return a tile for each scale; the largest number makes the global scale 1.

    All tiles are in one row if a tile has sixteen rows, or if each row has an amax of its own.
    """
    numbers = [x for pair in (*_once(profile), (_LOST, _LOST)) for x in pair]
    pairs = in_source(numbers, source).reshape(-1, 2)
    if tile[0] == 1 and not profile.per_row:
        return Tensor(f"every_scale.{source}", source, pairs)
    line = np.zeros((len(pairs), _TILE), pairs.dtype)
    line[:, :2] = pairs
    return Tensor(f"every_scale.{source}", source, line.reshape(1, -1))


def tiles_of_scales(profile: Nvfp4Profile) -> tuple[Bits, Bits]:
    """Return the amaxes of tensors, and a tile for each scale; the global scale is 1."""
    pairs = np.array([*_once(profile), (_LOST, _LOST)])
    tiles = np.tile(np.concatenate([pairs, -pairs], axis=1), _TILE // 4)
    amaxes = f32_array([profile.range] * len(pairs))
    return amaxes, f32_array(tiles.ravel().tolist()).reshape(-1, _TILE)


def _once(profile: Nvfp4Profile) -> list[tuple[float, float]]:
    """Return a pair for each scale: the numbers become 6 and 1, or 4 and 3 if 6 is too large."""
    reached = [[pair for pair in _pairs(s) if pair[0] <= profile.range] for s in _scales()]
    return [pairs[0] for pairs in reached if pairs]


def _scales() -> list[float]:
    return [formats["e4m3"].value(code) for code in range(formats["e4m3"].largest_code + 1)]


def _pairs(s: float) -> tuple[tuple[float, float], ...]:
    return (6 * s, s), (4 * s, 3 * s)


def lost_scale(profile: Nvfp4Profile, tile: tuple[int, int], source: str) -> Tensor:
    """Return a tile in which the scale for 6 is 0, and the scale for 4 is not."""
    return _in_tiles("lost", [profile.range, *[0.0] * 15, *[_LOST] * 16], tile, source)


def unordered_errors(tile: tuple[int, int], source: str) -> Tensor:
    """Return tiles whose two errors in 4 over 6 do not compare, because the amax is infinite.

    A code of 0 makes an error NaN: the error for 6 in a tile of small numbers, and the error for 4
    in a tile whose largest number is 6. In the last tile, whose scale is 416, both errors are
    infinite. The tiles of small numbers have no padding, because padding has the code 0.
    """
    rows, columns = tile
    infinity = -math.inf if source == "f16" else math.inf
    small, six = np.full(tile, _LOST), np.full(tile, 0.3125)
    six[0, 0] = 6
    last = np.ones((1, 2 * columns))
    last[0, 0], last[0, columns:] = infinity, 2496
    x = np.concatenate([np.concatenate([small, six], axis=1), last])
    bits = in_source(x.ravel().tolist(), source)
    return Tensor(f"unordered.{source}", source, bits.reshape(rows + 1, 2 * columns))


def nan_and_four(tile: tuple[int, int], source: str) -> Tensor:
    """Return a tile with a smaller error for 4 and with a NaN, so that 6 is taken.

    Scaled, its numbers are 3 and 4 with the scale for 4, and 4.5 and 6 with the scale for 6.
    """
    return _in_tiles(
        "nan_and_four", [1, *[0.75] * 5, math.nan, *[0.75] * 9, *[8] * 16], tile, source
    )


def infinite_errors(profile: Nvfp4Profile, tile: tuple[int, int], source: str) -> Tensor:
    """Return a tile whose error is infinite for 6, and 0 for 4.

    With A as the amax of the tensor, 6 * (scale for 6) * A is above the largest binary32 number,
    and 4 * (scale for 4) * A is not.
    """
    whole, part = (math.ldexp(number, 111) for number in _OVERFLOWING[int(profile.range)])
    return _in_tiles("overflowing", [whole, *[0.0] * 15, *[part] * 16], tile, source)


def infinite_tiles(profile: Nvfp4Profile) -> tuple[Bits, Bits]:
    """Return the amaxes of tensors, and the tiles of `unordered_errors` and `infinite_errors`."""
    unordered = unordered_errors((1, _TILE), "f32").x.reshape(-1, _TILE)
    first, last = infinite_errors(profile, (1, _TILE), "f32").x
    amaxes = f32_array([math.inf] * len(unordered))
    return np.append(amaxes, first[:1]), np.append(unordered, [last], axis=0)


def _in_tiles(name: str, numbers: list[float], tile: tuple[int, int], source: str) -> Tensor:
    """Return a tensor with sixteen numbers in each tile; it has one row if a tile has several."""
    rows = in_source(numbers, source).reshape(-1, _TILE)
    return Tensor(f"{name}.{source}", source, rows if tile[0] == 1 else rows.reshape(1, -1))
