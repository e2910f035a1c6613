"""The golden rows of dot products for kernels of one matrix instruction, without scales.

A dot product lies on the diagonal of a tile: row j of A meets column j of B. A longer row takes one
instruction after the other, with the sums of the one before.
"""

import numpy as np
from gpu.tiles import bits_of_sums
from kernels import suites

COLUMNS = 8
_SUMS = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


def cases_of(one):
    """Return the golden cases of the dot products of an instruction."""
    if one.sums == "s32":
        return suites.cases("dot_integers")
    wanted = {"dot_profile": one.profile, "format_a": one.formats[0], "format_b": one.formats[1]}
    return [
        case
        for suite in ("dot", "dot_chunks")
        for case in suites.cases(suite)
        if wanted.items() <= case.parameters.items()
    ]


def in_tiles(rows, one, side):
    """Return rows of codes as the first rows of tiles: (instructions, tiles, side, codes)."""
    codes = one.row_bytes // rows.itemsize
    steps, tiles = -(-rows.shape[1] // codes), -(-len(rows) // COLUMNS)
    whole = np.zeros((tiles * COLUMNS, steps * codes), rows.dtype)
    whole[: len(rows), : rows.shape[1]] = rows
    found = np.zeros((steps, tiles, side, codes), rows.dtype)
    found[:, :, :COLUMNS] = whole.reshape(tiles, COLUMNS, steps, codes).transpose(2, 0, 1, 3)
    return found


def sums_and_right(multiply, one, case):
    """Return the sums of a golden case in bits, and those of the vectors.

    `multiply` takes the tiles of both operands and of sums, and returns words of sums.
    """
    given, to = case.arrays, _SUMS[one.sums]
    a, b = in_tiles(given["a"], one, one.rows), in_tiles(given["b"], one, COLUMNS)
    sums = np.zeros((a.shape[1], one.rows, COLUMNS), to)
    if "c" in given:
        tile, row = np.divmod(np.arange(len(given["c"])), COLUMNS)
        with np.errstate(invalid="ignore"):
            sums[tile, row, row] = given["c"].view(np.float32)
    for x, y in zip(a, b, strict=True):
        sums = multiply(x, y, sums).view(to).reshape(sums.shape)
    words = bits_of_sums(sums.view(np.uint32).ravel(), one).reshape(sums.shape)
    found = np.diagonal(words[:, :COLUMNS], axis1=1, axis2=2).ravel()
    right = given["int32_sum" if one.sums == "s32" else "result"]
    return found[: len(right)], right
