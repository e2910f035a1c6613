"""Layouts and cuts into blocks that differ."""

from collections.abc import Callable
from itertools import chain, count
from typing import Any

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import IN_ROWS, RUNS, TENSORS
from mor_ref.deviations.exemptions import AMAX_ALONE
from mor_ref.exact.blocks import cells, in_rows

Reference = Callable[..., Any]
Sides = tuple[int, int]
Cells = dict[Sides, list[Sides]]


def _ends_within(length: int, side: int) -> bool:
    """Return whether the last block is cut off; a block of the whole length is not."""
    return length > side and length % side > 0


def _is_ragged(rows: int, columns: int, sides: Sides) -> bool:
    return _ends_within(rows, sides[0]) or _ends_within(columns, sides[1])


def _is_ragged_at_the_right(_rows: int, columns: int, sides: Sides) -> bool:
    return _ends_within(columns, sides[1])


def _is_short(_rows: int, columns: int, sides: Sides) -> bool:
    return columns % sides[1] > 0


def _is_run(_rows: int, _columns: int, sides: Sides) -> bool:
    """Return whether blocks are the runs of a row that share a scale in NVFP4 and MX."""
    return sides[0] == 1 and sides[1] in (16, 32)


@deviation(cells, where=_is_ragged_at_the_right, rules=("BLK-002",), domain=TENSORS)
def tail_not_masked(reference: Reference, rows: int, columns: int, sides: Sides) -> Cells:
    """The last block of a row reads on into the next row."""
    found: Cells = reference(rows, columns, sides)
    for (i, j), places in found.items():
        beyond = (j + 1) * sides[1] - columns
        first = (i + 1) * sides[0]
        if 0 < beyond < columns and first < rows:
            found[i, j] = [*places, *((first, k) for k in range(beyond))]
    return found


@deviation(cells, where=_is_ragged, rules=("BLK-002",), domain=TENSORS)
def edge_blocks_dropped(reference: Reference, rows: int, columns: int, sides: Sides) -> Cells:
    """Blocks that are not whole are left alone."""
    whole = min(sides[0], rows) * min(sides[1], columns)
    found: Cells = reference(rows, columns, sides)
    return {key: places if len(places) == whole else [] for key, places in found.items()}


@deviation(cells, where=_is_short, rules=("BLK-002",), domain=TENSORS, exemptions=AMAX_ALONE)
def edge_blocks_repeat_the_last(
    reference: Reference, rows: int, columns: int, sides: Sides
) -> Cells:
    """Rows are filled up to whole blocks with their last element, which counts each time."""
    times = {columns - 1: 1 + -columns % sides[1]}
    found: Cells = reference(rows, columns, sides)
    return {
        key: [(i, j) for i, j in places for _ in range(times.get(j, 1))]
        for key, places in found.items()
    }


@deviation(cells, where=_is_run, rules=("NVF-001", "MXS-001"), domain=RUNS)
def blocks_down_columns(reference: Reference, rows: int, columns: int, sides: Sides) -> Cells:
    """A block is a run of a column, not of a row."""
    down = reference(rows, columns, (sides[1], 1)).values()
    found: Cells = {key: [] for key in reference(rows, columns, sides)}
    beyond = ((0, columns + k) for k in count())  # blocks that the grid has no place for
    found.update(zip(chain([*found], beyond), down, strict=False))
    return found


@deviation(in_rows, rules=("BLK-001",), domain=IN_ROWS)
def read_by_columns(
    _: Reference, numbers: list[float], rows: int, columns: int
) -> list[list[float]]:
    """The tensor is read as if it lay in memory column by column."""
    return [[numbers[j * rows + i] for j in range(columns)] for i in range(rows)]


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
