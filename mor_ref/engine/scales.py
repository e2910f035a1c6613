"""The chapter on scales: the extremes of blocks."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.amaxes import Counted, find_extremes, largest_of_groups, pattern_of
from mor_ref.engine.blocks import (
    WIDENED,
    Gathered,
    Part,
    Place,
    Sides,
    for_each_part,
    only_part,
    row_bounds,
    words_of,
)
from mor_ref.engine.intrinsics import shift_left, shift_right
from mor_ref.engine.kernel import Direct, step

_U, _I = np.uint32, np.int32
_HIDDEN = _U(1 << 23)
_FRACTION = _U((1 << 23) - 1)
_BIAS = _I(127)
_WORDS = (np.dtype(np.uint16), np.dtype(np.uint32))  # of bfloat16, and of all other numbers


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
    found: NDArray[np.uint32] = _gathered(numbers, partition, threads, counted, has_amin=False)[0]
    return found


def extremes(numbers: Numbers, partition: Partition, threads: int | None) -> Extremes:
    """Return the extremes of each block among its finite numbers."""
    amax, minus_amin = _gathered(numbers, partition, threads, "finite", has_amin=True)
    return tuple.__new__(Extremes, (amax, np.negative(minus_amin)))


def word_of(numbers: Numbers) -> np.dtype[Any]:
    """Return the words that kernels take numbers in: bfloat16 as 16 bits, all others as 32."""
    return np.dtype(np.uint16 if numbers.is_bf16 else np.uint32)


def as_binary32(magnitudes: NDArray[Any]) -> NDArray[np.uint32]:
    """Return magnitudes in such words as bits of binary32."""
    if magnitudes.dtype == _U:
        return magnitudes
    return magnitudes.astype(_U) << _U(16)


def _gathered(
    numbers: Numbers,
    partition: Partition,
    threads: int | None,
    counted: Counted,
    *,
    has_amin: bool,
) -> tuple[Any, Any]:
    """Return the largest magnitude of each block, and minus the smallest if it is wanted."""
    whole = _whole_of(partition, counted)
    if whole is None:
        return _gathered_by_part(numbers, partition, threads, counted, has_amin=has_amin)
    (part, told), x = whole, numbers.bits
    if numbers.dtype in WIDENED:
        x, _ = words_of(numbers, partition.columns, part)
    amax = np.zeros(partition.grid, _U)
    minus_amin = np.zeros(partition.grid, _U) if has_amin else None
    _find_extremes((x.dtype, has_amin), x, *told[x.dtype], amax, minus_amin)
    return amax, minus_amin


@lru_cache(maxsize=1024)
def _whole_of(
    partition: Partition, counted: Counted
) -> tuple[Part, dict[np.dtype[Any], tuple[Any, ...]]] | None:
    """Return a tensor that is a single part, and what the kernel is told of it for each dtype."""
    part = only_part(partition)
    return None if part is None else (part, told_of(part, partition, counted))


def told_of(
    part: Part, partition: Partition, counted: Counted
) -> dict[np.dtype[Any], tuple[Any, ...]]:
    """Return what `find_extremes` is told of a whole tensor, for words of each dtype."""
    place, block = Place(0, 0, partition.columns), Sides(*partition.block)
    sides = place, part, row_bounds(part, block.rows), block
    return {dtype: (*sides, pattern_of(dtype, counted)) for dtype in _WORDS}


def _gathered_by_part(
    numbers: Numbers,
    partition: Partition,
    threads: int | None,
    counted: Counted,
    *,
    has_amin: bool,
) -> tuple[Any, Any]:
    gathered = [Gathered(partition, _U, 0, np.maximum) for _ in range(1 + has_amin)]
    block = Sides(*partition.block)

    def find_in_part(part: Part) -> None:
        rooms = [one.room_for(part) for one in gathered]
        minus_amin, bounds = rooms[1] if has_amin else None, row_bounds(part, block.rows)
        x, place = words_of(numbers, partition.columns, part)
        pattern, kind = pattern_of(x.dtype, counted), (x.dtype, has_amin)
        _find_extremes(kind, x, place, part, bounds, block, pattern, rooms[0], minus_amin)
        for one, room in zip(gathered, rooms, strict=True):
            one.add(part, room)

    for_each_part(find_in_part, partition.rows, partition.columns, threads)
    return gathered[0].blocks, gathered[-1].blocks


_find_extremes = Direct(find_extremes)


def largest_in(groups: Partition, cut: Partition, amaxes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the largest of the amaxes of the blocks in each group."""
    if groups.grid == cut.grid:
        return amaxes
    largest = np.zeros(groups.grid, _U)
    largest_of_groups(amaxes, *blocks_in(groups.block, cut.block), largest)
    return largest


def blocks_in(group: tuple[int, int], block: tuple[int, int]) -> tuple[int, int]:
    """Return how many rows and columns of blocks a group has."""
    return -(-group[0] // block[0]), -(-group[1] // block[1])


def extremes_of_groups(blocks: Extremes, partition: Partition) -> Extremes:
    """Return the extremes of each group from those of its blocks; an amin of 0 stands for none."""
    groups = partition.groups
    if groups.grid == partition.grid:
        return blocks
    minus_amin = largest_in(groups, partition, np.negative(blocks.amin))
    return Extremes(largest_in(groups, partition, blocks.amax), np.negative(minus_amin))
