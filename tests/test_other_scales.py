"""Kernels with scales that are not those of the block: the diagnosis names these."""

import re

import ml_dtypes
import numpy as np
import pytest

import mor_ref
from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations import OPERATIONS
from mor_ref.operations.given_words import BITS
from mor_ref.operations.shapes import sides_of, spread_to_numbers
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines

MANIFEST = read_manifest(bundled_files())["suites"]


def has_codes(operation):
    way = OPERATIONS[operation].way_back
    return way is not None and way.coded is not None


CODED = [name for name, one in MANIFEST.items() if has_codes(one["operation"])]
PARAMETERS = {
    "mx": {"format": "e4m3", "scale_rule": "floor", "block": 32, "source": "f32"},
    "quantize": {
        "format": "e4m3",
        "scaling": "gam",
        "block": [8, 8],
        "group": "tensor",
        "source": "f32",
    },
    "nvfp4_te": {"profile": "te", "tile": [1, 16], "source": "f32"},
    "nvfp4_torchao": {"profile": "torchao", "tile": [1, 16], "source": "f32"},
    "affine": {
        "grid": "uint8",
        "profile": "torch_fake_tensor",
        "symmetric": False,
        "block": [1, 32],
        "source": "f32",
    },
    "levels": {"kind": "lsq4", "arithmetic": "f32", "block": "row", "source": "f32"},
    "policies": {"policy": "three_way", "scaling": "gam", "block": [8, 8], "source": "f32"},
    "affine_groups": {
        "grid": "uint8",
        "profile": "peg",
        "symmetric": False,
        "groups": 4,
        "source": "f32",
    },
    "mixed": {"mixture": "e4m3_or_int8", "block": [8, 8], "source": "f32"},
    "shared": {"kind": "mx9", "profile": "quark_torch", "block": 16, "source": "f32"},
}
KERNELS = {}


def kernel(suite, *says):
    """Add a wrong kernel to the table: a function of x and the right fields."""

    def add(change):
        KERNELS[change.__name__] = suite, change, says
        return change

    return add


def tensors():
    """Return tensors with rows and columns of many magnitudes, with partial blocks and without."""
    draws = np.random.default_rng(5)
    for rows, columns in ((24, 128), (13, 100)):
        x = draws.standard_normal((rows, columns)) * np.exp2(draws.integers(-7, 7, (rows, 1)))
        yield (x * np.exp2(draws.integers(-3, 3, (1, columns)))).astype(np.float32)


def evidence_of(suite, change, *, leaving_out=()):
    """Return the answers of a wrong kernel to the tensors."""
    operation, parameters = MANIFEST[suite]["operation"], PARAMETERS[suite]
    cases, answers = [], {}
    for k, x in enumerate(tensors()):
        right = OPERATIONS[operation].exact(parameters, {"x": x.view(np.uint32)})
        cases.append(Case(f"{k}", parameters, {"x": x.view(np.uint32), **right}))
        wrong = {**right, **change(x, right)}
        answers[f"{k}"] = {name: wrong[name] for name in wrong if name not in ("xs", *leaving_out)}
    return Evidence(suite, operation, fields_of(MANIFEST[suite]), cases, answers)


def lines_of(evidence):
    return list(structure_lines(structures_of(list(samples_of(evidence)))))


def of_columns(scale, like, side=32):
    return np.repeat(scale, side, axis=1)[:, : like.shape[1]]


def powers(scale, x):
    return np.exp2(of_columns(scale, x).astype(np.float64) - 127)


def e4m3(numbers):
    """Return codes of numbers; somebody else's software rounds them."""
    limited = np.clip(numbers, -448, 448).astype(np.float32)
    return limited.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def mx_codes(x, scale):
    return e4m3(x / powers(scale, x))


def before(scale):
    return np.concatenate([scale[:, :1], scale[:, :-1]], axis=1)


def mx_y(found, factor):
    return (found["code"].view(ml_dtypes.float8_e4m3fn) * factor).astype(np.float32).view(np.uint32)


USED = r"code: each entry is that of x with the expected scale of "


@kernel("mx", USED + r"the block at \[i, j - 1\], or of the first one|" + USED + r".*\[i, j - 1\],")
def the_block_before(x, right):
    return {"code": mx_codes(x, before(right["scale"]))}


@kernel("mx", USED + r"the block at \[i - 1, j\], around the end, in all")
def the_row_above(x, right):
    return {"code": mx_codes(x, np.roll(right["scale"], 1, axis=0))}


@kernel("mx", USED + r"the block at \[i, 0\], in all")
def the_first_of_the_row(x, right):
    return {"code": mx_codes(x, np.broadcast_to(right["scale"][:, :1], right["scale"].shape))}


@kernel("mx", USED + r"the transposed field at the same place, row by row, in all")
def the_transposed_grid(x, right):
    scale = right["scale"]
    return {"code": mx_codes(x, scale.T.reshape(scale.shape))}


@kernel("mx", USED + r"the entry before it, row by row, in all")
def the_block_computed_before(x, right):
    """Before the first one there is none: its own is used."""
    flat = right["scale"].ravel()
    stale = np.concatenate([flat[:1], flat[:-1]]).reshape(right["scale"].shape)
    return {"code": mx_codes(x, stale)}


@kernel(
    "mx", r"scale: \[i, j\] has the expected value of", r"code: .*x with the given scale, in all"
)
def another_one_that_is_stored(x, right):
    scale = np.roll(right["scale"], 1, axis=1)
    return {"scale": scale, "code": mx_codes(x, scale)}


@kernel("mx", r"code: each entry is that of x without scale, in all")
def none(x, _):
    return {"code": e4m3(x)}


@kernel("mx", r"code: each entry is that of x with the inverse of scale, in all")
def the_inverse(x, right):
    return {"code": mx_codes(x, 254 - right["scale"])}


@kernel("quantize", USED + r"the block at \[i, j - 1\], around the end, in all")
def the_gam_scale_of_the_block_before(x, right):
    scale = np.roll(right["scale"].view(np.float32), 1, axis=1)
    return {"code": e4m3(x * spread_to_numbers(scale, (8, 8), x.shape))}


@kernel(
    "nvfp4_te",
    r"code: .*x with the expected block_scale of the block at \[i, j - 1\], around the end, in all",
    r"packed: each nibble is that of x with the expected block_scale of the block at \[i, j - 1\],",
)
def the_nvfp4_scale_of_the_block_before(x, right):
    values = right["block_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    decode = np.roll(values, 1, axis=1) * right["global_decode_scale"].view(np.float32)
    return nvfp4_codes(x * of_columns(np.float32(1) / decode, x, 16))


@kernel("nvfp4_torchao", r"code: each entry is that of x without global_decode_scale, in all")
def only_the_scale_of_the_block(x, right):
    values = right["block_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    return nvfp4_codes(x * of_columns(np.float32(1) / values, x, 16))


def nvfp4_codes(numbers):
    code = np.clip(numbers, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15
    return {"code": code, "packed": code[:, ::2] | code[:, 1::2] << 4}


OF_Y = r"y: each entry is that of its code "


@kernel("mx", OF_Y + r"with the expected scale of the block at \[i, j - 1\].*, in all")
def y_by_that_of_the_block_before(x, right):
    return {"y": mx_y(right, powers(before(right["scale"]), x))}


@kernel("mx", OF_Y + r"without scale, in all")
def y_without_any(_, right):
    return {"y": mx_y(right, 1)}


@kernel("mx", OF_Y + r"with the given scale, in all", "code: .*x with the given scale, in all")
def y_by_that_which_is_stored(x, right):
    scale = np.roll(right["scale"], 3, axis=0)
    code = mx_codes(x, scale)
    return {"scale": scale, "code": code, "y": mx_y({"code": code}, powers(scale, x))}


# ---------------------------------------------------------------- scales with another amax

OF_AMAX = r"scale: each entry is that of the amax of "
ITS_CODE = r"code: each entry is that of x with the given scale, in all"


def block_amaxes(x, side=32):
    wide = np.pad(np.abs(x), ((0, 0), (0, -x.shape[1] % side)))
    return wide.reshape(len(x), -1, side)


def with_amaxes(x, amax):
    """Return the scales of OCP MX for these amaxes, and codes with them."""
    scale = (np.frexp(amax)[1] - 1 - 8 + 127).astype(np.uint8)
    return {"scale": scale, "code": mx_codes(x, scale)}


@kernel("mx", OF_AMAX + r"1x2 blocks: of 1x64 numbers, in all", ITS_CODE)
def blocks_of_64(x, _):
    count = -(-x.shape[1] // 32)
    return with_amaxes(x, np.repeat(block_amaxes(x, 64).max(2), 2, axis=1)[:, :count])


@kernel("mx", OF_AMAX + r"8x1 blocks: of 8x32 numbers, in all", ITS_CODE)
def blocks_of_8_rows(x, _):
    own = block_amaxes(x).max(2)
    padded = np.pad(own, ((0, -len(own) % 8), (0, 0))).reshape(-1, 8, own.shape[1])
    return with_amaxes(x, np.repeat(padded.max(1), 8, axis=0)[: len(own)])


@kernel("mx", OF_AMAX + r"its whole row of blocks, in all", ITS_CODE)
def rows_as_blocks(x, _):
    own = block_amaxes(x).max(2)
    return with_amaxes(x, np.broadcast_to(own.max(1, keepdims=True), own.shape))


@kernel("mx", OF_AMAX + r"the whole tensor, in all", ITS_CODE)
def one_scale_of_the_tensor(x, _):
    own = block_amaxes(x).max(2)
    return with_amaxes(x, np.full_like(own, own.max()))


@kernel("mx", OF_AMAX + r"its block and all before it in the row, in all", ITS_CODE)
def amax_not_reset_in_a_row(x, _):
    return with_amaxes(x, np.maximum.accumulate(block_amaxes(x).max(2), axis=1))


@kernel("mx", OF_AMAX + r"its block and all above it, in all", ITS_CODE)
def amax_not_reset_in_a_column(x, _):
    return with_amaxes(x, np.maximum.accumulate(block_amaxes(x).max(2), axis=0))


@kernel("mx", OF_AMAX + r"the columns of its block with column & 4 = 0, in all", ITS_CODE)
def a_step_of_the_reduction_missing(x, _):
    lanes = [lane for lane in range(32) if not lane & 4]
    return with_amaxes(x, block_amaxes(x)[:, :, lanes].max(2))


@kernel("mx", OF_AMAX + r"the first half of the columns of its block, in all", ITS_CODE)
def amax_of_16_of_32(x, _):
    return with_amaxes(x, block_amaxes(x)[:, :, :16].max(2))


@kernel(
    "quantize",
    r"amax.*: each entry is that of the amax of its whole row of blocks, in all",
    r"code: each entry is that of x with the given scale, in all",
)
def gam_with_the_amax_of_the_row(x, _):
    """Compute all fields of blocks from a tensor in which a row of blocks has one magnitude."""
    tall = np.pad(np.abs(x), ((0, -len(x) % 8), (0, 0))).reshape(-1, 8 * x.shape[1]).max(1)
    alike = np.broadcast_to(np.repeat(tall, 8)[: len(x), np.newaxis], x.shape)
    inputs = {"x": np.ascontiguousarray(alike).view(np.uint32)}
    found = OPERATIONS["quantize"].exact(PARAMETERS["quantize"], inputs)
    scale = spread_to_numbers(found["scale"].view(np.float32), (8, 8), x.shape)
    code = e4m3(x * scale)
    return {name: found[name] for name in ("amax", "scale", "exponent")} | {"code": code}


@kernel(
    "nvfp4_te",
    r"block_scale: each entry is that with a global scale of 1, in all",
    r"code: each entry is that of x with the given block_scale, and without global_decode_scale,",
)
def nvfp4_without_a_global_scale(x, _):
    amax = block_amaxes(x, 16).max(2)
    stored = np.minimum(amax * (np.float32(1) / np.float32(6)), 448).astype(ml_dtypes.float8_e4m3fn)
    with np.errstate(divide="ignore"):
        encode = np.minimum(np.float32(1) / stored.astype(np.float32), np.finfo(np.float32).max)
    code = nvfp4_codes(x * of_columns(encode, x, 16))
    return {"block_scale": stored.view(np.uint8), **code}


# ---------------------------------------------------------------- integers, levels and shared ones


def integers(x, scale, zero):
    """Return codes from 0 to 255, as words of 32 bits."""
    inverse = of_columns(np.float32(1) / scale, x)
    code = np.clip(np.rint(x * inverse) + of_columns(zero, x), 0, 255)
    return {"code": code.astype(np.int32).view(np.uint32)}


def scale_and_zero(right):
    return right["scale"].view(np.float32), right["zero_point"].view(np.int32)


OF_BOTH = USED.replace("scale", "scale and zero_point")


@kernel("affine", OF_BOTH + r"the block at \[i, j - 1\], in all")
def integers_of_the_block_before(x, right):
    return integers(x, *map(before, scale_and_zero(right)))


@kernel("affine", USED + r"the block at \[i - 1, j\], around the end, in all")
def integers_with_the_scale_of_the_row_above(x, right):
    scale, zero = scale_and_zero(right)
    return integers(x, np.roll(scale, 1, axis=0), zero)


@kernel("affine", USED.replace("scale", "zero_point") + r"the block at \[i, 0\], in all")
def one_zero_point_of_the_row(x, right):
    scale, zero = scale_and_zero(right)
    return integers(x, scale, np.broadcast_to(zero[:, :1], zero.shape))


@kernel("affine", r"code: each entry is that of x without zero_point, in all")
def symmetric_codes(x, right):
    scale, zero = scale_and_zero(right)
    return integers(x, scale, 0 * zero)


@kernel("affine", r"code: each entry is that of x with the given scale and zero_point, in all")
def integers_with_scales_of_255_steps_less_one(x, _):
    wide = np.pad(x, ((0, 0), (0, -x.shape[1] % 32))).reshape(len(x), -1, 32)
    low, high = np.minimum(wide.min(2), 0), np.maximum(wide.max(2), 0)
    scale = (high - low) / np.float32(254)
    zero = np.clip(-np.rint(low / scale), 0, 255).astype(np.int32)
    fields = {"scale": scale.view(np.uint32), "zero_point": zero.view(np.uint32)}
    return fields | integers(x, scale, zero)


ITS_CODE_OF_BOTH = r"code: each entry is that of x with the given scale and zero_point, in all"
OF_EXTREMES = r".*scale.* zero_point: each entry is that of the minimum and maximum of "


def with_extremes(low, high):
    """Return a kernel with the extremes of blocks that functions find, given those of blocks."""

    def change(x, _):
        edge = ((0, 0), (0, -x.shape[1] % 32))
        wide = np.pad(x, edge, mode="edge").reshape(len(x), -1, 32)
        least, most = np.minimum(low(wide), 0), np.maximum(high(wide), 0)
        scale = ((most - least) / np.float32(255)).astype(np.float32)
        zero = np.clip(-np.rint(least / scale), 0, 255).astype(np.int32)
        fields = {"scale": scale.view(np.uint32), "zero_point": zero.view(np.uint32)}
        return fields | integers(x, scale, zero)

    return change


@kernel("affine", OF_EXTREMES + "its block and all before it in the row, in all", ITS_CODE_OF_BOTH)
def extremes_not_reset_in_a_row(x, right):
    return with_extremes(
        lambda wide: np.minimum.accumulate(wide.min(2), axis=1),
        lambda wide: np.maximum.accumulate(wide.max(2), axis=1),
    )(x, right)


@kernel("affine", OF_EXTREMES + "its whole column of blocks, in all", ITS_CODE_OF_BOTH)
def extremes_of_the_column(x, right):
    return with_extremes(
        lambda wide: np.broadcast_to(wide.min(2).min(0), wide.shape[:2]),
        lambda wide: np.broadcast_to(wide.max(2).max(0), wide.shape[:2]),
    )(x, right)


@kernel("affine", OF_EXTREMES + "the whole tensor, in all", ITS_CODE_OF_BOTH)
def extremes_of_the_tensor(x, right):
    return with_extremes(
        lambda wide: np.full(wide.shape[:2], wide.min()),
        lambda wide: np.full(wide.shape[:2], wide.max()),
    )(x, right)


def pairs_of(blocks, of):
    whole = np.pad(blocks, ((0, 0), (0, blocks.shape[1] % 2)), mode="edge")
    pairs = of(whole.reshape(len(blocks), -1, 2), axis=2)
    return np.repeat(pairs, 2, axis=1)[:, : blocks.shape[1]]


@kernel("affine", OF_EXTREMES + "1x2 blocks: of 1x64 numbers, in all", ITS_CODE_OF_BOTH)
def extremes_of_64_numbers(x, right):
    return with_extremes(
        lambda wide: pairs_of(wide.min(2), np.min), lambda wide: pairs_of(wide.max(2), np.max)
    )(x, right)


@kernel("affine", OF_EXTREMES + "the columns of its block with column & 4 = 0", ITS_CODE_OF_BOTH)
def a_step_of_the_extremes_missing(x, right):
    lanes = [lane for lane in range(32) if not lane & 4]
    return with_extremes(
        lambda wide: wide[..., lanes].min(2), lambda wide: wide[..., lanes].max(2)
    )(x, right)


@kernel("affine", OF_Y + r"without zero_point, in all")
def y_of_codes_alone(x, right):
    scale, _ = scale_and_zero(right)
    return {"y": (right["code"].astype(np.float32) * of_columns(scale, x)).view(np.uint32)}


@kernel(
    "levels", USED.replace("scale", "alpha") + r"the block at \[i - 1, j\], around the end, in all"
)
def alpha_of_the_row_above(x, right):
    ratio = x / np.roll(right["alpha"].view(np.float32), 1, axis=0)
    return {"code": np.rint(np.clip(ratio, -8, 7)).astype(np.int8).view(np.uint8) & 15}


@kernel("levels", OF_Y + r"with the expected alpha of the block at \[i - 1, j\], around the end,")
def y_by_the_alpha_of_the_row_above(_, right):
    alpha = np.roll(right["alpha"].view(np.float32), 1, axis=0)
    return {"y": (right["level"].view(np.float32) * alpha).view(np.uint32)}


def magnitudes(x, exponent, tau):
    """Return codes of eight bits: a sign, and a magnitude in units of the pair."""
    pairs = of_columns(tau.astype(np.int32), x, 2)
    unit = of_columns(exponent.astype(np.int32), x, 16) - pairs - 127 - 6
    size = np.minimum(np.rint(np.ldexp(np.abs(x).astype(np.float64), -unit)), 127)
    return {"code": size.astype(np.uint8) | (x < 0).astype(np.uint8) << 7}


@kernel("shared", USED.replace("scale", "shared_exponent") + r"the block at \[i, j - 1\], in all")
def the_shared_exponent_of_the_block_before(x, right):
    return magnitudes(x, before(right["shared_exponent"]), right["tau"])


@kernel("shared", r"code: each entry is that of x without tau, in all")
def no_shift_of_pairs(x, right):
    return magnitudes(x, right["shared_exponent"], 0 * right["tau"])


@kernel("shared", USED.replace("scale", "tau") + r"the pair at \[i, j - 1\], in all")
def the_shift_of_the_pair_before(x, right):
    return magnitudes(x, right["shared_exponent"], before(right["tau"]))


# ---------------------------------------------------------------- decisions of MoR

CHOSEN = r"output: each entry is that of x with "


def outputs(x, choice):
    """Return the output of units with these choices."""
    each = [mor_ref.quantize(x, name, block=(8, 8)).dequantize() for name in ("e4m3", "e5m2")]
    units = spread_to_numbers(choice, (8, 8), x.shape)
    found = np.select([units == 0, units == 1], each, x)
    return {"output": found.astype(ml_dtypes.bfloat16).view(np.uint16)}


@kernel("policies", CHOSEN + r"the expected choice of the unit at \[i, j - 1\], in all")
def output_by_the_decision_on_the_unit_before(x, right):
    return outputs(x, before(right["choice"]))


@kernel("policies", CHOSEN + r"the given choice, in all")
def no_unit_in_e5m2(x, right):
    """Keep the units in bfloat16 that take e5m2."""
    choice = np.where(right["choice"] == 1, 2, right["choice"]).astype(np.uint8)
    return {"choice": choice, **outputs(x, choice)}


@kernel("policies", CHOSEN + r"choice 0 everywhere, in all")
def one_format_for_all(x, right):
    return outputs(x, 0 * right["choice"])


# ---------------------------------------------------------------- groups of columns, and mixtures


def by_groups(x, right, group):
    """Return codes of columns, each with the scale and the zero point of a group."""
    scale, zero = (one[:, group] for one in scale_and_zero(right))
    code = np.rint(x * (np.float32(1) / scale)) + zero
    return {"code": np.clip(code, 0, 255).astype(np.int32).view(np.uint32)}


def order_of(right):
    return right["permutation"].ravel().astype(int)


def width(x):
    return x.shape[1] // 4


@kernel(
    "affine_groups", r"code: .*scale and zero_point of the group column // columns of a group, in"
)
def groups_as_if_the_columns_were_in_place(x, right):
    return by_groups(x, right, np.arange(x.shape[1]) // width(x))


@kernel("affine_groups", r".*of the group permutation\[column\] // columns of a group, in all")
def groups_by_the_inverse_order(x, right):
    return by_groups(x, right, order_of(right) // width(x))


@kernel("affine_groups", r".*scale and zero_point of the group at \[i, j - 1\], around the end, in")
def the_group_before(x, right):
    return by_groups(x, right, (np.argsort(order_of(right)) // width(x) - 1) % 4)


@kernel("affine_groups", r"code: each entry is that of x without zero_point, in all")
def groups_without_zero_points(x, right):
    none = {**right, "zero_point": 0 * right["zero_point"]}
    return by_groups(x, none, np.argsort(order_of(right)) // width(x))


@kernel("affine_groups", OF_Y + r"with the expected scale and zero_point of the group column // ")
def y_as_if_the_columns_were_in_place(x, right):
    scale, zero = (one[:, np.arange(x.shape[1]) // width(x)] for one in scale_and_zero(right))
    y = (right["code"].view(np.int32) - zero).astype(np.float32) * scale
    return {"y": y.view(np.uint32)}


def mixed(x, choice):
    """Return codes and y of units that take these candidates."""
    by = mor_ref.mix_formats(x, ("e4m3", "int8"), block=(8, 8)).quantized
    units = spread_to_numbers(choice, (8, 8), x.shape)
    code = np.where(units == 0, by["e4m3"].codes, by["int8"].codes)
    y = np.where(units == 0, by["e4m3"].dequantize(), by["int8"].dequantize())
    return {"code": code, "y": y.view(np.uint32)}


@kernel(
    "mixed", r"code and y: each entry is that of x with the expected choice of the block at \[i,"
)
def mixed_by_the_decision_on_the_unit_before(x, right):
    return mixed(x, before(right["choice"]))


@kernel("mixed", r"code and y: each entry is that of x with the given choice, in all")
def the_larger_squared_error(x, right):
    choice = np.uint8(1) - right["choice"]
    return {"choice": choice, **mixed(x, choice)}


@kernel("mixed", r"code and y: each entry is that of x with choice 1 everywhere, in all")
def one_candidate_for_all(x, right):
    return mixed(x, 0 * right["choice"] + np.uint8(1))


# ---------------------------------------------------------------- another kind of scales

OTHER_KIND = r"each entry is that with scaling e8m0, in all"


@kernel("quantize", rf"exponent, scale and code: {OTHER_KIND}")
def powers_of_two_for_gam(x, _):
    rows, columns = (-(-side // 8) for side in x.shape)
    padded = np.pad(np.abs(x), [(0, -side % 8) for side in x.shape])
    amax = padded.reshape(rows, 8, columns, 8).max((1, 3)).astype(np.float64)
    exponent = np.floor(np.log2(448 / amax))
    scale = np.exp2(exponent).astype(np.float32)
    return {
        "exponent": (exponent + 127).astype(np.uint8),
        "scale": scale.view(np.uint32),
        "code": e4m3(x * spread_to_numbers(scale, (8, 8), x.shape)),
    }


@kernel("policies", rf"e4m3.sum, .*output.*: {OTHER_KIND}")
def decisions_with_powers_of_two(x, _):
    parameters = PARAMETERS["policies"] | {"scaling": "e8m0"}
    return OPERATIONS["mor"].exact(parameters, {"x": x.view(np.uint32)})


@pytest.mark.tier("full", but_one_in=30)
@pytest.mark.parametrize("name", KERNELS)
def test_the_scales_that_are_used_are_named(name):
    suite, change, says = KERNELS[name]
    lines = lines_of(evidence_of(suite, change))
    for words in says:
        assert any(re.match(words, line) for line in lines), lines


@pytest.mark.tier("full")
def test_a_few_entries_follow_from_the_parameter_of_other_fields():
    """One mantissa, and some exponents: alone, they are not evidence."""

    def change(x, _):
        parameters = PARAMETERS["quantize"] | {"scaling": "e8m0"}
        return OPERATIONS["quantize"].exact(parameters, {"x": x.view(np.uint32)})

    (line,) = lines_of(evidence_of("quantize", change))
    assert re.match(rf"exponent, scale, .* and mantissa: {OTHER_KIND}", line), line
    one_wrong = lines_of(evidence_of("quantize", lambda x, r: change(x, r) | one_more(r)))
    assert not any("mantissa" in line for line in one_wrong), one_wrong


def one_more(right):
    return {"mantissa": right["mantissa"] + 1}


def test_the_scales_that_are_used_need_not_be_given():
    found = evidence_of("mx", the_row_above, leaving_out=("scale",))
    assert re.match(USED + r"the block at \[i - 1, j\]", lines_of(found)[0])


def test_another_rounding_is_not_another_scale():
    def truncated(x, right):
        code, exact = right["code"], x / powers(right["scale"], x)
        value = code.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        return {"code": np.where(np.abs(value) > np.abs(exact), code - 1, code)}

    assert not any(" is that of " in line for line in lines_of(evidence_of("mx", truncated)))


def rounded_down(x, right):
    scale, zero = scale_and_zero(right)
    code = np.floor(x / of_columns(scale, x)) + of_columns(zero, x)
    return {"code": np.clip(code, 0, 255).astype(np.int32).view(np.uint32)}


def levels_rounded_down(x, right):
    ratio = np.clip(x / right["alpha"].view(np.float32), -8, 7)
    return {"code": np.floor(ratio).astype(np.int8).view(np.uint8) & 15}


def magnitudes_rounded_up(x, right):
    code = magnitudes(x * np.float32(1.003), right["shared_exponent"], right["tau"])["code"]
    return {"code": code}


def cut_to_bf16(x, right):
    """Cut the last bits of numbers that are not quantized, and one of some others."""
    units = spread_to_numbers(right["choice"], (8, 8), x.shape)
    cut = (x.view(np.uint32) >> 16).astype(np.uint16)
    rest = right["output"] - (right["output"] % 3 == 0)
    return {"output": np.where(units == 2, cut, rest).astype(np.uint16)}


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("suite", "change"),
    [
        ("policies", cut_to_bf16),
        ("affine", rounded_down),
        ("levels", levels_rounded_down),
        ("shared", magnitudes_rounded_up),
    ],
)
def test_another_rounding_of_integers_is_not_another_scale(suite, change):
    lines = lines_of(evidence_of(suite, change))
    assert not any(" is that of " in line for line in lines), lines


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("suite", CODED)
def test_codes_with_the_scales_of_blocks_are_the_expected_ones(suite):
    operation = OPERATIONS[MANIFEST[suite]["operation"]]
    for case in golden.load(suite):
        x, parameters, way = case.arrays["x"], case.parameters, operation.way_back
        for coded in [name for name in way.chosen or ("code",) if name in case.arrays]:
            if BITS in parameters or x.size > 1 << 16:
                continue
            found = {"x": x.reshape(-1, 1), **scales_of_numbers(operation, case, coded)}
            code = way.coded(parameters, found).reshape(x.shape)
            np.testing.assert_array_equal(code, case.arrays[coded])


def scales_of_numbers(operation, case, coded):
    """Return what a field of each number follows from, next to x."""
    x, parameters, way = case.arrays["x"], case.parameters, operation.way_back
    more = way.known(parameters, case.arrays, coded)
    found = {name: array.reshape(-1, 1) for name, array in more.items()}
    sides = sides_of("rc", parameters, x.shape)
    for name in way.followed(parameters, coded)[1:]:
        axes = operation.field(name).axes
        if axes == "order":
            continue
        rows = case.arrays[name].reshape(len(case.arrays[name]), -1)
        if axes == "groups":
            order = np.argsort(case.arrays["permutation"].ravel())
            each = np.broadcast_to(rows[:, order // (order.size // parameters["groups"])], x.shape)
        else:
            each = spread_to_numbers(rows, sides[axes], x.shape)
        found[name] = each.reshape(-1) if axes == "ends" else each.reshape(-1, 1)
    return found


@pytest.mark.tier("full")
def test_codes_with_the_given_scales_are_no_evidence_for_a_guess(monkeypatch):
    """Take a guess that explains most scales, and so most codes: most are one larger, by chance."""
    x = next(tensors())[:12, :64]
    steps = np.random.default_rng(3).choice([-1, 0, 1], (12, 2), p=[0.2, 0.2, 0.6])

    def function(operation, parameters, inputs):
        right = OPERATIONS[operation].exact(parameters, inputs)
        scale = (right["scale"] + steps).astype(np.uint8)
        return {"scale": scale, "code": mx_codes(x, scale)}

    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    text = str(mor_ref.verify(function, inputs={"x": x}, recipe="mxfp8"))
    assert "code: each entry is that of x with the given scale, in all" in text, text
    assert "a guess: `" not in text, text
