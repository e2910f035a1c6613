"""Elements at the ends of large tensors and groups, which a short launch misses (VEC-009)."""

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from mor_ref.golden.inputs.edges import in_source
from mor_ref.operations.bits import Unsigned, tensor_of

Entry = list[int]  # row, column, and the bits of the elements from there on


class End(Enum):
    """A kind of number that is placed at the end of a tensor."""

    LARGEST = "the largest number, of which half stays where it was"
    SMALLEST = "half of the smallest number that is not zero"
    INFINITY = "an infinity"
    NAN = "a NaN"


_SPECIAL = {End.INFINITY: math.inf, End.NAN: math.nan}


class Region(NamedTuple):
    """Some rows and columns of a tensor."""

    rows: slice
    columns: slice


def regions_of(shape: Sequence[int], group: Any = None) -> Iterator[Region]:
    """Yield the groups of a tensor, or the whole tensor."""
    height, width = group if isinstance(group, list) else shape
    for r in range(0, shape[0], height):
        for c in range(0, shape[1], width):
            rows, columns = (min(r + height, shape[0]), min(c + width, shape[1]))
            yield Region(slice(r, rows), slice(c, columns))


def ends_of(x: Unsigned, source: str, region: Region, ends: Iterable[End]) -> Iterator[Entry]:
    """Yield entries that put these numbers at the end of a region, from its last element up."""
    numbers = np.asarray(tensor_of(x[region], source), np.float64)
    size = np.abs(numbers)
    for k, end in enumerate(ends):
        rows, columns = numbers.shape
        place = (rows - k % rows) * columns - 1 - k // rows
        if end in _SPECIAL:
            yield _entry(region, numbers.shape, place, _SPECIAL[end], source)
        elif end is End.SMALLEST:
            half = float(size[size > 0].min()) / 2
            yield _entry(region, numbers.shape, place, half, source)
        elif end is End.LARGEST and (was := int(size.argmax())) != place:
            largest = float(numbers.flat[was])
            yield _entry(region, numbers.shape, was, largest / 2, source)
            yield _entry(region, numbers.shape, place, largest, source)


def _entry(region: Region, shape: tuple[int, ...], place: int, number: float, source: str) -> Entry:
    row, column = divmod(place, shape[1])
    (bits,) = in_source([number], source)
    return [region.rows.start + row, region.columns.start + column, int(bits)]
