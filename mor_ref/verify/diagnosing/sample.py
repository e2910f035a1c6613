"""Samples: the cases, or some rows of them, that deviations are compared on."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.model.views import SEPARATOR, seen, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.comparing.evidence import Evidence

_WRONG, _RIGHT = 64, 32  # elements of the rows to look at first
_SMALL, _VARIED = 200, 16  # elements of a small case, and count of such cases
_ENOUGH = 800  # elements of a sample
LARGEST_TENSOR = 1 << 15  # elements; deviations are not tried on larger tensors


class Pair(NamedTuple):
    """The expected and given arrays of a field, and marks of differing and left-out entries."""

    expected: NDArray[np.integer]
    given: NDArray[np.integer]
    differs: NDArray[np.bool_]
    left_out: NDArray[np.bool_] | None = None

    def compared(self, ours: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the bits of a model, with the given bits where entries are left out."""
        return ours if self.left_out is None else np.where(self.left_out, self.given, ours)


@dataclass(frozen=True, eq=False)
class Sample:
    """A case of a suite, or some rows of it, with the expected and the given arrays.

    `layouts` names, by field, the layout in which a plain array was given, such as swizzled_128x4.
    """

    operation: str
    question: Case
    pairs: dict[str, Pair]
    layouts: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The count of elements in the largest input."""
        return max(array.size for array in self.question.arrays.values())

    @cached_property
    def mismatches(self) -> int:
        """The count of entries that differ."""
        return sum(int(np.count_nonzero(pair.differs)) for pair in self.pairs.values())

    @property
    def differing_rows(self) -> NDArray[np.bool_]:
        """Marks of the rows that differ, in a case whose rows are independent."""
        return rows_of_any(pair.differs for pair in self.pairs.values())

    @property
    def length(self) -> int:
        """The count of rows, in a case whose rows are independent."""
        return len(next(iter(self.question.arrays.values())))

    @property
    def width(self) -> int:
        """The count of elements in a row."""
        return self.size // self.length

    def rows(self, chosen: NDArray[Any]) -> "Sample":
        """Return a sample of chosen rows of a case whose rows are independent."""
        inputs = {name: array[chosen] for name, array in self.question.arrays.items()}
        case = Case(self.question.name, self.question.parameters, inputs)
        pairs = {
            name: Pair(*(array[chosen] for array in pair[:3])) for name, pair in self.pairs.items()
        }
        return Sample(self.operation, case, pairs, self.layouts)

    def some_rows(self, distinguishing: NDArray[np.bool_]) -> "Sample":
        """Return a sample of a few wrong rows and a few others."""
        chosen = [
            _spread(np.flatnonzero(distinguishing), max(_WRONG // self.width, 2)),
            _spread(np.flatnonzero(~distinguishing), max(_RIGHT // self.width, 1)),
        ]
        return self.rows(np.sort(np.concatenate(chosen)))


def some_of(samples: list[Sample], elements: int, *, of_rows: bool) -> list[Sample]:
    """Return evenly spread samples, from the first to the last, up to a number of elements."""
    if of_rows:
        share = max(elements // max(len(samples), 1), 1)
        return [e.rows(_spread(np.arange(e.length), max(share // e.width, 1))) for e in samples]
    small = [e for e in samples if e.size <= elements]
    step = math.ceil(sum(e.size for e in small) / elements)
    return small[:: max(step, 1)]


def _spread(places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return at most `count` of the places, from the first to the last."""
    if len(places) <= count:
        return places
    chosen: NDArray[np.intp] = places[np.linspace(0, len(places) - 1, count).astype(int)]
    return chosen


def rows_of_any(entries: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return which rows have a marked entry in at least one array."""
    found: NDArray[np.bool_] = np.logical_or.reduce(
        [marked.reshape(len(marked), -1).any(axis=1) for marked in entries]
    )
    return found


def samples_of(evidence: Evidence) -> Iterator[Sample]:
    """Yield the cases that were answered.

    Where the candidate has the bits of the reference, but not the expected ones, the expected value
    is wrong: nothing explains such an entry, which is left out.
    """
    for case in evidence.cases:
        if case.name in evidence.answers:
            pairs = {
                name: Pair(one.expected, one.actual, one.differs, one.left_out)
                for name, one in evidence.compared(case.name).items()
            }
            layouts = {
                one.view: one.field.partition(SEPARATOR)[2]
                for one in evidence.comparisons[case.name]
                if one.is_plain
            }
            asked = question(evidence.fields, case)
            yield Sample(evidence.operation, asked, _without_right(evidence, asked, pairs), layouts)


def _without_right(evidence: Evidence, asked: Case, pairs: dict[str, Pair]) -> dict[str, Pair]:
    """Return fields in which no entry differs that has the bits of the reference."""
    is_own = RECIPE in asked.parameters or evidence.is_of_parts  # expected values are computed
    if is_own or not any(pair.differs.any() for pair in pairs.values()):
        return pairs
    right = OPERATIONS[evidence.operation].engine(asked.parameters, asked.arrays)
    found = {}
    for name, pair in pairs.items():
        base, views = split(name)
        found[name] = pair
        if base in right and pair.differs.any():
            bits = seen(right[base], views, asked.parameters)
            if bits.size == pair.given.size:
                is_right = pair.differs & (bits.reshape(pair.given.shape) == pair.given)
                left_out = is_right if pair.left_out is None else is_right | pair.left_out
                found[name] = Pair(pair.expected, pair.given, pair.differs & ~is_right, left_out)
    return found


def count_of_reference(evidence: Evidence, differing: Iterable[Sample]) -> int:
    """Return how many entries differ in the evidence, but not in its samples."""
    fields = (field for case in evidence.answers for field in evidence.compared(case).values())
    count = sum(int(np.count_nonzero(field.differs)) for field in fields)
    return count - sum(sample.mismatches for sample in differing)


def is_of_rows(evidence: Evidence) -> bool:
    """Return whether the rows of the cases are independent, and are given as rows."""
    given = {name for chosen in evidence.chosen.values() for name in chosen.values()}
    return OPERATIONS[evidence.operation].is_by_row and not any(SEPARATOR in name for name in given)


def is_large(evidence: Evidence) -> bool:
    """Return whether tensors are too large for the exact model to try each deviation."""
    return any(
        RECIPE in case.parameters or next(iter(case.arrays.values())).size > LARGEST_TENSOR
        for case in evidence.cases
        if not OPERATIONS[evidence.operation].is_by_row
    )


def in_turn(whole: list[Sample], *, of_rows: bool) -> list[Sample]:
    """Return samples in an order that soon excludes a wrong explanation.

    First come some rows of each case if rows are independent, or else a few small cases of
    different kinds; then come the whole cases.
    """
    if of_rows:
        return [*(one.some_rows(one.differing_rows) for one in whole), *whole]
    small = [sample for sample in whole if sample.size <= _SMALL]
    first = small[:: max(1, len(small) // _VARIED)]
    return [*first, *(sample for sample in whole if sample not in first)]


def few_cases(samples: list[Sample], *, of_rows: bool) -> list[Sample]:
    """Return cases up to a number of elements, each case once.

    If rows are independent, the cases have all sizes up to this number. Otherwise they are the
    first ones, because tensors may be too large.
    """
    once = list({sample.question.name: sample for sample in reversed(samples)}.values())[::-1]
    if of_rows:
        once = [e for e in once if e.size <= _ENOUGH] or once[:1]
        once = once[:: math.ceil(sum(sample.size for sample in once) / _ENOUGH)]
    sizes = itertools.accumulate(sample.size for sample in once)
    return [e for e, size in zip(once, sizes, strict=True) if size <= _ENOUGH] or once[:1]
