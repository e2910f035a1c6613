"""NVFP4 on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums, no_errors
from mor_ref.cuda.launching import WORDS, Array, Bits, Device, Target, launch
from mor_ref.cuda.measuring import ErrorRule, measure
from mor_ref.cuda.scales import NOT_NAN, extremes
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import ROW_TILE, Nvfp4Profile
from mor_ref.definitions.scales import AmaxOrScale


class GlobalScales(NamedTuple):
    """The scales of the tensor, or of each row, and the amax that they follow from.

    If a scale is given, amax is 0.
    """

    amax: Array
    encode: Array
    decode: Array


class TileScales(NamedTuple):
    """The stored scale of each tile, and the factors of elements and of codes."""

    codes: Array
    encode: Array
    decode: Array


class Nvfp4Arrays(NamedTuple):
    """A tensor in NVFP4."""

    codes: Array
    packed: Array
    tiles: TileScales
    whole: GlobalScales


def global_scales(device: Device, x: Bits, profile: Nvfp4Profile) -> GlobalScales:
    """Return the global scales of the tensor, or of each row, even of an empty one."""
    if not x.size:
        count = x.array.shape[0] if profile.per_row else 1
        return scales_of_amaxes(device, device.filled((count, 1), np.uint32, 0), profile)
    parts = partition(x.array.shape, "row" if profile.per_row else "tensor")
    return scales_of_amaxes(device, extremes(device, x, parts, NOT_NAN).amax, profile)


def given_scales(
    device: Device, x: Bits, profile: Nvfp4Profile, given: AmaxOrScale
) -> GlobalScales | None:
    """Return the global scales of a given amax or of a given one (NVF-013, NVF-014); else None."""
    number = given.amax if given.scale is None else given.scale
    if number is None:
        return None
    shape = len(x.array) if profile.per_row else 1, 1
    numbers = device.upload(np.full(shape, number, np.float32).view(np.uint32))
    if given.scale is None:
        return scales_of_amaxes(device, numbers, profile)
    encode, decode = (device.empty(shape, np.uint32) for _ in range(2))
    arguments = (numbers, np.uint64(numbers.size), rows.profile(profile), encode, decode)
    launch(device, "nvfp4", "nvfp4_given_scales", numbers.size, *arguments)
    return GlobalScales(device.filled(shape, np.uint32, 0), encode, decode)  # which no tile needs


def scales_of_amaxes(device: Device, amax: Array, profile: Nvfp4Profile) -> GlobalScales:
    """Return the global scales that follow from amaxes, measured or given (NVF-013)."""
    encode, decode = (device.empty(amax.shape, np.uint32) for _ in range(2))
    arguments = (amax, np.uint64(amax.size), rows.profile(profile), encode, decode)
    launch(device, "nvfp4", "nvfp4_global_scales", amax.size, *arguments)
    return GlobalScales(amax, encode, decode)


def tile_scales(
    device: Device, x: Bits, profile: Nvfp4Profile, tile: tuple[int, int], whole: GlobalScales
) -> TileScales:
    """Return the scale of each tile."""
    down, across = partition(x.array.shape, tile).grid
    codes = device.empty((down, across), np.uint8)
    encode, decode = (device.empty((down, across), np.uint32) for _ in range(2))
    name = f"nvfp4_tile_scales_{x.source}_{tile[0]}"
    tiles = _tiles(x, tile, per_row=whole.amax.size > 1)
    arguments = (x.array, tiles, rows.profile(profile), *whole, codes, encode, decode)
    launch(device, "nvfp4", name, down * across * tile[0], *arguments)
    return TileScales(codes, encode, decode)


def _tiles(x: Bits, tile: tuple[int, int], *, per_row: bool) -> rows.Row:
    down, across = partition(x.array.shape, tile).grid
    count, columns = x.array.shape
    return rows.row(
        rows.TILES, rows=count, columns=columns, down=down, across=across, scales_per_row=per_row
    )


def strips(x: Bits) -> int:
    """Return the number of tile rows; each of them has a thread."""
    down, across = partition(x.array.shape, ROW_TILE).grid
    return down * across


def by_tile(
    device: Device, x: Bits, tile: tuple[int, int], profile: Nvfp4Profile, scales: TileScales
) -> ErrorRule:
    """Return the rule by which each tile has a scale."""
    row = rows.row(
        rows.BY_TILE,
        encodes=device.address(scales.encode),
        decodes=device.address(scales.decode),
        tile_rows=tile[0],
        tiles_across=partition(x.array.shape, tile).grid[1],
        profile=rows.profile(profile),
    )
    return ErrorRule("_tiles", row, scales)


def nvfp4(
    device: Device,
    x: Bits,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    overall: GlobalScales | None = None,
) -> Nvfp4Arrays:
    """Quantize a tensor to NVFP4, with the given global scales or its own."""
    overall = overall or global_scales(device, x, profile)
    scales = tile_scales(device, x, profile, tile, overall)
    count, columns = x.array.shape
    codes = device.empty((count, columns), np.uint8)
    packed = device.empty((count, -(-columns // 2)), np.uint8)
    tiles, rule = _tiles(x, tile, per_row=False), by_tile(device, x, tile, profile, scales)
    arguments = (x.array, tiles, rule.row, codes, packed)
    launch(device, "nvfp4", f"nvfp4_elements_{x.source}", strips(x), *arguments)
    return Nvfp4Arrays(codes, packed, scales, overall)


def at_random(
    device: Device, x: Bits, profile: Nvfp4Profile, tile: tuple[int, int], words: Array
) -> Array:
    """Return y of codes by stochastic rounding, with a word for each number (TRN-008)."""
    scales = tile_scales(device, x, profile, tile, global_scales(device, x, profile))
    y = device.empty(x.array.shape, np.uint32)
    tiles, rule = _tiles(x, tile, per_row=False), by_tile(device, x, tile, profile, scales)
    to = rows.encoding(formats["e2m1"], "sr", SpecialCases())
    arguments = (x.array, tiles, rule.row, to, words, y)
    launch(device, "nvfp4", f"nvfp4_at_random_{x.source}", strips(x), *arguments)
    return y


def errors(
    device: Device, x: Bits, profile: Nvfp4Profile, tile: tuple[int, int], scales: TileScales
) -> ErrorSums:
    """Return the error sums of the tensor (ERR-002)."""
    parts = partition(x.array.shape, "tensor")
    sums = no_errors(device, parts.grid)
    rule = by_tile(device, x, tile, profile, scales)
    measure(device, x, parts, rule, sums, by_block=False)
    return sums


def dequantize(
    device: Device,
    tensor: Nvfp4Arrays,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    to: Target = "f32",
) -> Array:
    """Return the values of the codes, as bits of the target."""
    codes = Bits(tensor.codes, "codes")
    y = device.empty(tensor.codes.shape, WORDS[to])
    tiles = _tiles(codes, tile, per_row=False)
    rule = by_tile(device, codes, tile, profile, tensor.tiles)
    name, arguments = f"nvfp4_dequantize_{to}", (tensor.codes, tiles, rule.row, y)
    launch(device, "nvfp4", name, strips(codes), *arguments)
    return y
