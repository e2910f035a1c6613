"""NVFP4 with right numbers and wrong launches: shapes, edges, packing, and the numbers of amax."""

from collections.abc import Callable

import numpy as np

from wrong.kernel import Arrays, Kernel
from wrong.nvfp4_parts import (
    ALL,
    F32,
    FOUR_OVER_SIX,
    SOURCES,
    SQUARE,
    TE,
    bits,
    from_tiles,
    largest,
    load,
    pack,
    to_tiles,
)
from wrong.nvfp4_right import program

KERNELS: list[Kernel] = []

Tensor = Callable[[str, np.ndarray, list[int]], Arrays]


def wrong(mistake, *profiles, unseen=None):
    """Return a decorator that adds a function of (profile, x, tile), once for each profile."""

    def register(tensor: Tensor) -> Tensor:
        for profile in profiles:
            name, why = f"nvfp4.{tensor.__name__}.{profile}", (unseen or {}).get(profile, {})
            KERNELS.append(Kernel(name, called(tensor, profile), mistake, why))
        return tensor

    return register


def called(tensor, profile):
    """Return an implementation that runs a function of tensors in one profile."""

    def run(operation, parameters, inputs):
        if operation != "nvfp4" or parameters["profile"] != profile:
            return None
        with np.errstate(all="ignore"):
            x = load(inputs["x"], parameters["source"])
            return tensor(profile, x, parameters["tile"])

    return run


def global_amax(profile, x):
    """Return the amax of a tensor, or of each row if the profile scales rows."""
    return largest(x, 1 if profile == "te_row" else None)


def quantized(profile, x, tile, amax=None, tiles=None):
    """Return the fields of a tensor; amax (one, or one for each row) and tiles are optional."""
    tiles = to_tiles(x, *tile) if tiles is None else tiles
    across = -(-x.shape[1] // tile[1])
    amax = np.ravel(global_amax(profile, x) if amax is None else amax)
    of_tiles = np.repeat(amax, across) if profile == "te_row" else amax
    amax = np.broadcast_to(of_tiles, len(tiles)).reshape(-1, 1, 1)
    found = program(profile, tiles, amax)
    rows = slice(None, None, across) if profile == "te_row" else slice(1)
    fields = {
        name: bits(found[name]).ravel()[rows]
        for name in ("global_encode_scale", "global_decode_scale")
    }
    fields["block_scale"] = bits(found["block_scale"]).reshape(-1, across)
    fields |= {name: from_tiles(bits(found[name]), x.shape) for name in ("xs", "code", "y")}
    return fields | {"packed": pack(fields["code"])}


@wrong("the even element is in the high nibble", *ALL)
def nibbles_swapped(profile, x, tile):
    fields = quantized(profile, x, tile)
    packed = fields["packed"]
    return fields | {"packed": packed << 4 | packed >> 4}


@wrong(
    "the last nibble of an odd row is the code of the next row's first element",
    *ALL,
)
def odd_rows_run_over(profile, x, tile):
    fields = quantized(profile, x, tile)
    packed, code = fields["packed"].copy(), fields["code"]
    if code.shape[1] % 2:
        packed[:-1, -1] |= code[1:, 0] << 4
    return fields | {"packed": packed}


@wrong(
    "nibbles run on over rows, so that an odd row starts in a high nibble",
    *ALL,
)
def packed_over_rows(profile, x, tile):
    fields = quantized(profile, x, tile)
    flat = np.zeros(2 * fields["packed"].size, np.uint8)
    flat[: x.size] = fields["code"].ravel()
    return fields | {"packed": pack(flat[None]).reshape(fields["packed"].shape)}


def cut(fields, tile, rows, columns):
    """Return the fields with zeros where a launch writes nothing."""
    kept = {name: a.copy() for name, a in fields.items()}
    for name in ("xs", "code", "y"):
        kept[name][rows:], kept[name][:, columns:] = 0, 0
    kept["block_scale"][-(-rows // tile[0]) :] = 0
    kept["block_scale"][:, -(-columns // tile[1]) :] = 0
    return kept | {"packed": pack(kept["code"])}


@wrong(
    "a grid has 65,535 blocks at most, and each has a row",
    "te",
    unseen={"te": {"nvfp4_te": "its tensors are smaller"}},
)
def first_65535_rows(profile, x, tile):
    return cut(quantized(profile, x, tile), tile, 65535, x.shape[1])


@wrong(
    "rows in excess of whole tiles are left out",
    *SQUARE,
)
def whole_tiles_of_rows(profile, x, tile):
    return cut(quantized(profile, x, tile), tile, x.shape[0] // tile[0] * tile[0], x.shape[1])


@wrong("columns in excess of whole tiles are left out", *ALL)
def whole_tiles_of_columns(profile, x, tile):
    return cut(quantized(profile, x, tile), tile, x.shape[0], x.shape[1] // tile[1] * tile[1])


@wrong("a short tile is filled with the numbers that follow in memory", *ALL)
def short_tiles_read_on(profile, x, tile):
    across = -(-x.shape[1] // 16) * 16
    flat = np.concatenate([x.ravel(), np.zeros(across, F32)])
    rows = [flat[start : start + across] for start in range(0, x.size, x.shape[1])]
    return quantized(profile, x, tile, tiles=to_tiles(np.stack(rows), *tile))


@wrong("short tiles repeat their last row and column, which count as errors", *SQUARE[2:])
def short_tiles_repeat(profile, x, tile):
    down, right = (-side % step for side, step in zip(x.shape, tile, strict=True))
    padded = np.pad(x, ((0, down), (0, right)), mode="edge")
    return quantized(profile, x, tile, tiles=to_tiles(padded, *tile))


@wrong(
    "a NaN makes the amax NaN, as np.max and torch.amax do",
    *TE,
    *FOUR_OVER_SIX,
)
def amax_of_nan_is_nan(profile, x, tile):
    return quantized(profile, x, tile, np.abs(x).max(axis=1 if profile == "te_row" else None))


@wrong(
    "infinities do not count in the amax of the tensor",
    *ALL,
)
def amax_of_finite_numbers(profile, x, tile):
    finite = np.where(np.isfinite(x), x, F32(0))
    return quantized(profile, x, tile, global_amax(profile, finite))


@wrong("the amax of the tensor is its largest number, without its sign", *ALL)
def amax_without_abs(profile, x, tile):
    positive = np.where(x > 0, x, F32(0))
    return quantized(profile, x, tile, global_amax(profile, positive))


@wrong("the amax of a row is the amax of the tensor", "te_row")
def rows_share_an_amax(profile, x, tile):
    return quantized(profile, x, tile, np.repeat(largest(x), x.shape[0]))


@wrong(
    "the amax of the tensor is reduced by whole warps of 32 columns",
    *ALL,
)
def amax_of_whole_warps(profile, x, tile):
    seen = x[:, : max(32, x.shape[1] // 32 * 32)]
    return quantized(profile, x, tile, global_amax(profile, seen))


@wrong(
    "the amax of the tensor is kept in bfloat16",
    *ALL,
)
def amax_in_bfloat16(profile, x, tile):
    amax = global_amax(profile, x)
    return quantized(profile, x, tile, amax.astype(SOURCES["bf16"]).astype(F32))


@wrong("scales of tiles are written column by column", *ALL)
def scales_in_columns(profile, x, tile):
    fields = quantized(profile, x, tile)
    s = fields["block_scale"]
    return fields | {"block_scale": s.T.reshape(s.shape)}


@wrong(
    "512 threads have a tile of 16 x 16 each",
    *SQUARE,
    unseen={profile: {f"nvfp4_{profile}": "its tensors are smaller"} for profile in SQUARE},
)
def first_512_squares(profile, x, tile):
    if tile != [16, 16]:
        return None
    fields = quantized(profile, x, tile)
    scale = fields["block_scale"].copy()
    scale.reshape(-1)[512:] = 0
    return fields | {"block_scale": scale}
