"""The chapter on quantization: one loop over rows for blocks of every shape.

The sums of a block are gathered for each column first.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, RandomWords, code_dtype
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.encoding import SpecialCases, rounding_for
from mor_ref.engine.blocks import Gathered, Part, Sides, for_each_part, row_bounds, words_of
from mor_ref.engine.decoding import decoded, layout_of
from mor_ref.engine.dequantization import restored
from mor_ref.engine.encoding import encoded_at_random
from mor_ref.engine.errors import add_strip, error_of, error_of_any
from mor_ref.engine.formats import BINARY32, target_for
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.nearest import elements_of, grid_of, nearest, one_sided, with_sign
from mor_ref.engine.strips import (
    STRIP,
    Strip,
    TileScales,
    entry,
    prefetch_row,
    room_for_strip,
    spread,
    strip_of,
    strip_width,
)
from mor_ref.engine.table_format import code_in_table
from mor_ref.engine.widening import widen

_U = np.uint32
_F = np.float32
_MAGNITUDE, _SIGN = _U(0x7FFFFFFF), _U(0x80000000)


# ---------------------------------------------------------------------- scalar steps


@step
def quantized(bits, scaled, grid):
    """QNT-001: the code of a number, given its scaled magnitude, and the value of the code.

    The value has the sign of the code times that of the number. A factor that is 0 or not finite
    makes a NaN of a finite number; the code of NaN has no sign, and need not be a NaN.
    """
    scaled = one_sided(scaled, bits, grid.below_zero)
    code, value = nearest(scaled, grid)
    nan = float_of(_U(bits_of(grid.nan) | _U(bits & _SIGN)))
    return with_sign(code, scaled, bits, grid), value if scaled == scaled else nan


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
            signed = _U(bits ^ bits_of(y)) if code != _U(0) else _U(0)  # the code 0 is +0
            out[i] = _U(as_bf16(_U(bits_of(y) & _MAGNITUDE)) | sign_of_bf16(signed))


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


class AtRandom(NamedTuple):
    """What stochastic rounding takes (QNT-005): the random bits, and the rows of a format."""

    n_random_bits: np.uint32
    target: Any
    layout: Any
    below_zero: np.float32 | None
    drops_sign_of_zero: bool


@step
def quantize_row_at_random(x, words, strip, rule, codes, sums, counts):
    """QNT-005: quantize one row of a strip, with a random word for each number."""
    use_full_vectors()
    target = rule.target
    for i in range(x.size):
        bits = widen(x[i], _U)
        magnitude = scaled_by(float_of(_U(bits & _MAGNITUDE)), strip.encode, strip.decode, i)
        scaled = one_sided(magnitude, bits, rule.below_zero)
        sign = _U(bits & _SIGN) if rule.below_zero is None else _U(0)
        word = _U(words[i])
        signed = _U(bits_of(scaled) | sign)
        code = encoded_at_random(signed, word, rule.n_random_bits, target, _U)
        if target.twos_complement_count != _U(0) and _U(code & target.sign_bit) != _U(0):
            code = _U(target.twos_complement_count - _U(code ^ target.sign_bit))
        code = _U(0) if rule.drops_sign_of_zero and scaled == _F(0) else code
        codes[i] = code
        y = restored(float_of(decoded(code, rule.layout)), strip.encode, strip.decode, i)
        u, count = error_of_any(bits, bits_of(y))
        sums[i] = _U(sums[i] + u)
        counts[i] = _U(counts[i] + count)


# ---------------------------------------------------------------------- loops


def by_rows(quantize_strip):
    """Return a step that calls another with each row of the strips of a part."""

    @step
    def loop(x, place, part, tile_bounds, block_bounds, columns, block, scales, rule, *arrays):
        codes, more, errors = arrays
        widest = strip_width(part)
        sums, counts = np.empty(widest, _U), np.empty(widest, _U)
        strip = Strip(room_for_strip(scales.encode, widest), room_for_strip(scales.decode, widest))
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
                    quantize_strip(numbers, more, at, strip, rule, codes_of_row, sums, counts)
                block_errors = errors[block_bounds[k] // block.rows - part.top // block.rows]
                add_strip(sums, counts, block_errors, part, left, right, block)

    return loop


@step
def _nearest_strip(x, out, at, strip, grid, codes, sums, counts):
    way, room = (grid.limits, grid.smallest_field), strip_of(out, at, x.size)
    quantize_elements(x, strip, grid, *way, codes, room, sums, counts)


@step
def _random_strip(x, words, at, strip, rule, codes, sums, counts):
    quantize_row_at_random(x, words[at : at + x.size], strip, rule, codes, sums, counts)


_to_nearest, _at_random = by_rows(_nearest_strip), by_rows(_random_strip)


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
    grid,
    codes,
    out,
    errors,
):
    """Write the codes of a part, their values in bfloat16, and the error sums of its blocks.

    Scales are of tiles, error sums of blocks; `codes` and `out` are the whole tensor's.
    """
    use_full_vectors()
    rows = tile_bounds, block_bounds, columns, block
    _to_nearest(x, place, part, *rows, scales, grid, codes, out, errors)


@kernel
def quantize_part_at_random(
    x,
    place,
    part,
    tile_bounds,
    block_bounds,
    columns,
    block,
    scales,
    rule,
    codes,
    words,
    errors,
):
    """Write the codes of a part by stochastic rounding, and the error sums of its blocks."""
    use_full_vectors()
    rows = tile_bounds, block_bounds, columns, block
    _at_random(x, place, part, *rows, scales, rule, codes, words, errors)


# ---------------------------------------------------------------------- whole tensors


@functools.lru_cache
def rule_at_random(elements: ElementRule, n_random_bits: int) -> AtRandom:
    """Return what stochastic rounding takes; refuse elements that do not admit it."""
    fmt = elements.format_at_random
    rounding_for(fmt, "sr", SpecialCases())
    target = target_for(fmt, "sr", SpecialCases(), BINARY32)
    below_zero = grid_of(fmt).below_zero
    return AtRandom(
        _U(n_random_bits), target, layout_of(fmt), below_zero, elements.drops_sign_of_zero
    )


def quantize(
    numbers: Numbers,
    elements: ElementRule,
    scales: TileScales,
    partition: Partition,
    out: Bits | None,
    threads: int | None,
    *,
    room: Bits | None = None,
    words: RandomWords | None = None,
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """Return the codes and the error sums of each block; `out` takes bfloat16 codes.

    The codes go to `room`, if it is given. With random words, they are rounded at random.
    """
    columns = partition.columns
    codes = np.empty(numbers.bits.size, code_dtype(elements.fmt)) if room is None else room
    errors = Gathered(partition, np.uint64, 0, np.add, 3)
    run: Any = quantize_part
    rule: Any = elements_of(elements)
    more = out
    if words is not None:
        run, more = quantize_part_at_random, words.words
        rule = rule_at_random(elements, words.n)
    block = Sides(*partition.block)

    def quantize_one(part: Part) -> None:
        x, place = words_of(numbers, columns, part)
        errors_of_part = errors.room_for(part)
        run(
            x,
            place,
            part,
            row_bounds(part, scales.tile.rows),
            row_bounds(part, block.rows),
            columns,
            block,
            scales,
            rule,
            codes,
            more,
            errors_of_part,
        )
        errors.add(part, errors_of_part)

    for_each_part(quantize_one, partition.rows, columns, threads)
    return codes, errors.blocks
