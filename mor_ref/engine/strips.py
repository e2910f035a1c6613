"""Strips of rows: for each column of a strip, the scales and sums of its tile or block.

A loop over the columns of one row fills the processor's vectors whether a tile is one column wide
or as wide as the tensor: the scale of each column is written out first.
"""

from typing import NamedTuple

import numpy as np
from numba.core import types
from numba.extending import overload
from numpy.typing import NDArray

from mor_ref.definitions.blocks import Partition
from mor_ref.engine.blocks import Part, Sides, row_bounds
from mor_ref.engine.intrinsics import (
    LANES,
    PREFETCHED,
    fill_lanes,
    float_of,
    prefetch_block,
)
from mor_ref.engine.kernel import step

_F = np.float32
STRIP = 2048  # columns: their sums stay in the first level cache


class TileScales(NamedTuple):
    """The factors of the numbers of a tile, and the factors of the values of their codes.

    As binary32 bits. Where one is None, the other divides in its place.
    """

    tile: Sides
    encode: NDArray[np.uint32] | None
    decode: NDArray[np.uint32] | None

    def room_for_strip(self) -> "Strip":
        """Return room for the scales of each column of a strip."""
        encode = None if self.encode is None else np.empty(STRIP, _F)
        return Strip(encode, None if self.decode is None else np.empty(STRIP, _F))


class Strip(NamedTuple):
    """The scales of the columns of a strip, as numbers."""

    encode: NDArray[np.float32] | None
    decode: NDArray[np.float32] | None


def room_for_strip(scales, width):
    """Return room for the scale of each column of a strip in a kernel; None if there are none."""
    return None if scales is None else np.empty(width, _F)


@overload(room_for_strip)
def _room_for_strip(scales, width):
    """Decide by the type: a result that may be None has no vectors."""
    if isinstance(scales, types.NoneType):
        return lambda scales, width: None
    return lambda scales, width: np.empty(width, _F)


class Units(NamedTuple):
    """The units that took a rung, and the scales of their numbers with room for those of a strip.

    The scales of a strip begin where a unit does: as a slice they would have a type that may be
    None, and no loop over it fills vectors.
    """

    unit: Sides
    choice: NDArray[np.uint8]
    rung: int
    scales: TileScales
    strip: Strip


def units_in(
    part: Part,
    partition: Partition,
    choice: NDArray[np.uint8],
    rung: int,
    scales: TileScales | None = None,
) -> tuple[Units, NDArray[np.int64]]:
    """Return the units that took a rung, and the rows where a part is cut.

    No piece of the part spans two units or tiles.
    """
    unit = Sides(*partition.block)
    bounds = row_bounds(part, unit.rows)
    if scales is None:
        scales = TileScales(unit, None, None)
    elif scales.tile.rows != unit.rows:
        bounds = np.union1d(bounds, row_bounds(part, scales.tile.rows))
    return Units(unit, choice, rung, scales, scales.room_for_strip()), bounds


def over_units(row_step):
    """Return a step that calls another with rows of a strip, along units that took a rung.

    That step returns a number, and all of them are added up. It writes into `out`, if there is one.
    If it were an argument of the loop, Numba would not keep the kernels on disk.
    """

    @step
    def loop(x, place, out, room, part, bounds, units, rule):
        unit, scales, strip = units.unit, units.scales, units.strip
        total = 0
        for left in range(part.left, part.right, STRIP):
            right = min(left + STRIP, part.right)
            for piece in range(bounds.size - 1):
                top = bounds[piece]
                column, end = left // unit.columns, (right - 1) // unit.columns + 1
                while column < end:
                    behind = end_of_run(units, top // unit.rows, column, end)
                    if behind > column:
                        first = max(column * unit.columns, left)
                        last = min(behind * unit.columns, right)
                        spread(scales.encode, top, first, last, scales.tile, strip.encode)
                        spread(scales.decode, top, first, last, scales.tile, strip.decode)
                        for row in range(top, bounds[piece + 1]):
                            at, to = start_of(place, row), start_of(room, row)
                            total += row_step(
                                x[at + first : at + last],
                                strip.encode,
                                strip.decode,
                                rule,
                                out[to + first : to + last],
                            )
                    column = behind + 1  # the unit behind took another rung
        return total

    return loop


@step
def end_of_run(units, row, column, end):
    """Return the first column, from `column` on, whose unit did not take the rung."""
    while column < end and units.choice[row, column] == units.rung:
        column += 1
    return column


@step
def start_of(place, row):
    """Return the index of column 0 of the tensor in a row of an array."""
    return (row - place.top) * place.stride - place.left


@step
def strip_width(part):
    """Return how many columns the strips of a part have, at most: small arrays are made sooner."""
    return min(STRIP, part.right - part.left)


@step
def segment(column, block, left, right):
    """Return the first and the last column of a block in the strip from left to right."""
    first = max(column * block.columns, left) - left
    return first, min((column + 1) * block.columns, right) - left


@step
def whole_segments(block, left, right):
    """Return the number of whole blocks at the beginning of a strip, if vectors fill a block."""
    is_filled = block.columns % LANES == 0 and left % block.columns == 0
    return (right - left) // block.columns if is_filled else 0


@step
def strip_of(out, at, width):
    """Return a strip of a row, if there is room for one at all."""
    return None if out is None else out[at : at + width]


@step
def prefetch_row(x, start, width):
    """Ask for a strip of a row, which may lie beyond the end."""
    for i in range(start, start + width, PREFETCHED):
        prefetch_block(x, i)


@step
def entry(scale, i):
    """Return an entry of an array that may be None: Numba types branches that are never taken."""
    if scale is None:
        factor = _F(1)
    else:
        factor = scale[i]
    return factor


@step
def spread(scales, row, left, right, tile, out):
    """Write the scale of each column of a strip of that row, if there are scales."""
    if scales is not None:
        write_segments(scales[row // tile.rows], left, right, tile, out)


@step
def write_segments(scales, left, right, tile, out):
    """Write the scale of each column of a strip, by vectors in tiles that are as wide."""
    whole_tiles, vectors = whole_segments(tile, left, right), tile.columns // LANES
    first_tile = left // tile.columns
    for k in range(whole_tiles):
        scale = float_of(scales[first_tile + k])
        for vector in range(k * vectors, (k + 1) * vectors):
            fill_lanes(out, vector * LANES, scale)
    for column in range(first_tile + whole_tiles, (right - 1) // tile.columns + 1):
        first, last = segment(column, tile, left, right)
        out[first:last] = float_of(scales[column])
