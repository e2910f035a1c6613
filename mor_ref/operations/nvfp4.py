"""nvfp4: a tensor in NVFP4."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile, given_in, tile_of
from mor_ref.definitions.scales import AmaxOrScale
from mor_ref.operations.bits import (
    Unsigned,
    bits32,
    codes_array,
    f32_array,
    numbers_of,
    tensor_of,
)
from mor_ref.operations.elements import listed, rows_of, tensor_fields
from mor_ref.operations.fields import fields
from mor_ref.operations.given_words import BITS, GIVEN, refuse_words, words_for_engine, words_of
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
    WholeAmax,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, kinds
from mor_ref.operations.way_back import coded_with, restored, unpacked

if TYPE_CHECKING:
    from mor_ref import Nvfp4
    from mor_ref.cuda.launching import Device

E2M1, E4M3 = formats["e2m1"], formats["e4m3"]


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model; a tensor that is not large has all intermediates."""
    from mor_ref.exact import nvfp4

    rows, columns = parameters["tile"]
    profile, shape = PROFILES[parameters["profile"]], arrays["x"].shape
    x, given = rows_of(arrays, parameters["source"]), _given(parameters)
    tensor = nvfp4.nvfp4(x, profile, (rows, columns), given, words_of(parameters, arrays))
    cut = partition(shape, (rows, columns))
    tiles = listed(tensor.scale, cut.grid)
    elements = tensor_fields(tensor.elements, E2M1, shape)
    return {
        "global_encode_scale": f32_array(s.encode for s in tensor.global_scale),
        "global_decode_scale": f32_array(s.decode for s in tensor.global_scale),
        "block_scale": np.array([tile.code for tile in tiles], np.uint8).reshape(cut.grid),
        **elements,
        "packed": _pairs_packed(elements["code"]),
    }


def columns(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model, many numbers at a time."""
    from mor_ref.exact.block_formulas import quantize
    from mor_ref.exact.nvfp4 import global_scale

    rows, width = parameters["tile"]
    shape, profile = arrays["x"].shape, PROFILES[parameters["profile"]]
    numbers = numbers_of(arrays["x"], parameters["source"])
    blocks = quantize(numbers, shape, nvfp4_formulas(profile, (rows, width)))
    above, tiles = blocks.scales.values()
    global_scales = [global_scale(profile, amax) for amax in above.numbers["amax"]]
    code = codes_array(blocks.codes, E2M1).reshape(shape)
    high = np.pad(code, ((0, 0), (0, 1)))[:, 1::2]
    return {
        "global_encode_scale": f32_array(scale.encode for scale in global_scales),
        "global_decode_scale": f32_array(scale.decode for scale in global_scales),
        "block_scale": np.array(tiles.codes, np.uint8).reshape(tiles.parts.grid),
        "code": code,
        "y": f32_array(blocks.y).reshape(shape),
        "packed": code[:, ::2] | high << np.uint8(4),
    }


def _given(parameters: Parameters) -> AmaxOrScale:
    return AmaxOrScale(parameters.get("amax"), parameters.get("global_scale"))


def _pairs_packed(codes: Unsigned) -> Unsigned:
    """Return two codes in a byte, pair by pair (NVF-011)."""
    from mor_ref.exact.nvfp4 import packed

    rows = [
        [packed(low, high) for low, high in zip(row[::2], [*row[1::2], 0], strict=False)]
        for row in codes.tolist()
    ]
    return np.array(rows, np.uint8)


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize_nvfp4

    rows, columns = parameters["tile"]
    x = tensor_of(arrays["x"], parameters["source"])
    arguments = {name: parameters[name] for name in ("amax", "global_scale") if name in parameters}
    arguments |= words_for_engine(parameters, arrays)
    return stored(
        quantize_nvfp4(x, profile=parameters["profile"], tile=(rows, columns), **arguments)
    )


def stored(record: "Nvfp4") -> Arrays:
    """Return the fields that a record has."""
    return {
        "code": record.codes,
        "packed": record.packed,
        "block_scale": record.block_scale,
        "global_encode_scale": bits32(np.atleast_1d(record.global_encode_scale)),
        "global_decode_scale": bits32(np.atleast_1d(record.global_decode_scale)),
        "y": record.dequantize().view(np.uint32),
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda import nvfp4
    from mor_ref.cuda.launching import Bits

    refuse_words(parameters)
    profile, tile = PROFILES[parameters["profile"]], tuple(parameters["tile"])
    x = Bits(arrays["x"], parameters["source"])
    global_scales = nvfp4.given_scales(device, x, profile, _given(parameters))
    tensor = nvfp4.nvfp4(device, x, profile, tile, global_scales)
    return {
        "code": tensor.codes,
        "packed": tensor.packed,
        "y": nvfp4.dequantize(device, tensor, profile, tile),
        "block_scale": tensor.tiles.codes,
        "global_encode_scale": tensor.whole.encode.reshape(-1),
        "global_decode_scale": tensor.whole.decode.reshape(-1),
    }


def _needed_for_y(parameters: Parameters) -> tuple[tuple[str, ...], ...]:
    """Return the fields that y follows from."""
    by_g = PROFILES[parameters["profile"]].scales.global_scale == "G"
    whole = "global_encode_scale" if by_g else "global_decode_scale"
    return ("code", "packed"), ("block_scale",), (whole,)


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the values of codes times the decode scale of their tile (NVF-010)."""
    profile = PROFILES[parameters["profile"]]
    code = arrays["code"] if "code" in arrays else unpacked(arrays["packed"])
    tile = partition(code.shape, tuple(parameters["tile"])).block
    return restored(code, E2M1, tile, None, bits32(_decode_scales(profile, arrays)))


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have the scales of a tile each (NVF-010)."""
    from mor_ref import decode

    profile = PROFILES[parameters["profile"]]
    x, decode_scale = tensor_of(arrays["x"], parameters["source"]), _decode_scales(profile, arrays)
    drops = profile.drops_sign_of_zero
    if profile.divides:
        return coded_with(x, E2M1, None, bits32(decode_scale), drops_sign_of_zero=drops)
    largest = np.finfo(np.float32).max
    with np.errstate(all="ignore"):
        encode_scale = np.float32(1) / decode_scale
        encode_scale = np.where(encode_scale < largest, encode_scale, largest)
        if profile.scales.global_scale == "g":  # NVF-007
            whole = np.float32(1) / arrays["global_decode_scale"].view(np.float32)
            encode_scale = whole[:, np.newaxis] / decode(arrays["block_scale"], E4M3)
    return coded_with(x, E2M1, bits32(encode_scale), None)


def _decode_scales(profile: Nvfp4Profile, arrays: Arrays) -> NDArray[np.float32]:
    """Return the factors of the values of codes, one for each tile."""
    from mor_ref import decode

    values = decode(arrays["block_scale"], E4M3)
    with np.errstate(all="ignore"):
        if profile.scales.global_scale == "G":  # NVF-009
            return values / arrays["global_encode_scale"].view(np.float32)[:, np.newaxis]
        return values * arrays["global_decode_scale"].view(np.float32)[:, np.newaxis]


def admit(parameters: Parameters) -> None:
    """Refuse a tile, and a given number, that the profile does not take."""
    profile = PROFILES[parameters["profile"]]
    tile_of(profile, parameters["tile"])
    given_in(profile, parameters.get("amax"), parameters.get("global_scale"))


def parameters_of(record: "Nvfp4") -> Parameters:
    """Return the parameters that made a record."""
    return {"profile": record.profile.name, "tile": list(record.tile)}


NVFP4 = Operation(
    "nvfp4",
    kinds("profile tile source"),
    inputs=fields("rc x source"),
    outputs=fields(
        "ends global_encode_scale,global_decode_scale f32; grid block_scale e4m3; rc xs,y f32; "
        "rc code e2m1; pairs packed u8"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    columns=columns,
    admit=admit,
    optional=kinds(f"{RECIPE} amax global_scale:scale {BITS}"),
    optional_inputs=GIVEN,
    whole_amax=WholeAmax(
        lambda parameters: not PROFILES[parameters["profile"]].per_row, counts_infinity=True
    ),
    ignores_zeros=True,
    way_back=WayBack(_needed_for_y, restore, coded),
    record=PublicRecord(instance_test("Nvfp4"), parameters_of, stored),
)
