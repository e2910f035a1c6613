"""Whole kernels as a tired engineer writes them: each is wrong in one way, which has a name.

A kernel takes a tensor and returns some of its fields. It runs on two tensors: the second one has
partial blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

import mor_ref
from mor_ref import layouts
from mor_ref.recipes import own_recipe
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.own_fields import fields_of_operation
from mor_ref.verify.own_inputs import from_arrays
from mor_ref.verify.own_tensors import SUITE, own_tensors

SIDE = 32  # of a block of MX


@dataclass(frozen=True)
class Tired:
    """A kernel for a recipe, and the words that the diagnosis has to have."""

    recipe: str
    kernel: Callable
    says: tuple[str, ...]


KERNELS: dict[str, Tired] = {}
TWICE: dict[str, Tired] = {}  # with a deviation and a structure, or two structures


def added_to(table):
    """Return a decorator that adds kernels to a table."""

    def tired(recipe, *says):
        def add(kernel):
            table[kernel.__name__] = Tired(recipe, kernel, says)
            return kernel

        return add

    return tired


tired, tired_twice = added_to(KERNELS), added_to(TWICE)


@cache
def tensors():
    """Return two tensors whose rows and blocks have unlike sizes."""
    random = np.random.default_rng(16)

    def one(rows, columns):
        x = random.standard_normal((rows, columns)) * np.exp2(random.integers(-7, 7, (rows, 1)))
        return (x * np.exp2(random.integers(-3, 3, (1, columns)))).astype(np.float32)

    return {"whole": one(48, 256), "partial": one(26, 200)}


@cache
def cases_of(recipe):
    own = own_tensors(own_recipe(recipe), from_arrays(tensors()))
    return [case for _, cases in own.parts() for case in cases]


def evidence_of(one):
    """Return the answers of a kernel, next to the expected ones."""
    asked, cases = own_recipe(one.recipe).asked, cases_of(one.recipe)
    fields = list(fields_of_operation(asked))
    answers = {case.name: one.kernel(case.arrays["x"].view(np.float32)) for case in cases}
    return Evidence(SUITE, asked.operation, fields, cases, answers)


# ---------------------------------------------------------------------- MXFP8, step by step


def in_blocks(x, side=SIDE):
    """Return blocks of columns, with zeros after the last ones."""
    wide = np.pad(x, ((0, 0), (0, -x.shape[1] % side)))
    return wide.reshape(len(x), -1, side)


def scales(amax):
    """Return the codes of 2^(floor(log2 amax) - 8)."""
    return (np.frexp(amax)[1] - 1 - 8 + 127).astype(np.uint8)


def codes(x, scale, side=SIDE):
    """Return the codes of e4m3 of x divided by the scale of its block."""
    powers = np.repeat(np.exp2(scale.astype(np.float64) - 127), side, axis=1)[:, : x.shape[1]]
    scaled = np.clip(x / powers, -448, 448).astype(np.float32)
    return scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def mxfp8(x):
    """Quantize to MXFP8; this kernel is right."""
    scale = scales(np.abs(in_blocks(x)).max(axis=2))
    return {"scale": scale, "code": codes(x, scale)}


def nvfp4(x):
    """Quantize to NVFP4; this kernel is right."""
    found = mor_ref.quantize_nvfp4(x)
    return {"block_scale": found.block_scale, "code": found.codes}


# ---------------------------------------------------------------------- bits


@tired("mxfp8", r"code: bit 0 of each entry is always 0, in all")
def lowest_line_not_connected(x):
    found = mxfp8(x)
    return found | {"code": found["code"] & np.uint8(0xFE)}


@tired("mxfp8", r"scale: bit 1 of each entry is always 1, in all")
def a_line_of_the_scale_tied_high(x):
    found = mxfp8(x)
    return found | {"scale": found["scale"] | np.uint8(2)}


@tired("mxfp8", r"code: the sign bit of each entry is always 0, in all")
def magnitudes_alone(x):
    return mxfp8(x) | {"code": mxfp8(np.abs(x))["code"]}


@tired("mxfp8", r"code: each entry has the sign bit inverted, in all")
def negated(x):
    return mxfp8(x) | {"code": mxfp8(-x)["code"]}


@tired("nvfp4", r"code: each entry has the sign bit inverted, in all")
def negated_in_four_bits(x):
    return nvfp4(x) | {"code": nvfp4(-x)["code"]}


@tired("mxfp8", r"scale: each entry is 254 minus the expected one, in all")
def scales_that_multiply(x):
    """Store 2^-e where 2^e is expected."""
    found = mxfp8(x)
    return found | {"scale": np.uint8(254) - found["scale"]}


@tired("mxfp8", r"code: each negative entry is in two's complement, in all")
def codes_of_signed_integers(x):
    found = mxfp8(x)
    signed = found["code"] & np.uint8(0x7F)
    return found | {"code": np.where(found["code"] >> 7, 0 - signed, signed)}


@tired("nvfp4", r"packed: bit 2 of each nibble is always 0, in all")
def a_line_of_packed_codes_not_connected(x):
    return {"packed": layouts.packed(nvfp4(x)["code"]) & np.uint8(0xBB)}


@tired(
    "nvfp4", r"packed: \[i, j\] has .* of \[i, j - j mod 2\], in all|nibble .* \[i, j - j mod 2\]"
)
def both_nibbles_are_the_even_code(x):
    packed = layouts.packed(nvfp4(x)["code"])
    return {"packed": packed & np.uint8(15) | packed << np.uint8(4)}


@tired("nvfp4", r"code: each entry is 0x0 \(0\), in all", r"differs only if column mod 5 is 3: ")
def every_fifth_column_not_written(x):
    found = nvfp4(x)
    return found | {"code": np.where(np.arange(x.shape[1]) % 5 == 3, np.uint8(0), found["code"])}


@tired("nvfp4", r"block_scale: perhaps \[i, j\] has the expected value of \[i \+ 1, j\], in all")
def scales_that_race_with_the_row_below(x):
    found = nvfp4(x)
    scale = found["block_scale"]
    late = np.random.default_rng(2).random(scale.shape) < 0.3
    late[-1] = False
    return found | {"block_scale": np.where(late, np.roll(scale, -1, axis=0), scale)}


def reversed_bits(codes, bits):
    found = np.zeros_like(codes)
    for k in range(bits):
        found |= (codes >> np.uint8(k) & np.uint8(1)) << np.uint8(bits - 1 - k)
    return found


@tired("mxfp8", r"scale: each entry has its 8 bits in reverse order, in all")
def scales_of_a_bus_the_wrong_way_round(x):
    found = mxfp8(x)
    return found | {"scale": reversed_bits(found["scale"], 8)}


@tired("nvfp4", r"code: each entry has its 4 bits in reverse order, in all")
def codes_of_a_bus_the_wrong_way_round(x):
    found = nvfp4(x)
    return found | {"code": reversed_bits(found["code"], 4)}


# ---------------------------------------------------------------------- places


@tired("mxfp8", r"code: .*only if row mod 3 is 2: ")
def every_third_row_is_rounded_down(x):
    found = mxfp8(x)
    wrong = found["code"].copy()
    wrong[2::3] -= (wrong[2::3] % 5 == 1) | (wrong[2::3] % 5 == 3)
    return found | {"code": wrong}


@tired("mxfp8", r"code: perhaps \[i, j\] has the expected value of \[i, j \+ 1\], in all")
def threads_that_race_to_the_right(x):
    found = mxfp8(x)
    late = np.random.default_rng(1).random(x.shape) < 0.2
    late[:, -1] = False
    return found | {"code": np.where(late, np.roll(found["code"], -1, axis=1), found["code"])}


@tired("mxfp8", r"scale: \[i, j\] has the expected value of \[i - 8, j\], or of the first one")
def rows_read_eight_too_early(x):
    rows = np.maximum(np.arange(len(x)) - 8, 0)
    found = mxfp8(x)
    return found | {"scale": found["scale"][rows]}


@tired("mxfp8", r"scale: each entry is that of the amax of the columns .* column & 1 = 0, in all ")
def amax_of_even_lanes(x):
    return {"scale": scales(np.abs(in_blocks(x)[:, :, ::2]).max(axis=2))}


@tired(
    "nvfp4", "block_scale: each entry is that of the amax of the first half of the columns of its "
)
def amax_of_half_a_block(x):
    return {"block_scale": of_blocks_without(x, slice(8, 16))}


@tired("nvfp4", r"block_scale: an entry differs only if the place of the largest .*, is 15: ")
def amax_without_the_last_element(x):
    return {"block_scale": of_blocks_without(x, slice(15, 16))}


def of_blocks_without(x, lanes):
    """Return the scales of blocks without some of their numbers; the amax is that of x."""
    blocks = in_blocks(x, 16).copy()
    blocks[:, :, lanes] = 0
    left = blocks.reshape(len(x), -1)[:, : x.shape[1]]
    return mor_ref.quantize_nvfp4(left, amax=float(np.abs(x).max())).block_scale


@tired("nvfp4", r"code: each entry is 0x0 \(0\), in all", r"only if column mod 16 is 15: ")
def last_element_of_each_block_not_written(x):
    found = nvfp4(x)
    code = found["code"].copy()
    code[:, 15::16] = 0
    return found | {"code": code}


@tired(
    "nvfp4", r"code: \[i, j\] has the expected value of \[i, j - 8\]", r"column in the block >= 8"
)
def second_half_of_each_block_is_the_first(x):
    found = nvfp4(x)
    blocks = in_blocks(found["code"], 16).copy()
    blocks[:, :, 8:] = blocks[:, :, :8]
    return found | {"code": blocks.reshape(len(x), -1)[:, : x.shape[1]]}


@tired("mxfp8", r"scale and code: .*for blocks that begin 16 columns sooner, in all")
def blocks_begin_half_a_block_sooner(x):
    first = np.pad(x, ((0, 0), (16, 0)))
    found = mxfp8(first)
    blocks = -(-x.shape[1] // SIDE)
    return {"scale": found["scale"][:, :blocks], "code": found["code"][:, 16:]}


@tired("mxfp8", r"scale: .*for blocks that begin 16 columns later")
def blocks_begin_half_a_block_later(x):
    scale, last = mxfp8(x)["scale"], mxfp8(x[:, 16:])["scale"]
    scale[:, : last.shape[1]] = last
    return {"scale": scale}


@tired("mxfp8", r"scale: columns are in another order: all even ones first, in all")
def even_columns_of_scales_first(x):
    scale = mxfp8(x)["scale"]
    return {"scale": np.concatenate([scale[:, ::2], scale[:, 1::2]], axis=1)}


@tired("nvfp4", r"block_scale: columns are in another order: their halves interleaved, in all")
def halves_of_scales_interleaved(x):
    scale = nvfp4(x)["block_scale"]
    half = -(-scale.shape[1] // 2)
    order = [k // 2 + k % 2 * half for k in range(scale.shape[1])]
    return {"block_scale": scale[:, order]}


@tired("nvfp4", r"block_scale: columns are in another order: halves of each 4 interleaved, in all")
def scales_interleaved_in_fours(x):
    scale = nvfp4(x)["block_scale"].copy()
    whole = scale.shape[1] // 4 * 4
    fours = scale[:, :whole].reshape(len(scale), -1, 2, 2)
    scale[:, :whole] = fours.transpose(0, 1, 3, 2).reshape(len(scale), -1)
    return {"block_scale": scale}


# ---------------------------------------------------------------------- layouts


@tired("mxfp8", r"scale: the swizzle is forgotten: the scales are row by row, with padding, in all")
def padded_and_not_swizzled(x):
    scale = mxfp8(x)["scale"]
    padded = np.pad(scale, ((0, -len(scale) % 128), (0, -scale.shape[1] % 4)))
    return {"scale@swizzled_128x4": padded.ravel()}


@tired("mxfp8", r"scale: the swizzle is forgotten: .*, without padding, in all")
def copied_into_the_buffer_of_swizzled_scales(x):
    scale = mxfp8(x)["scale"]
    buffer = np.zeros(layouts.swizzled_128x4(scale).size, np.uint8)
    buffer[: scale.size] = scale.ravel()
    return {"scale@swizzled_128x4": buffer}


@tired("mxfp8", r"scale: the scales are swizzled twice, in all")
def swizzled_in_the_kernel_and_after_it(x):
    scale = mxfp8(x)["scale"]
    once = layouts.swizzled_128x4(scale).reshape(128, -1)
    return {"scale@swizzled_128x4": layouts.swizzled_128x4(once)}


@tired("mxfp8", r"scale: each tile of the swizzle is row by row")
def tiles_without_interleaved_rows(x):
    scale = mxfp8(x)["scale"]
    padded = np.pad(scale, ((0, -len(scale) % 128), (0, -scale.shape[1] % 4)))
    tiles = padded.reshape(-1, 128, padded.shape[1] // 4, 4).transpose(0, 2, 1, 3)
    return {"scale@swizzled_128x4": tiles.ravel()}


@tired(
    "mxfp8", r"scale: the scales are swizzled_128x4, where rows and columns are expected, in all"
)
def swizzled_where_rows_are_expected(x):
    scale = mxfp8(x)["scale"]
    return {"scale": layouts.swizzled_128x4(scale)[: scale.size].reshape(scale.shape)}


@tired("nvfp4", r"code: the two nibbles of each byte are swapped, in all")
def even_codes_in_the_high_nibble(x):
    packed = layouts.packed(nvfp4(x)["code"])
    return {"code@packed": packed >> np.uint8(4) | packed << np.uint8(4)}


# ---------------------------------------------------------------------- other fields


@tired("mxfp8", r"would change differs only if the expected scale mod 2 is 1: ")
def rounded_toward_zero_where_the_scale_is_odd(x):
    found = mxfp8(x)
    is_odd = np.repeat(found["scale"] % 2 == 1, SIDE, axis=1)[:, : x.shape[1]]
    toward_zero = codes_toward_zero(x, found["scale"])
    return found | {"code": np.where(is_odd, toward_zero, found["code"])}


@tired("nvfp4", r"would change differs only if the expected block_scale mod 2 is 1: all ")
def scales_rounded_up_to_even_codes(x):
    found = nvfp4(x)
    scale = found["block_scale"]
    return found | {"block_scale": scale + (scale & np.uint8(1))}


@tired(
    "nvfp4",
    r"differs only if the expected code has the largest magnitude of its format: all 1,",
)
def largest_code_not_reached(x):
    found = nvfp4(x)
    code = found["code"]
    return found | {"code": code - ((code & np.uint8(7)) == np.uint8(7))}


@tired("nvfp4", r"code: .* differs only if the expected block_scale >= 0x78: all ")
def signs_lost_under_large_scales(x):
    found = nvfp4(x)
    is_large = np.repeat(found["block_scale"] >= 0x78, 16, axis=1)[:, : x.shape[1]]
    return found | {"code": np.where(is_large, found["code"] & np.uint8(7), found["code"])}


# ---------------------------------------------------------------------- two mistakes


@tired(
    "mxfp8",
    r"code: each entry is 0x00 \(0\), in [\d,]+ of the [\d,]+ entries that differ",
    r"code: an entry that it would change differs only if column >= 192: all ",
    r"code: rows 5 and 9 are swapped, in all the other [\d,]+ entries that differ$",
)
def rows_swapped_and_the_tail_dropped(x):
    found = mxfp8(x)
    code = found["code"].copy()
    code[[5, 9]] = code[[9, 5]]
    code[:, 192:] = 0
    return found | {"code": code}


@tired(
    "nvfp4",
    r"code: each entry is 0x0 \(0\), in [\d,]+ of the [\d,]+ entries that differ",
    r"code: an entry that it would change differs only if column mod 4 is 1: all ",
    r"code: rows 3 and 4 are swapped, in all the other [\d,]+ entries that differ$",
)
def a_column_not_written_and_rows_swapped(x):
    found = nvfp4(x)
    code = found["code"].copy()
    code[[3, 4]] = code[[4, 3]]
    code[:, 1::4] = 0
    return found | {"code": code}


@tired_twice(
    "mxfp8:rceil",
    r"^all [\d,]+ mismatches are explained by `MXS-003/always` .*, with entries in other places\n",
    r"code, after `MXS-003/always`: .*\[i - 1, j\], around the end, in all ",
)
def floor_and_codes_one_row_late(x):
    found = mxfp8(x)
    return found | {"code": np.roll(found["code"], 1, axis=0)}


@tired_twice(
    "mxfp8:rceil",
    r"^all [\d,]+ mismatches are explained by `MXS-003/always` .*, with entries in other places\n",
    r"code, after `MXS-003/always`: rows 5 and 9 are swapped, in all ",
)
def floor_and_two_rows_swapped(x):
    found = mxfp8(x)
    code = found["code"].copy()
    code[[5, 9]] = code[[9, 5]]
    return found | {"code": code}


@tired_twice(
    "mxfp8:rceil",
    r"^all [\d,]+ mismatches are explained by `MXS-003/always` .*, with entries in other places\n",
    r"scale, after `MXS-003/always`: .* transposed .*, in all ",
)
def floor_and_scales_transposed(x):
    found = mxfp8(x)
    return found | {"scale": found["scale"].T.reshape(found["scale"].shape)}


@tired_twice(
    "mxfp8",
    r"^all [\d,]+ mismatches are explained by `ENC-003/truncated` .*, with entries in other "
    r"places\n",
    r"scale, after `ENC-003/truncated`: \[i, j\] has the expected value of "
    r"\[i \+ 1, j\], .*in all ",
)
def truncation_and_scales_of_the_row_below(x):
    found = mxfp8(x)
    toward_zero = codes_toward_zero(x, found["scale"])
    return {"scale": np.roll(found["scale"], -1, axis=0), "code": toward_zero}


def codes_toward_zero(x, scale):
    """Return the codes of e4m3 of the greatest magnitude up to that of x, divided by the scale."""
    code = codes(x, scale)
    powers = np.repeat(np.exp2(scale.astype(np.float64) - 127), SIDE, axis=1)[:, : x.shape[1]]
    found = np.abs(code.view(ml_dtypes.float8_e4m3fn).astype(np.float64))
    return code - (found > np.abs(x / powers)).astype(np.uint8)


# ---------------------------------------------------------------------- FP8 with scales in binary32


def fp8(x):
    """Quantize blocks of 128 columns to e4m3; this kernel is right."""
    amax = np.abs(in_blocks(x, 128)).max(axis=2)
    return {"amax": amax, "scale": (np.float32(448) / amax).astype(np.float32)}


@tired("e4m3:fp32:1x128", r"scale: each entry is amax / 448, .*, not 448 / amax, in all 148 ")
def decode_scales(x):
    return {"scale": (fp8(x)["amax"] / np.float32(448)).view(np.uint32)}


@tired("e4m3:fp32:tensor", r"scale: each entry is the inverse of the expected one, .*, in all 2 ")
def decode_scale_of_a_tensor(x):
    return {"scale": np.array([[np.abs(x).max() / np.float32(448)]]).view(np.uint32)}


@tired("e4m3:fp32:1x128", r"scale: each entry is the inverse of the expected one, .*, in all 148 ")
def scales_inverted(x):
    return {"scale": (np.float32(1) / fp8(x)["scale"]).view(np.uint32)}


@tired(
    "nvfp4", r"global_encode_scale: each entry is the inverse of the expected one, .*, in all 2 "
)
def global_scale_inverted(x):
    return {
        "global_encode_scale": mor_ref.quantize_nvfp4(x)
        .global_decode_scale.reshape(1)
        .view(np.uint32)
    }


@tired(
    "e4m3:fp32:tensor",
    r"scale: perhaps each entry is the inverse of .*, in the entry that differs;",
)
def decode_scale_of_one_tensor(x):
    amax = fp8(x)["amax"].max(keepdims=True)
    scale = np.float32(448) / amax if len(x) == 48 else amax / np.float32(448)
    return {"scale": scale.view(np.uint32)}


# ---------------------------------------------------------------------- blocks of two sizes


@tired("mxfp8", r"code: each entry is that of x with the scale of blocks of 1x16 numbers, in all ")
def codes_with_a_scale_for_16(x):
    """Store the scales of 32 numbers, and round with those of 16."""
    return mxfp8(x) | {"code": codes(x, scales(np.abs(in_blocks(x, 16)).max(axis=2)), 16)}


@tired(
    "nvfp4",
    r"code: each entry is that of x with the block_scale of blocks of 1x32 numbers, in all ",
)
def codes_with_a_scale_for_32(x):
    wide = in_blocks(x, 32)
    largest = np.broadcast_to(np.abs(wide).max(axis=2, keepdims=True), wide.shape)
    first = mor_ref.quantize_nvfp4(largest.reshape(len(x), -1)[:, : x.shape[1]])
    found = mor_ref.quantize_nvfp4(x)
    decode = first.block_scale.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    decode *= found.global_decode_scale.reshape(()).view(np.float32)
    encode = np.repeat(np.float32(1) / decode, 16, axis=1)[:, : x.shape[1]]
    scaled = np.clip(x * encode, -6, 6)
    return nvfp4(x) | {"code": scaled.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)}


# ---------------------------------------------------------------------- one value for another


@tired(
    "nvfp4", r"code: each entry that is to be 0x8 \(-0\) is 0x0 \(0\), in all [\d,]+ entries [^;]*$"
)
def zeros_without_a_sign(x):
    found = nvfp4(x)
    return found | {"code": np.where(found["code"] == 8, np.uint8(0), found["code"])}


@tired(
    "nvfp4",
    r"code: each entry is 0x0 \(0\), in [\d,]+ of the [\d,]+ entries that differ",
    r"code: an entry that it would change differs only if .*: all [\d,]+ there differ, and none ",
)
def last_block_not_written_and_a_few_codes_wrong(x):
    found, first = nvfp4(x)["code"], (x.shape[1] - 1) // 16 * 16
    found[np.random.default_rng(3).random(x.shape) < 0.01] |= 1
    found[:, first:] = 0
    return {"code": found}
