"""Small tensors in block formats: what follows from a record and sides is made once.

The kernels are those of all tensors, and are told the same in each call.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers, code_dtype
from mor_ref.definitions.block_formats import (
    BlockFormat,
    check_rows,
    negative_factor,
    percentiles_of,
)
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.engine.amaxes import find_extremes, pattern_of
from mor_ref.engine.block_formats import FACTORS, FormatScales, kernel_of, tries_together
from mor_ref.engine.blocks import Part, Place, Sides, over_groups, parts_of, row_bounds, words_of
from mor_ref.engine.kernel import Direct
from mor_ref.engine.nearest import elements_of
from mor_ref.engine.quantization import quantize_part
from mor_ref.engine.scales import as_binary32
from mor_ref.engine.strips import TileScales

_WORD, _NUMBER, _SUM = np.dtype(np.uint32), np.dtype(np.float32), np.dtype(np.uint64)
_LARGEST = 1 << 18  # elements: more are worth threads


class InBlocks(NamedTuple):
    """A tensor in a block format: its scales, codes, error sums of units, and amaxes of blocks."""

    scales: FormatScales
    codes: NDArray[Any]
    sums: NDArray[np.uint64]
    amaxes: NDArray[np.uint32]


class _Scale(NamedTuple):
    """A scale: its kernel, and the arguments that are the same in each call.

    Each of its parts has so many rows and columns of blocks, and those of scales below share it.
    """

    name: str
    run: Direct
    grid: tuple[int, int]
    dtype: np.dtype[Any]
    first: tuple[Any, ...]
    parts: Partition
    is_one_block: bool
    shared: tuple[tuple[int, int], ...]


class SmallTensor:
    """A tensor that is one part, in the blocks of a record and in units."""

    def __init__(self, record: BlockFormat, units: Partition, part: Part) -> None:
        cut = partition((units.rows, units.columns), record.block)
        block, unit = Sides(*cut.block), Sides(*units.block)
        place, grid = (
            Place(0, 0, units.columns),
            elements_of(record.fmt, drops_sign_of_zero=record.drops_sign_of_zero),
        )
        bounds = row_bounds(part, block.rows)
        self.record, self.part, self.columns, self.block = record, part, units.columns, block
        self.dtype, self.sums = code_dtype(record.fmt), (*units.grid, 3)
        self.has_decode, self.has_encode = record.decode is not None, record.encode is not None
        parts = [cut.regrouped(scale.over).groups for scale in record.scales[:-1]]
        sides = [*(own.block for own in parts), cut.block]
        self.scales = [
            _Scale(
                scale.name,
                Direct(rule.run),
                own.grid,
                code_dtype(scale.fmt),
                (None, 0, own.grid[0], rule.constants, rule.rows),
                cut.regrouped(scale.over) if at < len(parts) else cut,
                own.grid == cut.grid,
                tuple(_ratio(own.block, below) for below in sides[at + 1 :]),
            )
            for at, (scale, own) in enumerate(zip(record.scales, [*parts, cut], strict=True))
            for rule in [kernel_of(record, at)]
        ]
        self.amaxes = Direct(find_extremes)
        self.pattern = place, part, bounds, block
        self.quantize = Direct(quantize_part)
        self.places = place, part, bounds, row_bounds(part, unit.rows), units.columns, unit
        self.elements = grid
        self.tries: tuple[Any, ...] | None = None
        if len(record.tries) > 1:
            check_rows(record, block.rows)
            together, height, nan = tries_together(record, block)
            across = 0, cut.grid[1], block, units.rows, units.columns
            self.tries = place, *across, together, height, grid, nan


@lru_cache(maxsize=1024)
def small_tensor(record: BlockFormat, units: Partition) -> SmallTensor | None:
    """Return a tensor in units; None if it is empty or not small, or has percentiles."""
    rows, columns = units.rows, units.columns
    parts = [*parts_of(rows, columns)] if rows * columns <= _LARGEST else []
    if len(parts) != 1 or any(percentiles_of(record, scale) for scale in record.scales):
        return None
    return SmallTensor(record, units, parts[0])


def _ratio(sides: tuple[int, int], below: tuple[int, int]) -> tuple[int, int]:
    """Return how many rows and columns of parts share a part above them."""
    return -(-sides[0] // below[0]), -(-sides[1] // below[1])


def in_steps(
    numbers: Numbers,
    small: SmallTensor,
    out: Bits | None,
    room: Bits | None,
    amaxes: NDArray[np.uint32] | None,
) -> InBlocks:
    """Quantize a small tensor; `out` takes y as bfloat16, `room` codes.

    All other arrays are made here, of dtypes that follow from the record.
    """
    x = words_of(numbers, small.columns, small.part).bits
    last = small.scales[-1]
    if amaxes is None:
        high = np.zeros(last.grid, x.dtype)
        pattern = pattern_of(x.dtype, small.record.counted)
        small.amaxes((x,), x, *small.pattern, pattern, high, None)
        amaxes = as_binary32(high)
    codes: dict[str, Bits] = {}
    above: list[tuple[Any, Any, tuple[tuple[int, int], ...]]] = []
    for scale in small.scales[:-1]:
        words = amaxes
        if not scale.is_one_block:
            words = np.ascontiguousarray(over_groups(amaxes, scale.parts, np.maximum))
        stored, own = np.empty(scale.grid, scale.dtype), np.empty(scale.grid, _NUMBER)
        shared = _shared(above)
        scale.run((words,), words, *scale.first, *shared, stored, own, None, None)
        codes[scale.name] = stored
        above.append((own, words, scale.shared))
    stored = codes[last.name] = np.empty(last.grid, last.dtype)
    decode = np.empty(last.grid, _WORD) if small.has_decode else None
    encode = np.empty(last.grid, _WORD) if small.has_encode else None
    arguments = *last.first, *_shared(above), stored, None, decode, encode
    if small.tries is None:
        signs = last.run((amaxes,), amaxes, *arguments)
    else:
        signs = last.run((amaxes, x), amaxes, *arguments, x, *small.tries)
    for factor, sign in zip(FACTORS, signs, strict=True):
        if sign:
            raise ValueError(negative_factor(small.record, factor))
    blocks = TileScales(small.block, encode, decode)
    if room is None:
        room = np.empty(numbers.bits.size, small.dtype)
    sums = np.zeros(small.sums, _SUM)
    place, *places = small.places
    rest = blocks, blocks.room_for_strip(), small.elements, room, out, sums
    small.quantize((x, room, out), x, place, *places, *rest)
    return InBlocks(FormatScales(codes, blocks), room, sums, amaxes)


def _shared(above: list[tuple[Any, Any, tuple[tuple[int, int], ...]]]) -> list[Any]:
    """Return for each scale above the numbers, the amaxes, and how many parts share one."""
    arguments: list[Any] = []
    for n, (numbers, words, shared) in enumerate(above):
        arguments += numbers, words, *shared[len(above) - n - 1]
    return arguments
