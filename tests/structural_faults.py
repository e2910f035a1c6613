"""Candidates with mistakes of structure: the right values in wrong places, or only in some places.

Each is the golden vectors of a suite with one mistake planted, which the diagnosis has to name.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mor_ref import golden
from mor_ref.definitions.formats import formats
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations.bits import tensor_of
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of

MANIFEST = read_manifest(bundled_files())["suites"]


@dataclass(frozen=True)
class Fault:
    """A mistake in a suite, and words that its diagnosis has to have.

    `change` returns the wrong fields of a case; it is given the case before it as well.
    """

    suite: str
    change: Callable
    says: tuple[str, ...]


FAULTS: dict[str, Fault] = {}


def fault(suite, *says):
    """Add a fault to the table."""

    def add(change):
        FAULTS[change.__name__] = Fault(suite, change, says)
        return change

    return add


def evidence_of(one):
    """Return the answers of a candidate with this fault to all cases of its suite."""
    cases, before, answers = golden.load(one.suite), None, {}
    fields = fields_of(MANIFEST[one.suite])
    names = [field.name for field in fields if field.role == "expected"]
    for case in cases:
        right = {name: case.arrays[name] for name in names if name in case.arrays}
        answers[case.name] = right | one.change(case, before)
        before = case
    return Evidence(one.suite, MANIFEST[one.suite]["operation"], fields, cases, answers)


def numbers(case, name="x"):
    """Return an input as float64 numbers."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return tensor_of(case.arrays[name], case.parameters["source"]).astype(np.float64)


def with_entries(array, where, value):
    """Return an array with another value in some entries."""
    return np.where(where, np.asarray(value, array.dtype), array)


def places(array):
    """Return the row and the column of each entry."""
    return np.indices(array.shape)


# ---------------------------------------------------------------------- in where


@fault("quantize", r"exponent and scale: each entry has the expected value of the transposed field")
def scales_written_transposed(case, _):
    return {n: case.arrays[n].T.reshape(case.arrays[n].shape) for n in ("scale", "exponent")}


@fault("mx", r"code: each entry has the expected value of the transposed field")
def codes_written_column_by_column(case, _):
    return {"code": case.arrays["code"].T.reshape(case.arrays["code"].shape)}


@fault("nvfp4_te_row", r"block_scale: \[i, j\] has the expected value of \[i, j \+ 1\]")
def scale_of_the_block_to_the_right(case, _):
    scale = case.arrays["block_scale"]
    return {"block_scale": np.concatenate([scale[:, 1:], scale[:, -1:]], axis=1)}


@fault("quantize", r"amax: \[i, j\] has the expected value of \[i, j - 1\]")
def amax_of_the_block_to_the_left_cyclic(case, _):
    return {"amax": np.roll(case.arrays["amax"], 1, axis=1)}


@fault("mx", r"scale: .*the entry before it, row by row")
def stale_scale_of_the_block_before(case, _):
    scale = case.arrays["scale"].ravel()
    return {"scale": np.concatenate([scale[:1], scale[:-1]]).reshape(case.arrays["scale"].shape)}


@fault("nvfp4_te", r"global_encode_scale.*: .*in the preceding case")
def global_scale_of_the_call_before(case, before):
    names = ("global_encode_scale", "global_decode_scale")
    before = before or case
    return {n: before.arrays[n] for n in names if case.arrays[n].shape == before.arrays[n].shape}


@fault("quantize", r"code.*: rows 1 and 2 are swapped")
def two_rows_swapped(case, _):
    if len(case.arrays["code"]) < 3:
        return {}
    order = [0, 2, 1, *range(3, len(case.arrays["code"]))]
    return {
        n: case.arrays[n][order] for n in ("code", "y", "xs", "d", "r", "u") if n in case.arrays
    }


@fault("nvfp4_torchao", r"packed: the two nibbles of each byte are swapped")
def nibbles_swapped(case, _):
    packed = case.arrays["packed"]
    return {"packed": packed >> 4 | packed << 4}


@fault("encode", r"code: \[i\] has the expected value of \[i \+ 1\]")
def lanes_off_by_one(case, _):
    code = case.arrays["code"]
    return {"code": np.concatenate([code[1:], code[-1:]])}


@fault("encode_stochastic", r"code: \[i\] has the expected value of \[i \^ 1\]")
def pairs_of_lanes_swapped(case, _):
    code = case.arrays["code"].copy()
    even = len(code) // 2 * 2
    code[:even] = code[:even].reshape(-1, 2)[:, ::-1].ravel()
    return {"code": code}


@fault("mx", r"scale: \[i, j\] has the expected value of \[i, 0\]")
def first_scale_of_the_row_for_all(case, _):
    scale = case.arrays["scale"]
    return {"scale": np.broadcast_to(scale[:, :1], scale.shape).copy()}


@fault("quantize_blocks", r"scale.*: \[i\] has the expected value of \[i - i mod 4\]")
def one_scale_for_four_blocks(case, _):
    rows = np.arange(len(case.arrays["scale"]))
    return {n: case.arrays[n][rows - rows % 4] for n in ("scale", "exponent")}


@fault("mx", r"scale: \[i, j\] has the expected value of \[i, j // 2\]")
def scale_of_another_group(case, _):
    scale = case.arrays["scale"]
    return {"scale": scale[:, np.arange(scale.shape[1]) // 2]}


@fault("policies", r"e4m3\.sum: .*the expected value of e5m2\.sum")
def sums_of_two_formats_swapped(case, _):
    names = ("e4m3.sum", "e5m2.sum")
    if any(n not in case.arrays for n in names):
        return {}
    return dict(zip(names, (case.arrays[n] for n in names[::-1]), strict=True))


@fault("quantize", r"y: .*the bits of the input x")
def input_returned_unquantized(case, _):
    return {"y": case.arrays["x"]} if case.parameters["source"] == "f32" else {}


@fault("decode", r"value: .*bytes in reverse order")
def bytes_of_the_other_order(case, _):
    return {"value": case.arrays["value"].byteswap()}


@fault("nvfp4_te", r"code.*: \[i, j\] has the expected value of \[i, j - 16\]")
def codes_shifted_by_a_tile(case, _):
    found = {}
    for name in ("code", "y"):
        array = case.arrays[name].copy()
        array[:, 16:] = case.arrays[name][:, : max(array.shape[1] - 16, 0)]
        found[name] = array
    return found


@fault("quantize", r"code.*: \[i, j\] has the expected value of \[i - 3, j\], around the end")
def rows_rolled(case, _):
    return {n: np.roll(case.arrays[n], 3, axis=0) for n in ("code", "y", "xs") if n in case.arrays}


@fault("mx", r"scale: \[i, j\] has the expected value of \[i \+ 5, j\], around the end")
def rows_of_scales_rolled(case, _):
    return {"scale": np.roll(case.arrays["scale"], -5, axis=0)}


@fault("quantize", r"code: .*the place that is transposed inside its tile of 4x4, in all")
def codes_transposed_in_tiles(case, _):
    code = case.arrays["code"].copy()
    rows, columns = (side // 4 * 4 for side in code.shape)
    tiles = code[:rows, :columns].reshape(rows // 4, 4, columns // 4, 4)
    code[:rows, :columns] = tiles.transpose(0, 3, 2, 1).reshape(rows, columns)
    return {"code": code}


@fault("mx", r"code: rows are in another order: all even ones first, in all")
def even_rows_first(case, _):
    code = case.arrays["code"]
    return {"code": np.concatenate([code[::2], code[1::2]])}


def positions_first(array, heads):
    """Return rows of positions and heads, if rows are whole heads of positions."""
    if len(array) % heads:
        return array
    by_heads = array.reshape(heads, -1, array.shape[1])
    return by_heads.transpose(1, 0, 2).reshape(array.shape)


@fault("mx", r"code: rows are in another order: \[n, 4\] instead of \[4, n\], in all")
def rows_of_heads_stored_by_positions(case, _):
    return {"code": positions_first(case.arrays["code"], 4)}


@fault("quantize", r"code and y: rows are in another order: \[n, 8\] instead of \[8, n\], in all")
def rows_of_more_heads_stored_by_positions(case, _):
    return {n: positions_first(case.arrays[n], 8) for n in ("code", "y", "xs") if n in case.arrays}


@fault("mx", r"scale: each entry is the expected one \+ 1, in all")
def scale_codes_one_too_large(case, _):
    return {"scale": case.arrays["scale"] + np.uint8(1)}


@fault(
    "nvfp4_te",
    r"block_scale: each entry is the expected one - 8, in all",
    r"block_scale: .*only if the column is the last",
)
def scale_of_the_last_block_halved(case, _):
    scale = case.arrays["block_scale"]
    last = places(scale)[1] == scale.shape[1] - 1
    return {"block_scale": scale - np.uint8(8) * (last & (scale >= 8)).astype(np.uint8)}


# ---------------------------------------------------------------------- only in some places


@fault("mx", r"code: .*only if \(row \+ column of the block\) mod 2 is 1: ")
def blocks_of_a_checkerboard_wrong(case, _):
    code, side = case.arrays["code"], case.parameters["block"]
    row, column = places(code)
    wrong = (row + column // side) % 2 == 1
    return {"code": code ^ np.where(wrong, code % 5 + 1, 0).astype(code.dtype)}


@fault("quantize", r"code: .*only if \(row // 4 \+ column // 4\) mod 2 is 1: ")
def tiles_of_a_checkerboard_wrong(case, _):
    code = case.arrays["code"]
    row, column = places(code)
    wrong = (row // 4 + column // 4) % 2 == 1
    return {"code": code ^ np.where(wrong, code % 5 + 1, 0).astype(code.dtype)}


@fault(
    "quantize",
    r"code: each entry is 0x0, in all",
    r"only if it is after the last whole 8 of the columns: ",
)
def tail_of_each_row_dropped(case, _):
    code = case.arrays["code"]
    columns = code.shape[1]
    return {"code": with_entries(code, places(code)[1] >= columns - columns % 8, 0)}


@fault("mx", r"code: each entry is 0x0, in all", r"only if it is in a partial block: ")
def last_partial_block_not_written(case, _):
    code, side = case.arrays["code"], case.parameters["block"]
    columns = code.shape[1]
    return {"code": with_entries(code, places(code)[1] >= columns - columns % side, 0)}


@fault(
    "nvfp4_te",
    r"code: perhaps \[i, j\] has the expected value of \[i, j - 16\]",
    r"code: .*only if it is in the last block of its row",
)
def race_on_the_last_tile(case, _):
    """Let some threads of the last block read the codes of the block before it."""
    code, side = case.arrays["code"], case.parameters["tile"][1]
    row, column = places(code)
    last = (code.shape[1] - 1) // side * side
    if last == 0:
        return {}
    late = np.random.default_rng(7).random(code.shape) < 0.5
    stale = code[row, np.maximum(column - side, 0)]
    return {"code": np.where((column >= last) & late, stale, code)}


@fault("quantize", r"amax: .*the place of the largest magnitude in the block, row by row, >= 64")
def amax_of_the_first_64_of_each_block(case, _):
    if case.parameters["block"] != "tensor":
        return {}
    magnitude = np.abs(numbers(case)).ravel()[:64]
    magnitude = magnitude[np.isfinite(magnitude)]
    amax = np.float32(magnitude.max() if magnitude.size else 0)
    return {"amax": np.full(case.arrays["amax"].shape, amax).view(np.uint32)}


@fault("encode", r"code: each entry is 0x0, in all", r"only if index mod 16 is 15: ")
def one_row_in_16_not_written(case, _):
    code = case.arrays["code"]
    return {"code": with_entries(code, np.arange(len(code)) % 16 == 15, 0)}


@fault("mx", r"code: .*only if column >= 32: ")
def second_half_of_wide_rows_wrong(case, _):
    code = case.arrays["code"]
    return {"code": code ^ (places(code)[1] >= 32).astype(code.dtype)}


@fault("affine_steps", r"code: .*only if x is negative")
def negative_numbers_wrong(case, _):
    code = case.arrays["code"]
    return {"code": code ^ (numbers(case) < 0) * (code % 5 + 1)}


@fault("encode", r"code: .*only if x is infinite and x is negative: ")
def negative_infinity_lost(case, _):
    x = numbers(case)
    return {"code": with_entries(case.arrays["code"], x == -np.inf, 1)}


@fault("quantize_steps", r"code: .*only if x is subnormal: ")
def subnormal_inputs_wrong(case, _):
    x = case.arrays["x"].view(np.float32)
    tiny = (x != 0) & (np.abs(x) < np.finfo(np.float32).tiny)
    return {"code": case.arrays["code"] ^ tiny.astype(np.uint8)}


@fault(
    "nvfp4_te_row", r"block_scale: .*only if the block has its largest magnitude more than once: "
)
def ties_of_the_largest_wrong(case, _):
    magnitude = np.abs(numbers(case))
    scale = case.arrays["block_scale"].copy()
    for row, column in np.ndindex(scale.shape):
        block = magnitude[row, column * 16 : column * 16 + 16]
        block = block[np.isfinite(block)]
        if block.size and (block == block.max()).sum() > 1:
            scale[row, column] ^= 1
    return {"block_scale": scale}


@fault("nvfp4_te", r"y: .*only if the expected block_scale is 0x0: ")
def blocks_with_scale_code_0_not_written(case, _):
    scale, (rows, columns) = case.arrays["block_scale"], case.parameters["tile"]
    y = case.arrays["y"]
    wide = np.repeat(np.repeat(scale, rows, axis=0), columns, axis=1)[: len(y), : y.shape[1]]
    return {"y": with_entries(y, wide == 0, 0x3F800000)}


@fault("mx", r"scale: .*only if the block has a NaN: ")
def nan_of_a_block_ignored(case, _):
    x, side = numbers(case), case.parameters["block"]
    scale = case.arrays["scale"].copy()
    for row, column in np.ndindex(scale.shape):
        if np.isnan(x[row, column * side : column * side + side]).any():
            scale[row, column] = 127
    return {"scale": scale}


@fault("mx_blocks", r"code: .*only if x is negative zero")
def negative_zero_wrong(case, _):
    code = case.arrays["code"]
    if formats[case.parameters["format"]].sign != "sign-magnitude":
        return {}
    return {"code": with_entries(code, case.arrays["x"] == 0x80000000, 3)}


@fault("quantize", r"code: .*only if format is e5m2: ")
def one_format_off_by_one(case, _):
    code = case.arrays["code"]
    return {"code": code ^ np.uint8(case.parameters["format"] == "e5m2")}
