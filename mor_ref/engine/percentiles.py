"""Percentiles of blocks (BLF-007): the magnitude of a rank, bit by bit from the highest."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.amaxes import Counted, pattern_of
from mor_ref.engine.blocks import Part, Sides, parts_of_blocks, words_of
from mor_ref.engine.intrinsics import use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.engine.scales import as_binary32, word_of


@step
def magnitudes_of_block(x, place, part, pattern, magnitudes):
    """Write the magnitudes that count, and return how many there are, and the largest."""
    word, count, largest = x.dtype.type, 0, x.dtype.type(0)
    for row in range(part.top, part.bottom):
        start = (row - place.top) * place.stride + part.left - place.left
        for i in range(start, start + part.right - part.left):
            magnitude = word(x[i] & pattern.magnitude)
            magnitudes[count] = magnitude
            count += magnitude < pattern.end
            largest = max(largest, magnitude if magnitude < pattern.end else word(0))
    return count, largest


@step
def count_below(magnitudes, limit):
    """Return how many magnitudes are below a limit."""
    use_full_vectors()
    count = np.uint32(0)
    for i in range(magnitudes.size):
        count += np.uint32(magnitudes[i] < limit)
    return count


@step
def magnitude_of_rank(magnitudes, rank, pattern):
    """Return the magnitude that fewer than `rank` are below, and no larger one."""
    word, magnitude = magnitudes.dtype.type, magnitudes.dtype.type(0)
    bit = word(pattern.magnitude ^ word(pattern.magnitude >> word(1)))  # the highest
    while bit != word(0):
        higher = word(magnitude | bit)
        if count_below(magnitudes, higher) < rank:
            magnitude = higher
        bit = word(bit >> word(1))
    return magnitude


@kernel
def find_percentiles(x, place, blocks, block, rows, columns, pattern, nan, shares, percentiles):
    """Find percentiles of some blocks; NaN wins, if it counts. A share is a / b of the numbers."""
    magnitudes = np.empty(block.rows * block.columns + 1, x.dtype)  # one that does not count
    for i in range(blocks.top, blocks.bottom):
        for j in range(blocks.left, blocks.right):
            top, left = i * block.rows, j * block.columns
            bottom, right = min(top + block.rows, rows), min(left + block.columns, columns)
            part = Part(top, bottom, left, right)
            count, largest = magnitudes_of_block(x, place, part, pattern, magnitudes)
            for n in range(len(shares)):
                a, b = shares[n]
                rank = (a * count + b - 1) // b
                percentile = x.dtype.type(0)
                if count:
                    percentile = magnitude_of_rank(magnitudes[:count], rank, pattern)
                percentiles[n, i, j] = largest if largest >= nan else percentile


def percentiles_of_blocks(
    numbers: Numbers,
    partition: Partition,
    percents: Sequence[Fraction],
    counted: Counted,
    threads: int | None,
) -> NDArray[np.uint32]:
    """Return percentiles of each block among the numbers that count, as bits."""
    dtype = word_of(numbers)
    pattern = pattern_of(dtype, counted)
    nan = dtype.type(int(pattern_of(dtype, "not nan").end))
    shares = np.array([(percent / 100).as_integer_ratio() for percent in percents], np.int64)
    percentiles = np.empty((len(percents), *partition.grid), dtype)
    block, (rows, columns) = Sides(*partition.block), (partition.rows, partition.columns)

    def find(blocks: Part) -> None:
        bottom, right = blocks.bottom * block.rows, blocks.right * block.columns
        top, left = blocks.top * block.rows, blocks.left * block.columns
        x = words_of(numbers, columns, Part(top, min(bottom, rows), left, min(right, columns)))
        find_percentiles(*x, blocks, block, rows, columns, pattern, nan, shares, percentiles)

    for_each(find, parts_of_blocks(partition), thread_count(threads, rows * columns))
    return as_binary32(percentiles)
