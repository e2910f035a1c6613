"""The chapter on blocks: parts of a tensor for the threads, and their numbers as words.

The largest magnitudes and integer sums of blocks may be gathered part by part, in any order: the
bits are the same.
"""

import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.formats import formats
from mor_ref.engine import encoding
from mor_ref.engine.kernel import Direct
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.engine.widening import as_binary16, widen_array

_PART = 1 << 20  # elements, at most; as binary32 they take four mebibytes
_WIDEST = 1 << 16  # columns of a part
_TALLEST = 256  # rows that are summed at once
_REMEMBERED = 1 << 12  # rows: so that the memory stays small
WIDENED = frozenset({np.dtype(np.float16), np.dtype(np.float64)})


class Part(NamedTuple):
    """A rectangle of a tensor."""

    top: int
    bottom: int
    left: int
    right: int


class Place(NamedTuple):
    """Where in an array the elements of a rectangle lie."""

    top: int
    left: int
    stride: int


class Sides(NamedTuple):
    """The sides of a tile."""

    rows: int
    columns: int


class Words(NamedTuple):
    """The numbers of a part: bfloat16 as 16 bits, all others as binary32."""

    bits: Bits
    place: Place


def parts_of(rows: int, columns: int, elements: int = _PART) -> Iterator[Part]:
    """Yield rectangles that cover the tensor row by row; none cuts a tile of 16 rows or columns."""
    width = max(1, min(columns, _WIDEST))
    height = max(16, elements // width // 16 * 16)
    for top in range(0, rows, height):
        for left in range(0, columns, width):
            yield Part(top, min(top + height, rows), left, min(left + width, columns))


@lru_cache(maxsize=1024)
def only_part(cut: Partition) -> Part | None:
    """Return the part that is a whole tensor; None if it has several parts, or no elements."""
    if cut.rows * cut.columns > _PART:
        return None
    parts = [*parts_of(cut.rows, cut.columns)]
    return parts[0] if len(parts) == 1 else None


def parts_of_blocks(cut: Partition, together: int = 1) -> Iterator[Part]:
    """Yield rectangles of blocks; none of many has more elements than a part has."""
    (rows, columns), (height, width) = cut.grid, cut.block
    across = max(together, _PART // (height * width) // together * together)
    down = max(1, _PART // (height * width * max(1, min(across, columns))))
    for top in range(0, rows, down):
        for left in range(0, columns, across):
            yield Part(top, min(top + down, rows), left, min(left + across, columns))


def for_each_part(
    work: Callable[[Part], None],
    rows: int,
    columns: int,
    threads: int | None,
    elements: int = _PART,
) -> None:
    """Call `work` in threads, with parts of at most `elements` elements that cover the tensor."""
    for_each(work, parts_of(rows, columns, elements), thread_count(threads, rows * columns))


def words_of(numbers: Numbers, columns: int, part: Part) -> Words:
    """Return the numbers of a part as kernels take them; binary64 becomes binary32 (QNT-004)."""
    if numbers.dtype not in WIDENED:
        numbers.bits.setflags(write=False)  # so that a kernel is compiled for one kind of array
        return tuple.__new__(Words, (numbers.bits, _first_place(columns)))
    bits = numbers.bits
    width = part.right - part.left
    if bits.size > width * (part.bottom - part.top):
        rows = slice(part.top * columns, part.bottom * columns)
        piece = bits[rows].reshape(-1, columns)[:, part.left : part.right]
        bits = np.ascontiguousarray(piece).reshape(-1)
    wide: Bits = np.empty(bits.size, np.uint32)
    _to_binary32(numbers.dtype)(bits, wide, None)
    wide.setflags(write=False)
    return Words(wide, Place(part.top, part.left, width))


@lru_cache(maxsize=1024)
def _first_place(columns: int) -> Place:
    return Place(0, 0, columns)


@lru_cache
def _to_binary32(dtype: np.dtype[Any]) -> encoding.Loop:
    if dtype == np.float16:
        widened = Direct(widen_array)
        return lambda bits, out, _: widened((), as_binary16(bits), out)
    return encoding.loop_for(formats["f32"], "rne", SpecialCases(overflow="ieee"), dtype)


def row_bounds(part: Part, block_rows: int) -> NDArray[np.int64]:
    """Return the rows where a part is cut, so that no piece spans two blocks or is too large.

    A sum of so many error terms fits 32 bits.
    """
    if part.bottom - part.top > _REMEMBERED:
        return _row_bounds(part.top, part.bottom, block_rows)
    return _remembered_row_bounds(part.top, part.bottom, block_rows)


def _row_bounds(top: int, bottom: int, block_rows: int) -> NDArray[np.int64]:
    cuts = np.arange(top - top % block_rows, bottom, min(block_rows, _TALLEST))
    if block_rows > _TALLEST:
        blocks = np.arange(top - top % block_rows, bottom, block_rows)
        cuts = np.union1d(cuts, blocks)
    inner = cuts[(cuts > top) & (cuts < bottom)]
    bounds = np.concatenate([[top], inner, [bottom]]).astype(np.int64)
    bounds.flags.writeable = False  # others have the same array
    return bounds


_remembered_row_bounds = lru_cache(_row_bounds)


class Gathered:
    """An array with an entry for each block, which parts add to one after the other."""

    def __init__(
        self, partition: Partition, dtype: Any, initial: int, join: np.ufunc, *entry: int
    ) -> None:
        """`entry` is the shape of an entry of a block, if it is not a single number."""
        self._entry = entry
        self.blocks: NDArray[Any] = np.full(partition.grid + entry, initial, dtype)
        self._sides = partition.block
        self._initial = initial
        self._join = join
        self._whole = Part(0, partition.rows, 0, partition.columns)
        self._lock = threading.Lock()

    def room_for(self, part: Part) -> NDArray[Any]:
        """Return room for the entries of the blocks that a part touches."""
        if part == self._whole:
            return self.blocks
        rows, columns = self._touched(part)
        shape = (rows.stop - rows.start, columns.stop - columns.start, *self._entry)
        return np.full(shape, self._initial, self.blocks.dtype)

    def add(self, part: Part, entries: NDArray[Any]) -> None:
        """Take over the results for the blocks of a part."""
        if entries is self.blocks:
            return
        rows, columns = self._touched(part)
        with self._lock:
            room = self.blocks[rows, columns]
            self._join(room, entries, out=room)

    def _touched(self, part: Part) -> tuple[slice, slice]:
        rows, columns = self._sides
        return (
            slice(part.top // rows, (part.bottom - 1) // rows + 1),
            slice(part.left // columns, (part.right - 1) // columns + 1),
        )


def over_groups(blocks: NDArray[Any], partition: Partition, join: np.ufunc) -> NDArray[Any]:
    """Return the entries of blocks, joined for each group."""
    if partition.group == partition.block:
        return blocks
    for axis in (0, 1):
        step = -(-partition.group[axis] // partition.block[axis])
        if step == 1:
            continue
        starts = np.arange(0, blocks.shape[axis], step)
        if starts.size == 1:  # several times as fast
            blocks = join.reduce(blocks, axis=axis, keepdims=True)
        elif starts.size:
            blocks = join.reduceat(blocks, starts, axis=axis)
    return blocks


def binary32_words(numbers: Numbers) -> NDArray[np.uint32]:
    """Return all numbers as binary32 (QNT-004)."""
    size = numbers.bits.size
    columns = max(size, 1)  # an empty row has no columns to be cut
    return binary32_rows(numbers, columns, 0, size // columns)


def binary32_rows(numbers: Numbers, columns: int, top: int, bottom: int) -> NDArray[np.uint32]:
    """Return the numbers of some rows as binary32 (QNT-004)."""
    bits, place = words_of(numbers, columns, Part(top, bottom, 0, columns))
    rows = bits[(top - place.top) * columns : (bottom - place.top) * columns]
    wide = rows.astype(np.uint32) << np.uint32(16) if numbers.is_bf16 else rows
    words: NDArray[np.uint32] = np.ascontiguousarray(wide, np.uint32)
    return words
