"""The y of units before any rounding to bfloat16, part by part (a part of the chapter on errors).

A part has room for its own y alone: a tensor with a y of 32 bits may exceed the memory.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.engine.blocks import Part, Sides, row_bounds, words_of
from mor_ref.engine.decoding import layout_of
from mor_ref.engine.dequantization import dequantize_row
from mor_ref.engine.encoding import encoded
from mor_ref.engine.formats import BINARY32, target_for
from mor_ref.engine.intrinsics import use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP, TileScales, spread

_U = np.uint32
_BF16 = formats["bf16"]
_SHIFT = _U(16)  # from bfloat16 to binary32

Fill = Callable[[Part, Bits], None]  # writes y, as binary32 bits, into the room of a part


@step
def take_row(x, target, shift, out):
    """ERR-008: a number itself, or rounded to bfloat16, as binary32 bits."""
    use_full_vectors()
    for i in range(x.size):
        code = _U(x[i]) if target is None else _U(encoded(_U(x[i]), target, _U))
        out[i] = _U(code << shift)


@kernel
def restore_part(codes, part, bounds, columns, unit, choice, rung, scales, strip, layout, y):
    """Write y of the units of a part that took a rung, from their codes."""
    width = part.right - part.left
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        for piece in range(bounds.size - 1):
            top = bounds[piece]
            for column in range(left // unit.columns, (right - 1) // unit.columns + 1):
                if choice[top // unit.rows, column] == rung:
                    first = max(column * unit.columns, left)
                    last = min((column + 1) * unit.columns, right)
                    spread(scales.encode, top, first, last, scales.tile, strip.encode)
                    spread(scales.decode, top, first, last, scales.tile, strip.decode)
                    for row in range(top, bounds[piece + 1]):
                        at = row * columns
                        room = (row - part.top) * width - part.left
                        dequantize_row(
                            codes[at + first : at + last],
                            strip.encode,
                            strip.decode,
                            layout,
                            y[room + first : room + last],
                        )


@kernel
def take_part(x, place, part, bounds, unit, choice, rung, target, shift, y):
    """Write y of the units of a part that took a rung, from numbers."""
    width = part.right - part.left
    for piece in range(bounds.size - 1):
        top = bounds[piece]
        for column in range(part.left // unit.columns, (part.right - 1) // unit.columns + 1):
            if choice[top // unit.rows, column] == rung:
                first = max(column * unit.columns, part.left)
                last = min((column + 1) * unit.columns, part.right)
                for row in range(top, bounds[piece + 1]):
                    at = (row - place.top) * place.stride - place.left
                    room = (row - part.top) * width - part.left
                    numbers = x[at + first : at + last]
                    take_row(numbers, target, shift, y[room + first : room + last])


def from_codes(
    codes: NDArray[np.uint8],
    fmt: Format,
    scales: TileScales,
    units: Partition,
    choice: NDArray[np.uint8],
    rung: int,
) -> Fill:
    """Return the way to y of the units that took a rung, from codes (ERR-008)."""
    unit, layout = Sides(*units.block), layout_of(fmt)

    def fill(part: Part, y: Bits) -> None:
        bounds = np.union1d(row_bounds(part, unit.rows), row_bounds(part, scales.tile.rows))
        strip, columns = scales.room_for_strip(), units.columns
        restore_part(codes, part, bounds, columns, unit, choice, rung, scales, strip, layout, y)

    return fill


def from_numbers(
    numbers: Numbers, units: Partition, choice: NDArray[np.uint8], rung: int, *, rounds: bool
) -> Fill:
    """Return the way to y of the units that took a rung, from numbers: rounded to bfloat16, or not.

    Numbers that are not rounded are binary32.
    """
    unit, special = Sides(*units.block), SpecialCases(overflow="ieee")
    needs_rounding = rounds and not numbers.is_bf16
    target = target_for(_BF16, "rne", special, BINARY32) if needs_rounding else None
    shift = _SHIFT if rounds else _U(0)

    def fill(part: Part, y: Bits) -> None:
        words = words_of(numbers, units.columns, part)
        bounds = row_bounds(part, unit.rows)
        take_part(*words, part, bounds, unit, choice, rung, target, shift, y)

    return fill
