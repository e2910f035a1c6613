"""The extremes of blocks (SCL-001): rows are gathered in columns first, then columns in blocks."""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from mor_ref.engine.intrinsics import LANES, largest_of_lanes, use_full_vectors
from mor_ref.engine.kernel import integer_kernel, step
from mor_ref.engine.strips import STRIP, prefetch_row, segment, strip_width, whole_segments
from mor_ref.engine.widening import widen

_U = np.uint32


class Pattern(NamedTuple):
    """Masks in the width of the numbers, and the first magnitude that does not count."""

    magnitude: Any
    end: Any
    all: Any


Counted = Literal["finite", "not nan", "all"]


@lru_cache
def pattern_of(dtype: np.dtype[Any], counted: Counted) -> Pattern:
    """Return the masks for words of a width, and for the numbers that count."""
    shift = 32 - 8 * dtype.itemsize
    magnitude, infinity, all_ones = (b >> shift for b in (0x7FFFFFFF, 0x7F800000, 0xFFFFFFFF))
    end = {"finite": infinity, "not nan": infinity + 1, "all": magnitude + 1}[counted]
    return Pattern(*(dtype.type(bits) for bits in (magnitude, end, all_ones)))


@step
def extremes_of_row(x, pattern, high, low):
    """SCL-001: gather the extremes of each column; skip the numbers that do not count.

    Without `low`, gather the largest alone.
    """
    use_full_vectors()
    word = x.dtype.type
    for i in range(x.size):
        magnitude = word(x[i] & pattern.magnitude)
        counts = magnitude < pattern.end
        high[i] = max(high[i], magnitude if counts else word(0))
        if low is not None:
            low[i] = min(low[i], word(magnitude - word(1)) if counts else pattern.all)


@integer_kernel
def find_extremes(x, place, part, bounds, block, pattern, amax, minus_amin):
    """Find the largest magnitude of each block that a part touches, and minus the smallest.

    Both as the bits of binary32, and the second as a word that wraps: so the smallest has the
    largest, and 0 stands for none. Without `minus_amin`, find the largest alone.
    """
    use_full_vectors()
    widest = strip_width(part)
    high = np.empty(widest, x.dtype)
    low = None if minus_amin is None else np.empty(widest, x.dtype)
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        for piece in range(bounds.size - 1):
            high[:] = 0
            if low is not None:
                low[:] = pattern.all
            for row in range(bounds[piece], bounds[piece + 1]):
                start = (row - place.top) * place.stride + left - place.left
                prefetch_row(x, start + place.stride, right - left)
                extremes_of_row(x[start : start + right - left], pattern, high, low)
            i = bounds[piece] // block.rows - part.top // block.rows
            begin = part.left // block.columns
            largest_of_segments(high, block, left, right, begin, amax[i])
            if low is not None:
                smallest_of_segments(low, block, left, right, begin, minus_amin[i])


@integer_kernel
def largest_of_groups(amaxes, rows, columns, out):
    """Find the largest amax of each group, which has so many rows and columns of blocks."""
    for i in range(amaxes.shape[0]):
        blocks, groups = amaxes[i], out[i // rows]
        for k in range(groups.size):
            group = blocks[k * columns : min((k + 1) * columns, blocks.size)]
            groups[k] = max(groups[k], largest_of(group))


@step
def largest_of_segments(words, block, left, right, begin, block_largest):
    """Take the largest word of each block in the strip from left to right."""
    whole_blocks, vectors = whole_segments(block, left, right), block.columns // LANES
    first_column = left // block.columns
    for k in range(whole_blocks):
        largest = block_largest[first_column - begin + k]
        for vector in range(k * vectors, (k + 1) * vectors):
            largest = max(largest, widen(largest_of_lanes(words, vector * LANES), _U))
        block_largest[first_column - begin + k] = largest
    for column in range(first_column + whole_blocks, (right - 1) // block.columns + 1):
        first, last = segment(column, block, left, right)
        largest = widen(largest_of(words[first:last]), _U)
        block_largest[column - begin] = max(block_largest[column - begin], largest)


@step
def smallest_of_segments(words, block, left, right, begin, minus_smallest):
    """Take the smallest magnitude of each block; words are less than it by one."""
    word = words.dtype.type
    for column in range(left // block.columns, (right - 1) // block.columns + 1):
        first, last = segment(column, block, left, right)
        smallest = word(smallest_of(words[first:last]) + word(1))
        minus = _U(_U(0) - widen(smallest, _U))
        minus_smallest[column - begin] = max(minus_smallest[column - begin], minus)


@step
def largest_of(words):
    """Return the largest of some words."""
    largest = words[0]
    for k in range(words.size):
        largest = max(largest, words[k])
    return largest


@step
def smallest_of(words):
    """Return the smallest of some words."""
    smallest = words[0]
    for k in range(words.size):
        smallest = min(smallest, words[k])
    return smallest
