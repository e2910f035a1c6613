"""The y of units before any rounding to bfloat16, part by part.

A part has room for its own y alone: a tensor with a y of 32 bits may exceed the memory.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.engine.blocks import Part, Place, words_of
from mor_ref.engine.decoding import layout_of_elements
from mor_ref.engine.dequantization import dequantize_row
from mor_ref.engine.encoding import encoded
from mor_ref.engine.formats import BINARY32, target_for
from mor_ref.engine.intrinsics import use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import TileScales, over_units, units_in

_U = np.uint32
_BF16 = formats["bf16"]
_SHIFT = _U(16)  # from bfloat16 to binary32

Fill = Callable[[Part, Bits], None]  # writes y, as binary32 bits, into the room of a part


class WayToY(NamedTuple):
    """The way from numbers to y: maybe a rounding, then a shift to binary32 bits."""

    target: Any
    shift: np.uint32


@step
def code_of(x, target):
    """Return a number as it is, or encoded, if there is a target."""
    return _U(x) if target is None else _U(encoded(_U(x), target, _U))


@step
def take_row(x, encode, decode, way, out):
    """ERR-008: a number itself, or rounded to bfloat16, as binary32 bits."""
    use_full_vectors()
    for i in range(x.size):
        out[i] = _U(code_of(x[i], way.target) << way.shift)
    return 0


_dequantize_rows = over_units(dequantize_row)


@kernel
def restore_part(codes, place, y, room, part, bounds, units, layout):
    """Write y of the units of a part that took a rung, from their codes."""
    _dequantize_rows(codes, place, y, room, part, bounds, units, layout)


_take_rows = over_units(take_row)


@kernel
def take_part(x, place, y, room, part, bounds, units, way):
    """Write y of the units of a part that took a rung, from numbers."""
    _take_rows(x, place, y, room, part, bounds, units, way)


def _room_of(part: Part) -> Place:
    """Return where the numbers of a part are in its room."""
    return Place(part.top, part.left, part.right - part.left)


def from_codes(
    codes: Bits,
    fmt: ElementFormat,
    scales: TileScales,
    units: Partition,
    choice: NDArray[np.uint8],
    rung: int,
) -> Fill:
    """Return the way to y of the units that took a rung, from codes (ERR-008)."""
    layout, place = layout_of_elements(fmt), Place(0, 0, units.columns)

    def fill(part: Part, y: Bits) -> None:
        taken, bounds = units_in(part, units, choice, rung, scales)
        restore_part(codes, place, y, _room_of(part), part, bounds, taken, layout)

    return fill


def from_numbers(
    numbers: Numbers, units: Partition, choice: NDArray[np.uint8], rung: int, *, rounds: bool
) -> Fill:
    """Return the way to y of the units that took a rung, from numbers: rounded to bfloat16, or not.

    Numbers that are not rounded are binary32.
    """
    special, needs_rounding = SpecialCases(overflow="ieee"), rounds and not numbers.is_bf16
    target = target_for(_BF16, "rne", special, BINARY32) if needs_rounding else None
    way = WayToY(target, _SHIFT if rounds else _U(0))

    def fill(part: Part, y: Bits) -> None:
        taken, bounds = units_in(part, units, choice, rung)
        words = words_of(numbers, units.columns, part)
        take_part(*words, y, _room_of(part), part, bounds, taken, way)

    return fill


def from_units(
    codes: NDArray[np.uint8], units: Partition, choice: NDArray[np.uint8], rung: int
) -> Fill:
    """Return the way to the codes of the units that took a rung, into the room of a part."""
    place, way = Place(0, 0, units.columns), WayToY(None, _U(0))

    def fill(part: Part, out: Bits) -> None:
        taken, bounds = units_in(part, units, choice, rung)
        take_part(codes, place, out, _room_of(part), part, bounds, taken, way)

    return fill
