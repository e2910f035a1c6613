"""The chapter on scales: the extremes of blocks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.amaxes import Counted, Pattern, find_extremes, pattern_of
from mor_ref.engine.blocks import (
    Gathered,
    Part,
    Sides,
    for_each_part,
    over_groups,
    row_bounds,
    words_of,
)
from mor_ref.engine.intrinsics import shift_left, shift_right
from mor_ref.engine.kernel import step

_U, _I = np.uint32, np.int32
_HIDDEN = _U(1 << 23)
_FRACTION = _U((1 << 23) - 1)
_BIAS = _I(127)


class Extremes(NamedTuple):
    """The largest and the smallest magnitude but zero of the finite numbers of each block, as bits.

    Both are 0 in a block that has no such number.
    """

    amax: NDArray[np.uint32]
    amin: NDArray[np.uint32]


# ---------------------------------------------------------------------- scalar steps


@step
def normalised(amax):
    """Return mantissa and exponent of the bits of a number above zero, subnormal or not."""
    field, mantissa = _I(shift_right(amax, _U(23))), _U(amax & _FRACTION)
    if field == _I(0):
        field = _I(1)
        while mantissa < _HIDDEN:
            mantissa = shift_left(mantissa, _U(1))
            field = _I(field - _I(1))
    return _U(mantissa & _FRACTION), _I(field - _BIAS)


# ---------------------------------------------------------------------- whole tensors


def amax_of_blocks(
    numbers: Numbers, partition: Partition, threads: int | None, counted: Counted = "finite"
) -> NDArray[np.uint32]:
    """Return the largest magnitude of each block among the numbers that count, as bits."""
    dtype = word_of(numbers)
    amax = Gathered(partition, dtype, 0, np.maximum)
    _gather(numbers, partition, threads, pattern_of(dtype, counted), amax, None)
    return as_binary32(amax.blocks)


def extremes(numbers: Numbers, partition: Partition, threads: int | None) -> Extremes:
    """Return the extremes of each block among its finite numbers."""
    dtype = word_of(numbers)
    pattern = pattern_of(dtype, "finite")
    amax = Gathered(partition, dtype, 0, np.maximum)
    below_amin = Gathered(partition, dtype, int(pattern.all), np.minimum)
    _gather(numbers, partition, threads, pattern, amax, below_amin)
    amin = below_amin.blocks + dtype.type(1)
    return Extremes(as_binary32(amax.blocks), as_binary32(amin))


def word_of(numbers: Numbers) -> np.dtype[Any]:
    """Return the words that kernels take numbers in: bfloat16 as 16 bits, all others as 32."""
    return np.dtype(np.uint16 if numbers.is_bf16 else np.uint32)


def as_binary32(magnitudes: NDArray[Any]) -> NDArray[np.uint32]:
    """Return magnitudes in such words as bits of binary32."""
    if magnitudes.dtype == _U:
        return magnitudes
    return magnitudes.astype(_U) << _U(16)


def _gather(
    numbers: Numbers,
    partition: Partition,
    threads: int | None,
    pattern: Pattern,
    amax: Gathered,
    below_amin: Gathered | None,
) -> None:
    """Find the extremes of each block, or the largest magnitudes alone."""
    block = Sides(*partition.block)

    def find(part: Part) -> None:
        words = words_of(numbers, partition.columns, part)
        high = amax.room_for(part)
        low = None if below_amin is None else below_amin.room_for(part)
        bounds = row_bounds(part, block.rows)
        find_extremes(words.bits, words.place, part, bounds, block, pattern, high, low)
        amax.add(part, high)
        if below_amin is not None and low is not None:
            below_amin.add(part, low)

    for_each_part(find, partition.rows, partition.columns, threads)


def extremes_of_groups(blocks: Extremes, partition: Partition) -> Extremes:
    """Return the extremes of each group from those of its blocks; an amin of 0 stands for none."""
    amax = over_groups(blocks.amax, partition, np.maximum)
    return Extremes(amax, over_groups(blocks.amin - _U(1), partition, np.minimum) + _U(1))
