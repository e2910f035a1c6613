"""nvfp4 and nvfp4_block: tensors in NVFP4; a row of `nvfp4_block` is a tile."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import (
    BLOCK_SCALE_RULES,
    PROFILES,
    ROW_TILE,
    Nvfp4Profile,
    given_in,
    tile_of,
)
from mor_ref.definitions.scales import AmaxOrScale
from mor_ref.exact import block_formats, nvfp4
from mor_ref.operations.bits import bits32, codes_array, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.elements import element_results
from mor_ref.operations.fields import Field, expected, given
from mor_ref.operations.given_words import BITS, GIVEN, refuse_words, words_for_engine, words_of
from mor_ref.operations.nearest import Nearest, Operand, operand_in_blocks
from mor_ref.operations.operation import (
    Operation,
    PublicRecord,
    RandomInputs,
    WayBack,
    WholeAmax,
    instance_test,
    renamed,
)
from mor_ref.operations.parameters import RECIPE, kinds
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
from mor_ref.operations.results import each
from mor_ref.operations.way_back import coded_with, restored, unpacked

if TYPE_CHECKING:
    from mor_ref import Nvfp4

E2M1, E4M3 = formats["e2m1"], formats["e4m3"]
_U = np.uint64
_F32 = LAYOUTS["f32"]


def _profile(call: Call) -> Nvfp4Profile:
    return PROFILES[call["profile"]]


def exact(call: Call) -> Results:
    """Quantize with the exact model; a tensor that is not large has all intermediates."""
    tile = tuple(call["tile"])
    tensor = nvfp4.nvfp4(call.numbers(), _profile(call), tile, _given(call), words_of(call))
    codes = [[element.code for element in row] for row in tensor.elements]
    return {
        "global_encode_scale": [scale.encode for scale in tensor.global_scale],
        "global_decode_scale": [scale.decode for scale in tensor.global_scale],
        "block_scale": {place: tile.code for place, tile in tensor.scale.items()},
        **element_results(tensor.elements, call.shape),
        "packed": [_packed(row) for row in codes],
    }


def _packed(row: list[int]) -> list[int]:
    """Return two codes in a byte, pair by pair (NVF-011)."""
    pairs = zip(row[::2], [*row[1::2], 0], strict=False)
    return [nvfp4.packed(low, high) for low, high in pairs]


def columns(call: Call) -> Results:
    """Quantize with the exact model, many numbers at a time."""
    profile = _profile(call)
    formulas = nvfp4_formulas(profile, tuple(call["tile"]))
    blocks = block_formats.quantize(call.flat(), call.shape, formulas)
    above, tiles = blocks.scales.values()
    global_scales = [nvfp4.global_scale(profile, amax) for amax in above.numbers["amax"]]
    code = codes_array(blocks.codes, E2M1).reshape(call.shape)
    high = np.pad(code, ((0, 0), (0, 1)))[:, 1::2]
    return {
        "global_encode_scale": [scale.encode for scale in global_scales],
        "global_decode_scale": [scale.decode for scale in global_scales],
        "block_scale": tiles.codes,
        "code": code,
        "y": blocks.y,
        "packed": code[:, ::2] | high << np.uint8(4),
    }


def _given(call: Call) -> AmaxOrScale:
    return AmaxOrScale(call.get("amax"), call.get("global_scale"))


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    arguments = call.arguments("profile tile amax global_scale") | words_for_engine(call)
    return mor_ref.quantize_nvfp4(call.tensor(), **arguments)


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.nvfp4 import dequantize, given_scales, nvfp4

    refuse_words(call)
    device, x, profile, tile = call.device, call.bits(), _profile(call), tuple(call["tile"])
    tensor = nvfp4(device, x, profile, tile, given_scales(device, x, profile, _given(call)))
    return {
        "code": tensor.codes,
        "packed": tensor.packed,
        "y": dequantize(device, tensor, profile, tile),
        "block_scale": tensor.tiles.codes,
        "global_encode_scale": tensor.whole.encode,
        "global_decode_scale": tensor.whole.decode,
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


def operand(call: Call) -> Operand | None:
    """Return xs, unless codes are rounded with random words (NVF-010)."""
    if BITS in call.parameters:
        return None
    formulas = nvfp4_formulas(_profile(call), tuple(call["tile"]))
    return operand_in_blocks(call, formulas, _given(call))


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have the scales of a tile each (NVF-010)."""
    profile = PROFILES[parameters["profile"]]
    x, decode_scale = tensor_of(arrays["x"], parameters["source"]), _decode_scales(profile, arrays)
    elements = ElementRule(E2M1, drops_sign_of_zero=profile.drops_sign_of_zero)
    if profile.divides:
        return coded_with(x, elements, None, bits32(decode_scale))
    largest = np.finfo(np.float32).max
    with np.errstate(all="ignore"):
        encode_scale = np.float32(1) / decode_scale
        encode_scale = np.where(encode_scale < largest, encode_scale, largest)
        if profile.scales.global_scale == "g":  # NVF-007
            whole = np.float32(1) / arrays["global_decode_scale"].view(np.float32)
            encode_scale = whole[:, np.newaxis] / mor_ref.decode(arrays["block_scale"], E4M3)
    return coded_with(x, elements, bits32(encode_scale), None)


def _decode_scales(profile: Nvfp4Profile, arrays: Arrays) -> NDArray[np.float32]:
    """Return the factors of the values of codes, one for each tile."""
    values = mor_ref.decode(arrays["block_scale"], E4M3)
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


def exact_block(call: Call) -> Results:
    """Quantize with the exact model, with both candidates of 4 over 6."""
    profile, x, amaxes = _profile(call), call.numbers(), call.numbers("amax")
    global_scales = [nvfp4.global_scale(profile, tensor_amax) for tensor_amax in amaxes]
    tiles = list(zip(x, amaxes, global_scales, strict=True))
    scales = [nvfp4.tile_scale(profile, [row], *whole) for row, *whole in tiles]
    elements = [
        [nvfp4.quantize_element(number, scale, profile) for number in row]
        for row, scale in zip(x, scales, strict=True)
    ]
    has_encode_scale = not profile.divides
    return {
        "block_amax": [nvfp4.amax_of(row) for row in x],
        "global_encode_scale": [scale.encode for scale in global_scales],
        "global_decode_scale": [scale.decode for scale in global_scales],
        **(_candidates(profile, tiles) if profile.scales.error else {}),
        "block_scale": [scale.code for scale in scales],
        **({"encode_scale": [scale.encode for scale in scales]} if has_encode_scale else {}),
        "decode_scale": [scale.decode for scale in scales],
        **each(elements, "xs", "code", "y"),
    }


def _candidates(
    profile: Nvfp4Profile, tiles: list[tuple[list[float], float, nvfp4.GlobalScale]]
) -> Results:
    """Return the scales, codes and errors of both candidates of each tile (NVF-006)."""
    results: dict[str, list[Any]] = {}
    for row, tensor_amax, tensor_scale in tiles:
        scales = nvfp4.four_over_six_candidates(profile, nvfp4.amax_of(row), tensor_scale)
        for name, scale in zip(("six", "four"), scales, strict=True):
            codes = [nvfp4.quantize_element(number, scale, profile).code for number in row]
            error = nvfp4.candidate_error(profile, [row], scale, tensor_amax)
            for field, result in (("block_scale", scale.code), ("code", codes), ("error", error)):
                results.setdefault(f"{name}.{field}", []).append(result)
    return results


def engine_block(call: Call) -> Results:
    """Quantize each tile in a tensor of its own, after a tile that holds the amax alone.

    Streams have other tiles than rows of 16; a row of x is a tile row by row.
    """
    x, (rows, columns) = call.tensor(), call.get("tile") or ROW_TILE
    tensors = np.zeros((len(x), rows, 2 * columns), x.dtype)
    tensors[:, 0, 0] = call.tensor("amax")
    tensors[:, :, columns:] = x.reshape(-1, rows, columns)
    asked = {"profile": call["profile"], "tile": (rows, columns)}
    records = [mor_ref.quantize_nvfp4(tensor, **asked) for tensor in tensors]
    global_scales = [
        [np.ravel(record.global_encode_scale)[0], np.ravel(record.global_decode_scale)[0]]
        for record in records
    ]
    encode_scales, decode_scales = np.array(global_scales, np.float32).reshape(-1, 2).T
    return {
        "global_encode_scale": encode_scales,
        "global_decode_scale": decode_scales,
        "block_scale": np.array([record.block_scale[0, 1] for record in records]),
        "code": np.array([record.codes[:, columns:] for record in records]),
        "y": np.array([record.dequantize()[:, columns:] for record in records]),
    }


def cuda_block(call: DeviceCall) -> DeviceArrays:
    """Quantize each tile as a row with a global scale of its own."""
    from mor_ref.cuda.nvfp4 import dequantize, nvfp4, scales_of_amaxes

    device, profile = call.device, _profile(call)
    global_scales = scales_of_amaxes(device, call.arrays["amax"], profile)
    tensor = nvfp4(device, call.bits(), profile, ROW_TILE, global_scales)
    return {
        "global_encode_scale": global_scales.encode,
        "global_decode_scale": global_scales.decode,
        "block_scale": tensor.tiles.codes,
        "decode_scale": tensor.tiles.decode,
        "code": tensor.codes,
        "y": dequantize(device, tensor, profile, ROW_TILE),
    }


def operand_of_block(call: Call) -> Operand:
    """Return xs (NVF-010)."""
    xs = tensor_of(call.arrays["xs"], "f32")
    return Operand(xs, E2M1)


def restore_block(_: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of rows that are one tile each (NVF-010)."""
    code = arrays["code"]
    return restored(code, E2M1, (1, code.shape[1]), None, arrays["decode_scale"].reshape(-1, 1))


def random_block(parameters: Parameters, draws: Draws) -> Arrays:
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


def _candidate_fields(name: str) -> tuple[Field, ...]:
    """Return the fields of a candidate of 4 over 6."""
    words = f"of the candidate that makes block_amax {name}"
    return (
        expected(f"{name}.block_scale e4m3 n", f"the scale {words}", "NVF-006"),
        expected(f"{name}.code e2m1 nk", f"the codes {words}", "NVF-006"),
        expected(f"{name}.error f32 n", f"the error {words}", "NVF-006"),
    )


# Those of the profiles.
RULES_OF_TILES = " ".join(sorted({rule.id for rule in BLOCK_SCALE_RULES.values()}))
_RULES_OF_TENSORS = "NVF-003 NVF-007 NVF-008 NVF-009"
NVFP4 = Operation(
    "nvfp4",
    kinds("profile tile source"),
    (
        given("x source rc", "the tensor"),
        expected(
            "global_encode_scale f32 ends",
            "the global encode scale of the tensor, or of each row",
            _RULES_OF_TENSORS,
        ),
        expected(
            "global_decode_scale f32 ends",
            "the global decode scale of the tensor, or of each row",
            _RULES_OF_TENSORS,
        ),
        expected(
            "block_scale e4m3 grid",
            "the stored scale of each tile",
            f"NVF-002 {RULES_OF_TILES}",
            views="transposed replicated swizzled_128x4",
        ),
        expected("xs f32 rc", "each number under the scales", "NVF-010"),
        expected(
            "code e2m1 rc",
            "the code of each number, one in a byte",
            "NVF-010",
            views="transposed packed",
        ),
        expected("y f32 rc", "what each code stands for", "NVF-010"),
        expected(
            "packed u8 pairs", "the codes, the even one of a pair in the low nibble", "NVF-011"
        ),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    columns=columns,
    admit=admit,
    optional=kinds(f"{RECIPE} amax global_scale:scale {BITS}"),
    optional_inputs=GIVEN,
    whole_amax=WholeAmax(
        lambda parameters: not PROFILES[parameters["profile"]].per_row, counts_infinity=True
    ),
    ignores_zeros=True,
    way_back=WayBack(_needed_for_y, restore, coded),
    nearest=Nearest(operand, restore),
    record=PublicRecord(
        instance_test("Nvfp4"),
        parameters_of,
        renamed(code="codes", y="dequantize"),
        optional=("xs",),
    ),
)
NVFP4_BLOCK = Operation(
    "nvfp4_block",
    kinds("profile source:f32"),
    (
        given("x f32 nk", "the numbers of each tile"),
        given("amax f32 n", "the amax of the tensor of each tile"),
        expected("block_amax f32 n", "the amax of each tile", "NVF-002"),
        expected(
            "global_encode_scale f32 n",
            "the global encode scale of the tensor of each tile",
            "NVF-003",
        ),
        expected(
            "global_decode_scale f32 n",
            "the global decode scale of the tensor of each tile",
            "NVF-003",
        ),
        *_candidate_fields("six"),
        *_candidate_fields("four"),
        expected(
            "block_scale e4m3 n", "the stored scale of each tile", f"NVF-002 {RULES_OF_TILES}"
        ),
        expected("encode_scale f32 n", "the factor of numbers", RULES_OF_TILES),
        expected(
            "decode_scale f32 n",
            "the factor of the values of codes",
            RULES_OF_TILES,
        ),
        expected("xs f32 nk", "each number under the scales", "NVF-010"),
        expected("code e2m1 nk", "the code of each number", "NVF-010"),
        expected("y f32 nk", "what each code stands for", "NVF-010"),
    ),
    model=exact_block,
    function=engine_block,
    kernels=cuda_block,
    widths=(16, 16),
    nearest=Nearest(operand_of_block, restore_block),
    random=RandomInputs(
        random_block,
        _are_tiles,
        "amax is not negative and at least that of x, and x has no NaN in profiles of libraries",
        answers=("block_scale", "code"),
        tiles=lambda parameters: PROFILES[parameters["profile"]].tiles,
    ),
)
