"""The chapter on NVFP4: global scales, the scales of tiles by profile, and 4 over 6."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale
from mor_ref.engine.blocks import Part, Sides, for_each_part, words_of
from mor_ref.engine.global_scales import GlobalScales, given_scales, global_scales
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.nearest import Grid, grid_of, nearest
from mor_ref.engine.scales import amax_of_blocks
from mor_ref.engine.strips import STRIP, TileScales, segment
from mor_ref.engine.widening import widen

_U = np.uint32
_F = np.float32
_E4M3 = formats["e4m3"]
_E2M1 = formats["e2m1"]
_FLT_MAX = np.finfo(np.float32).max
_ONE, _SIX = _F(1), _F(6)
_SIXTH = _U(0x3E2AAAAB).view(_F)  # no division: it would have the modes of the import
_LEAST_TORCHAO = _F(2.0**-6)
_LEAST_MODELOPT = _F(2.0**-9)
_LARGEST_SCALE = _F(448)
_ZERO_SCALE = _F(0.125)
_NAN_CODE = np.uint8(0x7F)


class Nvfp4Scales(NamedTuple):
    """The stored scales of the tiles, and all scales as the loops take them."""

    code: NDArray[np.uint8]
    overall: GlobalScales
    tiles: TileScales


# ---------------------------------------------------------------------- scalar steps


@step
def stored(s, e4m3):
    """Return the e4m3 code of a scale that is not negative, and the number that it stands for."""
    code, value = nearest(s, e4m3)
    return (np.uint8(code), value) if s == s else (_NAN_CODE, s)


@step
def te_scale(s, s_dec, e4m3):
    """NVF-004: code, encode and decode scale of a tile whose scale rounds from s."""
    code, value = stored(s, e4m3)
    decode = _F(value * s_dec)
    encode = _F(_ONE / decode)
    return code, encode if encode < _FLT_MAX else _FLT_MAX, decode


@step
def clamped(s, lowest, highest):
    """Return s, limited to the two bounds; NaN stays."""
    at_least = lowest if s < lowest else s
    return highest if at_least > highest else at_least


# ---------------------------------------------------------------------- loops over tiles


@kernel
def te_scales(bamax, s_enc, s_dec, e4m3, codes, encode, decode):
    """NVF-004."""
    use_full_vectors()
    factor = _F(s_enc * _SIXTH)
    for i in range(bamax.size):
        code, enc, dec = te_scale(_F(bamax[i] * factor), s_dec, e4m3)
        codes[i], encode[i], decode[i] = code, bits_of(enc), bits_of(dec)


@kernel
def te_2_13_scales(bamax, s_enc, s_dec, e4m3, codes, encode, decode):
    """NVF-005."""
    use_full_vectors()
    for i in range(bamax.size):
        code, enc, dec = te_scale(_F(_F(bamax[i] / _SIX) * s_enc), s_dec, e4m3)
        codes[i], encode[i], decode[i] = code, bits_of(enc), bits_of(dec)


@kernel
def torchao_scales(bamax, g_reciprocal, g, e4m3, codes, encode, decode):
    """NVF-007."""
    for i in range(bamax.size):
        s = _F(_F(bamax[i] / _SIX) / g)
        code, value = stored(clamped(s, _LEAST_TORCHAO, _LARGEST_SCALE), e4m3)
        codes[i] = code
        encode[i], decode[i] = bits_of(_F(g_reciprocal / value)), bits_of(_F(g * value))


@kernel
def modelopt_scales(bamax, _g_reciprocal, g, e4m3, codes, _encode, decode):
    """NVF-008."""
    for i in range(bamax.size):
        s = _F(bamax[i] / _F(_SIX * g))
        s = _ONE if s == _F(0) else s
        code, value = stored(clamped(s, _LEAST_MODELOPT, _LARGEST_SCALE), e4m3)
        codes[i], decode[i] = code, bits_of(_F(value * g))


@kernel
def compressed_tensors_scales(bamax, g, _g_reciprocal, e4m3, codes, _encode, decode):
    """NVF-009."""
    for i in range(bamax.size):
        code, value = stored(_F(g * _F(bamax[i] / _SIX)), e4m3)
        if code == np.uint8(0):
            code, value = stored(_ZERO_SCALE, e4m3)
        codes[i], decode[i] = code, bits_of(_F(value / g))


# ---------------------------------------------------------------------- 4 over 6


@step
def element_error(bits, encode, stored_scale, amax, aim, grid):
    """NVF-006: the distance of a number from that of its code, in the order of the kernels."""
    magnitude = float_of(_U(bits & _U(0x7FFFFFFF)))
    _, value = nearest(_F(magnitude * encode), grid)
    value = value if magnitude == magnitude else grid.largest
    restored = _F(_F(_F(value * stored_scale) * amax) / aim)
    x = float_of(bits)
    # A NaN's code is positive; for numbers the sign of the difference does not matter.
    return _F(restored - magnitude) if magnitude == magnitude else _F(restored - x)


@step
def errors_of_row(x, encode, stored_scale, amax, aim, grid, squared, errors):
    """NVF-006 for one row of a strip: there is a candidate for the scale of each column."""
    use_full_vectors()
    for i in range(x.size):
        e = element_error(widen(x[i], _U), encode[i], stored_scale[i], amax, aim, grid)
        errors[i] = _F(e * e) if squared else abs(e)


@step
def add_from_left(errors, width, tile_columns, row, sums):
    """NVF-006: the errors of the row of each tile."""
    for k in range((width + tile_columns - 1) // tile_columns):
        total = _F(0)
        for i in range(k * tile_columns, min((k + 1) * tile_columns, width)):
            total = _F(total + errors[i])
        sums[k, row] = total


@step
def add_rows(sums):
    """NVF-006: sixteen rows in halves; those that a tile does not have are zero."""
    half = 8
    while half > 0:
        for row in range(half):
            sums[row] = _F(sums[row] + sums[row + half])
        half //= 2
    return sums[0]


@step
def candidates_of_strip(i, left, right, tile, bamax, s_enc, s_dec, e4m3, encode, stored_scale):
    """NVF-006: for each column, the scales with which the largest of its tile becomes 6 or 4."""
    for j in range(left // tile.columns, (right - 1) // tile.columns + 1):
        base = _F(_F(float_of(bamax[i, j]) / _SIX) * s_enc)
        first, last = segment(j, tile, left, right)
        for is_four in range(2):
            s = _F(_F(1.5) * base) if is_four else base
            encode[is_four, first:last] = te_scale(s, s_dec, e4m3)[1]
            stored_scale[is_four, first:last] = stored(s, e4m3)[1]


@kernel
def four_over_six(
    x, place, part, tile, bamax, amax, aim, s_enc, s_dec, e4m3, grid, squared, codes, encode, decode
):
    """NVF-006: the scale of each tile of a part, with which its largest becomes 6 or 4."""
    use_full_vectors()
    tried, values = np.empty((2, STRIP), _F), np.empty((2, STRIP), _F)
    errors, sums = np.empty(STRIP, _F), np.zeros((2, STRIP // tile.columns, 16), _F)
    for top in range(part.top, part.bottom, tile.rows):
        height, i = min(tile.rows, part.bottom - top), top // tile.rows
        sums[:] = _F(0)
        for left in range(part.left, part.right, STRIP):
            right = min(left + STRIP, part.right)
            candidates_of_strip(i, left, right, tile, bamax, s_enc, s_dec, e4m3, tried, values)
            for row in range(height):
                start = (top + row - place.top) * place.stride + left - place.left
                numbers = x[start : start + right - left]
                for is_four in range(2):
                    scale, value = tried[is_four], values[is_four]
                    errors_of_row(numbers, scale, value, amax, aim, grid, squared, errors)
                    add_from_left(errors, right - left, tile.columns, row, sums[is_four])
            for j in range(left // tile.columns, (right - 1) // tile.columns + 1):
                k = j - left // tile.columns
                s = _F(_F(float_of(bamax[i, j]) / _SIX) * s_enc)
                if add_rows(sums[1, k]) < add_rows(sums[0, k]):
                    s = _F(_F(1.5) * s)
                code, enc, dec = te_scale(s, s_dec, e4m3)
                codes[i, j], encode[i, j], decode[i, j] = code, bits_of(enc), bits_of(dec)


# ---------------------------------------------------------------------- whole tensors

_LOOPS = {
    "te": te_scales,
    "te_2_13": te_2_13_scales,
    "torchao": torchao_scales,
    "modelopt": modelopt_scales,
    "compressed_tensors": compressed_tensors_scales,
}
ScaleArrays = tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint32]]


def nvfp4_scales(
    numbers: Numbers,
    profile: Nvfp4Profile,
    tiles: Partition,
    threads: int | None,
    given: AmaxOrScale = NOTHING_GIVEN,
) -> Nvfp4Scales:
    """Return the scales of a tensor in tiles, which are blocks.

    An amax (NVF-013) or a global scale (NVF-014) may be given.
    """
    bamax = amax_of_blocks(numbers, tiles, threads, "not nan")  # NVF-002
    axis = 1 if profile.per_row else None  # NVF-012
    amax = bamax.max(axis, initial=0, keepdims=True).reshape(-1).view(np.float32)
    if given.scale is not None:
        overall = given_scales(profile, amax, given.scale)
    else:
        known = amax if given.amax is None else np.full_like(amax, given.amax)
        overall = global_scales(profile, known)
    codes, encode, decode = (
        np.empty(bamax.shape, word) for word in (np.uint8, np.uint32, np.uint32)
    )
    if profile.scales.error:
        _choose(numbers, profile, tiles, bamax, overall, (codes, encode, decode), threads)
    else:
        _fill(profile, bamax, overall, (codes, encode, decode))
    scales = TileScales(Sides(*tiles.block), None if profile.divides else encode, decode)
    return Nvfp4Scales(codes, overall, scales)


def _fill(
    profile: Nvfp4Profile, bamax: NDArray[np.uint32], overall: GlobalScales, scales: ScaleArrays
) -> None:
    """Write the scales that follow from the largest magnitude of a tile alone."""
    loop, e4m3 = _LOOPS[profile.rule], grid_of(_E4M3)
    for k in range(overall.amax.size):
        rows = slice(k, k + 1) if profile.per_row else slice(None)
        room = (array[rows].reshape(-1) for array in scales)
        largest = bamax[rows].reshape(-1).view(np.float32)
        loop(largest, overall.encode[k], overall.decode[k], e4m3, *room)


def _choose(
    numbers: Numbers,
    profile: Nvfp4Profile,
    tiles: Partition,
    bamax: NDArray[np.uint32],
    overall: GlobalScales,
    scale_arrays: ScaleArrays,
    threads: int | None,
) -> None:
    """Write the scales that depend on every element of a tile."""
    grids: tuple[Grid, Grid] = grid_of(_E4M3), grid_of(_E2M1)
    squared = profile.scales.error == "mse"
    tile = Sides(*tiles.block)

    def choose(part: Part) -> None:
        words = words_of(numbers, tiles.columns, part)
        scales = overall.amax[0], _F(profile.range), overall.encode[0], overall.decode[0]
        four_over_six(*words, part, tile, bamax, *scales, *grids, squared, *scale_arrays)

    for_each_part(choose, tiles.rows, tiles.columns, threads)
