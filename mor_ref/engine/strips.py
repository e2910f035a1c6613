"""Strips of rows: for each column of a strip, the scales and sums of its tile or block.

A loop over the columns of one row fills the processor's vectors whether a tile is one column wide
or as wide as the tensor: the scale of each column is written out first.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.engine.blocks import Sides
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
        return Strip(*(None if s is None else np.empty(STRIP, _F) for s in self[1:]))


class Strip(NamedTuple):
    """The scales of the columns of a strip, as numbers."""

    encode: NDArray[np.float32] | None
    decode: NDArray[np.float32] | None


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
        found = _F(1)
    else:
        found = scale[i]
    return found


@step
def spread(scales, row, left, right, tile, found):
    """Write the scale of each column of a strip of that row, if there are scales."""
    if scales is not None:
        write_segments(scales[row // tile.rows], left, right, tile, found)


@step
def write_segments(scales, left, right, tile, found):
    """Write the scale of each column of a strip, by vectors in tiles that are as wide."""
    here, vectors = whole_segments(tile, left, right), tile.columns // LANES
    next_one = left // tile.columns
    for k in range(here):
        scale = float_of(scales[next_one + k])
        for vector in range(k * vectors, (k + 1) * vectors):
            fill_lanes(found, vector * LANES, scale)
    for column in range(next_one + here, (right - 1) // tile.columns + 1):
        first, last = segment(column, tile, left, right)
        found[first:last] = float_of(scales[column])
