"""nvfp4_block: tiles in NVFP4; a row of x is a tile, whose tensor has an amax."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, Nvfp4Profile
from mor_ref.operations.bits import Unsigned, bits32, codes_array, f32_array, numbers_of
from mor_ref.operations.elements import element_fields, row_by_row
from mor_ref.operations.fields import fields
from mor_ref.operations.nvfp4 import E2M1, E4M3
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import (
    amaxes_at,
    amaxes_of,
    bits_of,
    filled,
    fraction_of,
    points_of,
    values_of,
    with_a_special,
)
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, moved, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.nvfp4 import GlobalScale, TileScale

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model, with both candidates of 4 over 6."""
    from mor_ref.exact import nvfp4

    profile = PROFILES[parameters["profile"]]
    x, amaxes = row_by_row(arrays["x"]), numbers_of(arrays["amax"], "f32")
    global_scales = [nvfp4.global_scale(profile, tensor_amax) for tensor_amax in amaxes]
    scales = [
        nvfp4.tile_scale(profile, [row], tensor_amax, tensor_scale)
        for row, tensor_amax, tensor_scale in zip(x, amaxes, global_scales, strict=True)
    ]
    elements = [
        [nvfp4.quantize_element(number, scale, profile) for number in row]
        for row, scale in zip(x, scales, strict=True)
    ]
    encode = [scale.encode for scale in scales if scale.encode is not None]
    return {
        "block_amax": f32_array(nvfp4.amax_of(row) for row in x),
        "global_encode_scale": f32_array(tensor_scale.encode for tensor_scale in global_scales),
        "global_decode_scale": f32_array(tensor_scale.decode for tensor_scale in global_scales),
        **(_candidates(profile, x, amaxes, global_scales) if profile.scales.error else {}),
        "block_scale": np.array([scale.code for scale in scales], np.uint8),
        **({} if profile.divides else {"encode_scale": f32_array(encode)}),
        "decode_scale": f32_array(scale.decode for scale in scales),
        **element_fields(elements, E2M1, arrays["x"].shape),
    }


class _Candidate(NamedTuple):
    """A scale of 4 over 6, and the codes and the error of a tile with it."""

    scale: "TileScale"
    codes: list[int]
    error: float


def _candidates(
    profile: Nvfp4Profile,
    x: list[list[float]],
    amaxes: list[float],
    global_scales: "list[GlobalScale]",
) -> dict[str, Unsigned]:
    """Return the scales, codes and errors of both candidates of each tile (NVF-006)."""
    from mor_ref.exact.nvfp4 import amax_of, four_over_six_candidates

    candidates = []
    for row, tensor_amax, tensor_scale in zip(x, amaxes, global_scales, strict=True):
        scales = four_over_six_candidates(amax_of(row), tensor_scale)
        candidates.append([_candidate(profile, row, scale, tensor_amax) for scale in scales])
    by_name: dict[str, Unsigned] = {}
    for name, tiles in zip(("six", "four"), zip(*candidates, strict=True), strict=True):
        codes = codes_array([code for tile in tiles for code in tile.codes], E2M1)
        by_name |= {
            f"{name}.block_scale": np.array([tile.scale.code for tile in tiles], np.uint8),
            f"{name}.code": codes.reshape(len(x), -1),
            f"{name}.error": f32_array(tile.error for tile in tiles),
        }
    return by_name


def _candidate(
    profile: Nvfp4Profile, row: list[float], scale: "TileScale", whole: float
) -> _Candidate:
    from mor_ref.exact.nvfp4 import candidate_error, quantize_element

    codes = [quantize_element(number, scale, profile).code for number in row]
    return _Candidate(scale, codes, candidate_error(profile, [row], scale, whole))


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize each tile in a tensor of its own, after a tile that holds the amax alone.

    Streams have other tiles than rows of 16; a row of x is a tile row by row.
    """
    from mor_ref import quantize_nvfp4

    x, (rows, columns) = arrays["x"], parameters.get("tile", ROW_TILE)
    tensors = np.zeros((len(x), rows, 2 * columns), x.dtype)
    tensors[:, 0, 0] = arrays["amax"]
    tensors[:, :, columns:] = x.reshape(-1, rows, columns)
    asked = {"profile": parameters["profile"], "tile": (rows, columns)}
    records = [quantize_nvfp4(tensor.view(np.float32), **asked) for tensor in tensors]
    global_scales = [
        [np.ravel(record.global_encode_scale)[0], np.ravel(record.global_decode_scale)[0]]
        for record in records
    ]
    scales = bits32(np.array(global_scales, np.float32))
    return {
        "global_encode_scale": scales[:, 0],
        "global_decode_scale": scales[:, 1],
        "block_scale": np.array([record.block_scale[0, 1] for record in records]),
        "code": np.stack([record.codes[:, columns:].ravel() for record in records]),
        "y": bits32(np.stack([record.dequantize()[:, columns:].ravel() for record in records])),
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize each tile as a row with a global scale of its own."""
    from mor_ref.cuda import nvfp4
    from mor_ref.cuda.launching import Bits

    profile = PROFILES[parameters["profile"]]
    global_scales = nvfp4.scales_of_amaxes(device, arrays["amax"], profile)
    x = Bits(arrays["x"], parameters["source"])
    tensor = nvfp4.nvfp4(device, x, profile, ROW_TILE, global_scales)
    return {
        "global_encode_scale": global_scales.encode,
        "global_decode_scale": global_scales.decode,
        "block_scale": tensor.tiles.codes[:, 0],
        "decode_scale": tensor.tiles.decode[:, 0],
        "code": tensor.codes,
        "y": nvfp4.dequantize(device, tensor, profile, ROW_TILE),
    }


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes of tensors, of tiles next to where their scales turn, and ties in the tiles."""
    profile = PROFILES[parameters["profile"]]
    choices = draws.words(0)
    whole = amaxes_at(draws, 1, (fraction_of(profile.range),), profile.range)
    whole = np.where(bits_at(choices, 0, 6) == 0, _U(0), whole)
    scales = _scales_drawn(profile, draws)
    global_decode = values_of(whole) / profile.range
    near = bits_of(scales * global_decode * 6)
    near = np.minimum(moved(near, share(bits_at(choices, 8, 16), 16, 5), _F32.largest), whole)
    amaxes = np.where(bits_at(choices, 24, 4) == 0, whole, near)
    # The largest element becomes 6, or 4 with a scale that is 1.5 times as large.
    wider = np.where(bits_at(choices, 32, 2) == 0, 1.5, 1.0)
    x = filled(draws, 5, E2M1, amaxes, scales * global_decode * wider)
    x = with_a_special(draws, 8, x, amaxes, with_nan=profile.scales.takes_nan)
    is_infinite = amaxes_of(x, _F32.infinity) == _F32.infinity
    is_infinite |= bits_at(choices, 40, 6) == 0
    return {"x": x, "amax": np.where(is_infinite, _U(_F32.infinity), whole)}


def _scales_drawn(profile: Nvfp4Profile, draws: Draws) -> NDArray[np.float64]:
    """Draw values and midpoints of e4m3 up to the scale of a tile that has the amax."""
    words, points = draws.words(4), points_of(E4M3)
    reach = int(np.searchsorted(points, profile.range / 6, side="right"))
    # A scale is taken from the whole range, or from the upper eight binades of it.
    lowest = np.where(bits_at(words, 0, 2) == 0, 0, reach // 2).astype(_U)
    return points[(lowest + share(words >> _U(32), 32, _U(reach) - lowest)).astype(np.int64)]


def _are_tiles(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    x, whole = arrays["x"], arrays["amax"]
    inside: NDArray[np.bool_] = whole <= _F32.infinity
    inside = inside & (amaxes_of(x, _F32.infinity) <= whole)
    if PROFILES[parameters["profile"]].scales.takes_nan:
        return inside
    return inside & ((x & x.dtype.type(0x7FFFFFFF)) <= _F32.infinity).all(axis=1)


NVFP4_BLOCK = Operation(
    "nvfp4_block",
    kinds("profile source:f32"),
    inputs=fields("nk x f32; n amax f32"),
    outputs=fields(
        "n block_amax,global_encode_scale,global_decode_scale f32; "
        "n six.block_scale,four.block_scale e4m3; nk six.code,four.code e2m1; "
        "n six.error,four.error f32; n block_scale e4m3; n encode_scale,decode_scale f32; "
        "nk xs,y f32; nk code e2m1"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    widths=(16, 16),
    random=RandomInputs(
        random_inputs,
        _are_tiles,
        "amax is not negative and at least that of x, and x has no NaN in profiles of libraries",
        answers=("block_scale", "code"),
        tiles=lambda parameters: PROFILES[parameters["profile"]].tiles,
    ),
)
