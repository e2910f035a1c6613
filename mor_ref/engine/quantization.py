"""The chapter on quantization: one loop over rows for blocks of every shape.

The sums of a block are gathered for each column first.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, code_dtype
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.engine.blocks import Gathered, Part, Sides, for_each_part, row_bounds, words_of
from mor_ref.engine.dequantization import restored
from mor_ref.engine.errors import add_strip, error_of, error_of_any
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.nearest import elements_of, nearest, one_sided, with_sign
from mor_ref.engine.strips import STRIP, TileScales, entry, prefetch_row, spread, strip_of
from mor_ref.engine.table_format import code_in_table
from mor_ref.engine.widening import widen

_U = np.uint32
_F = np.float32
_MAGNITUDE = _U(0x7FFFFFFF)


# ---------------------------------------------------------------------- scalar steps


@step
def quantized(bits, scaled, grid):
    """QNT-001: the code of a number, given its scaled magnitude, and the magnitude of the code."""
    scaled = one_sided(scaled, bits, grid.below_zero)
    code, value = nearest(scaled, grid)
    return with_sign(code, scaled, bits, grid), value


@step
def scaled_by(x, encode_scale, decode_scale, i):
    """QNT-001, the first half: by the scale of a column, dividing where none multiplies."""
    if encode_scale is None:
        scaled = _F(x / entry(decode_scale, i))
    else:
        scaled = _F(x * entry(encode_scale, i))
    return scaled


@step
def as_bf16(magnitude):
    """QNT-003: the bfloat16 code of a positive number that is not NaN, as binary32 bits."""
    is_odd = _U(_U(magnitude >> _U(16)) & _U(1))
    return _U(_U(_U(magnitude + _U(0x7FFF)) + is_odd) >> _U(16))


@step
def sign_of_bf16(bits):
    """Return the sign bit at its place in a bfloat16."""
    return _U(_U(bits >> _U(16)) & _U(0x8000))


@step
def quantize_row(x, strip, grid, codes, out, sums, counts):
    """Quantize one row of a strip; there is a scale for each column.

    Where there is no scale to multiply by, the other divides.
    """
    use_full_vectors()
    for i in range(x.size):
        bits = widen(x[i], _U)
        scaled = scaled_by(float_of(_U(bits & _MAGNITUDE)), strip.encode, strip.decode, i)
        code, value = quantized(bits, scaled, grid)
        codes[i] = code
        y = restored(value, strip.encode, strip.decode, i)
        u, count = error_of(bits, y)
        sums[i] = _U(sums[i] + u)
        counts[i] = _U(counts[i] + count)
        if out is not None:
            sign = sign_of_bf16(bits) if code != _U(0) else _U(0)  # the code 0 is +0
            out[i] = _U(as_bf16(bits_of(y)) | sign)


@step
def quantize_row_in_table(x, strip, table, codes, out, sums, counts):
    """BLF-009: quantize one row of a strip, where a value need not have the sign of its number."""
    use_full_vectors()
    for i in range(x.size):
        bits = widen(x[i], _U)
        scaled = scaled_by(float_of(bits), strip.encode, strip.decode, i)
        code, value = code_in_table(scaled, table)
        codes[i] = code
        y = bits_of(restored(value, strip.encode, strip.decode, i))
        u, count = error_of_any(bits, y)
        sums[i] = _U(sums[i] + u)
        counts[i] = _U(counts[i] + count)
        if out is not None:
            out[i] = _U(as_bf16(_U(y & _MAGNITUDE)) | sign_of_bf16(y))


@step
def quantize_elements(x, strip, grid, limits, smallest_field, codes, out, sums, counts):
    """Quantize one row of a strip: there are limits in a table alone, and a field elsewhere."""
    if limits is not None:
        quantize_row_in_table(x, strip, grid, codes, out, sums, counts)
    if smallest_field is not None:
        quantize_row(x, strip, grid, codes, out, sums, counts)


# ---------------------------------------------------------------------- loops


@kernel
def quantize_part(
    x,
    place,
    part,
    tile_bounds,
    block_bounds,
    columns,
    block,
    scales,
    strip,
    grid,
    codes,
    out,
    errors,
):
    """Write the codes of a part, their values in bfloat16, and the error sums of its blocks.

    Scales are of tiles, error sums of blocks; `codes` and `out` are the whole tensor's.
    """
    use_full_vectors()
    sums, counts = np.empty(STRIP, _U), np.empty(STRIP, _U)
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        width = right - left
        piece = 0
        for k in range(block_bounds.size - 1):
            sums[:width] = 0
            counts[:width] = 0
            for row in range(block_bounds[k], block_bounds[k + 1]):
                if row == tile_bounds[piece]:
                    piece += 1
                    spread(scales.encode, row, left, right, scales.tile, strip.encode)
                    spread(scales.decode, row, left, right, scales.tile, strip.decode)
                start = (row - place.top) * place.stride + left - place.left
                at = row * columns + left
                prefetch_row(x, start + place.stride, width)
                numbers, codes_of_row = x[start : start + width], codes[at : at + width]
                room = strip_of(out, at, width)
                way = grid.limits, grid.smallest_field
                quantize_elements(numbers, strip, grid, *way, codes_of_row, room, sums, counts)
            block_errors = errors[block_bounds[k] // block.rows - part.top // block.rows]
            add_strip(sums, counts, block_errors, part, left, right, block)


# ---------------------------------------------------------------------- whole tensors


def quantize(
    numbers: Numbers,
    fmt: ElementFormat,
    scales: TileScales,
    partition: Partition,
    out: Bits | None,
    threads: int | None,
    *,
    room: Bits | None = None,
    drops_sign_of_zero: bool = False,
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the codes and the error sums of each block; `out` takes bfloat16 codes.

    The codes go to `room`, if it is given.
    """
    columns = partition.columns
    codes = np.empty(numbers.bits.size, code_dtype(fmt)) if room is None else room
    errors = Gathered(partition, np.uint64, 0, np.add, 3)
    grid = elements_of(fmt, drops_sign_of_zero=drops_sign_of_zero)
    block = Sides(*partition.block)

    def quantize_one(part: Part) -> None:
        words = words_of(numbers, columns, part)
        errors_of_part = errors.room_for(part)
        quantize_part(
            words.bits,
            words.place,
            part,
            row_bounds(part, scales.tile.rows),
            row_bounds(part, block.rows),
            columns,
            block,
            scales,
            scales.room_for_strip(),
            grid,
            codes,
            out,
            errors_of_part,
        )
        errors.add(part, errors_of_part)

    for_each_part(quantize_one, partition.rows, columns, threads)
    return codes, errors.blocks
