"""Entries of a field over all cases, in one row, with their places, to find structures in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.views import DIGEST, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Parameters
from mor_ref.operations.shapes import Sides, sides_of
from mor_ref.verify.diagnosing.sample import Sample

Integers = NDArray[np.int64]
Marks = NDArray[np.bool_]
Bits = NDArray[np.unsignedinteger[Any]]
MOST = 1 << 20  # limit of entries in a field, or of numbers in its cases


@dataclass(frozen=True, eq=False)
class Entries:
    """A field of some cases, one entry after the other, row by row and case by case.

    `axes` is 1 or 2: a field with one axis has one column. `rows` and `columns` are the sides of
    the array of an entry; `tile_rows` and `tile_columns` are the sides of its block. `start` is the
    first entry of the case, and `case` its number. If it `is_of_sample`, cases were left out.
    Entries that are `left_out` are outside the domain: they neither differ nor match, but
    their expected bits may be found elsewhere.
    """

    field: str
    samples: Sequence[Sample]
    axes: int
    expected: Bits
    given: Bits
    differs: Marks
    left_out: Marks
    case: Integers
    start: Integers
    row: Integers
    column: Integers
    rows: Integers
    columns: Integers
    tile_rows: Integers
    tile_columns: Integers
    noun: str = "entry"
    is_of_sample: bool = False

    @cached_property
    def differing(self) -> Integers:
        """The places of the entries that differ."""
        return np.flatnonzero(self.differs)

    @property
    def matches(self) -> Marks:
        """The entries that are compared and do not differ."""
        found: Marks = ~self.differs & ~self.left_out
        return found

    @property
    def size(self) -> int:
        """The count of entries."""
        return len(self.expected)

    def some(self, most: int) -> Integers:
        """Return at most `most` places of entries that differ, spread over all."""
        return spread(self.differing, most)

    @cached_property
    def slices(self) -> list[slice]:
        """The places of the entries of each case."""
        bounds = np.searchsorted(self.case, np.arange(len(self.samples) + 1)).tolist()
        return [slice(*pair) for pair in pairwise(bounds)]

    @cached_property
    def worst_cases(self) -> list[int]:
        """The cases that differ, those with the most such entries first."""
        count = [int(np.count_nonzero(self.differs[places])) for places in self.slices]
        return [k for k in sorted(range(len(count)), key=lambda k: -count[k]) if count[k]]

    def is_given(self, case: int, found: Bits | None) -> bool:
        """Return whether the entries of a case that differ were given as they are found."""
        places = self.slices[case]
        differs = self.differs[places]
        return found is not None and bool((found[differs] == self.given[places][differs]).all())


def spread(places: Integers, most: int) -> Integers:
    """Return at most `most` of the places, spread over all."""
    return places[:: max(1, -(-len(places) // most))]


def entries_of(field: str, samples: Sequence[Sample]) -> Entries | None:
    """Return the entries of a field, or None if it has digests or more than two axes.

    Matching cases are left out if there are too many entries.
    """
    _, views = split(field)
    there = [one for one in samples if field in one.pairs and one.pairs[field].expected.size]
    if DIGEST in views or any(one.pairs[field].expected.ndim > 2 for one in there):
        return None
    whole = len(there)
    if sum(one.pairs[field].expected.size for one in there) > MOST:
        there = [one for one in there if one.pairs[field].differs.any()]
    sizes = np.cumsum([one.pairs[field].expected.size for one in there])
    there = there[: int(np.searchsorted(sizes, MOST, side="right"))]
    if not there:
        return None
    is_packed = field == "packed" or "packed" in views
    return replace(joined(field, there, is_packed=is_packed), is_of_sample=len(there) < whole)


def joined(field: str, samples: Sequence[Sample], *, is_packed: bool) -> Entries:
    """Return the entries of cases in one row; a byte with two codes has two entries."""
    arrays = [_arrays(one, field, is_packed=is_packed) for one in samples]
    shapes = np.array([(*one[0].shape, 1)[:2] for one in arrays], np.int64)
    sizes = shapes.prod(axis=1)
    starts = np.cumsum(sizes) - sizes
    case = np.repeat(np.arange(len(samples)), sizes)
    place = np.arange(int(sizes.sum())) - starts[case]
    rows, columns = shapes[case].T
    tiles = np.array([_tile(one, field) for one in samples], np.int64)
    tile_rows, tile_columns = tiles[case].T
    expected, given, differs, left_out = (
        np.concatenate([one[k].ravel() for one in arrays]) for k in range(4)
    )
    return Entries(
        field,
        samples,
        arrays[0][0].ndim,
        expected.astype(np.uint64),
        given.astype(np.uint64),
        differs.astype(np.bool_),
        left_out.astype(np.bool_),
        case,
        starts[case],
        place // columns,
        place % columns,
        rows,
        columns,
        tile_rows,
        tile_columns,
        "nibble" if is_packed else "entry",
    )


def _arrays(sample: Sample, field: str, *, is_packed: bool) -> list[NDArray[Any]]:
    """Return the expected and the given array of a field, and where they differ or are left out."""
    pair = sample.pairs[field]
    expected, given = (np.asarray(array) for array in (pair.expected, pair.given))
    left_out = np.zeros(expected.shape, np.bool_) if pair.left_out is None else pair.left_out
    if not is_packed:
        return [expected, given, pair.differs, left_out]
    halves = [
        np.stack([array & 15, array >> 4], axis=-1).reshape(*array.shape[:-1], -1)
        for array in (expected, given)
    ]
    return [*halves, halves[0] != halves[1], np.repeat(left_out, 2, axis=-1)]


def _tile(sample: Sample, field: str) -> Sides:
    """Return the rows and columns of a block in entries; 1 and 1 if each entry is of a block."""
    name, views = split(field)
    operation = OPERATIONS[sample.operation]
    first, kind = operation.first_axes, operation.field(name).axes
    if kind == "pairs" or views == ["packed"]:
        kind = "rc"
    if kind not in ("rc", "nk") or views not in ([], ["packed"], ["transposed"]):
        return 1, 1
    parameters, shape = (
        sample.question.parameters,
        next(iter(sample.question.arrays.values())).shape,
    )
    if first == "nk":
        found: Sides = (1, shape[1])
    else:
        block = parameters.get("tile", parameters.get("block"))
        found = (1, block) if isinstance(block, int) else _unclipped(block, parameters, shape)
    return found[::-1] if views == ["transposed"] else found


def _unclipped(block: Any, parameters: Parameters, shape: tuple[int, ...]) -> Sides:
    """Return the sides of a block as asked for, even if the array is smaller."""
    if isinstance(block, list):
        return int(block[0]), int(block[1])
    return sides_of("rc", parameters, shape)["grid"]


def differing_fields(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield the fields that differ in at least one case, in the order of the suite."""
    names = dict.fromkeys(name for sample in samples for name in sample.pairs)
    for name in names:
        if any(one.pairs[name].differs.any() for one in samples if name in one.pairs):
            yield name
