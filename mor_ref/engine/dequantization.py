"""From codes and scales back to numbers."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.engine.blocks import Part, for_each_part, row_bounds
from mor_ref.engine.decoding import decoded, layout_of_elements
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP, TileScales, entry, spread

_U = np.uint32
_F = np.float32
_NAN = _U(0x7FFFFFFF)


@step
def restored(value, encode_scale, decode_scale, i):
    """QNT-002 and NVF-010: the way back, dividing where no scale multiplies."""
    if decode_scale is None:
        y = _F(value / entry(encode_scale, i))
    else:
        y = _F(value * entry(decode_scale, i))
    return y


@step
def canonical(y):
    """Return the bits of a number; every NaN is the canonical one (ART-003)."""
    return bits_of(y) if y == y else _NAN


@step
def dequantize_row(codes, encode, decode, layout, out):
    """QNT-002 for one row of a strip: there is a scale for each column."""
    use_full_vectors()
    for i in range(codes.size):
        value = float_of(decoded(_U(codes[i]), layout))
        out[i] = canonical(restored(value, encode, decode, i))
    return 0


# ---------------------------------------------------------------------- loops


@kernel
def dequantize_part(codes, part, bounds, columns, scales, strip, layout, out):
    """Write the bits of y of a part."""
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        for piece in range(bounds.size - 1):
            top = bounds[piece]
            spread(scales.encode, top, left, right, scales.tile, strip.encode)
            spread(scales.decode, top, left, right, scales.tile, strip.decode)
            for row in range(top, bounds[piece + 1]):
                at, end = row * columns + left, row * columns + right
                dequantize_row(codes[at:end], strip.encode, strip.decode, layout, out[at:end])


def dequantize(
    codes: Bits,
    fmt: ElementFormat,
    scales: TileScales,
    sides: tuple[int, int],
    y: NDArray[np.uint32],
    threads: int | None = None,
) -> None:
    """Write the bits of y, for a tensor of `sides` rows and columns."""
    layout = layout_of_elements(fmt)

    def dequantize_one(part: Part) -> None:
        bounds = row_bounds(part, scales.tile.rows)
        dequantize_part(codes, part, bounds, sides[1], scales, scales.room_for_strip(), layout, y)

    for_each_part(dequantize_one, *sides, threads)
