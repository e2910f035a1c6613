"""What deviations are held to: cases, or some rows of them, with what a candidate gave."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.model.views import split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.comparing.evidence import Evidence

Pair = tuple[NDArray[np.integer], NDArray[np.integer]]
_WRONG, _RIGHT = 64, 32  # elements of the rows of a case that are looked at first
_SMALL, _VARIED = 200, 16  # elements, and cases
_ENOUGH = 800  # elements of a sample


@dataclass(frozen=True, eq=False)
class Exhibit:
    """A case of a suite, or some rows of it; the pairs are what is expected and what was given."""

    operation: str
    question: Case
    pairs: dict[str, Pair]

    @property
    def size(self) -> int:
        """How many elements go in."""
        return max(array.size for array in self.question.arrays.values())

    @property
    def mismatches(self) -> int:
        """How many entries differ."""
        return sum(int((a != b).sum()) for a, b in self.pairs.values())

    @property
    def length(self) -> int:
        """How many rows it has, where rows stand for themselves."""
        return len(next(iter(self.question.arrays.values())))

    @property
    def width(self) -> int:
        """How many elements a row has."""
        return self.size // self.length

    def rows(self, chosen: NDArray[Any]) -> "Exhibit":
        """Some rows alone, of a case whose rows stand for themselves."""
        inputs = {name: array[chosen] for name, array in self.question.arrays.items()}
        case = Case(self.question.name, self.question.parameters, inputs)
        pairs = {name: (a[chosen], b[chosen]) for name, (a, b) in self.pairs.items()}
        return Exhibit(self.operation, case, pairs)

    def some_rows(self, telling: NDArray[np.bool_]) -> "Exhibit":
        """A few of the telling rows, and a few others."""
        chosen = [
            _spread(np.flatnonzero(telling), max(_WRONG // self.width, 2)),
            _spread(np.flatnonzero(~telling), max(_RIGHT // self.width, 1)),
        ]
        return self.rows(np.sort(np.concatenate(chosen)))


def some_of(exhibits: list[Exhibit], elements: int, *, of_rows: bool) -> list[Exhibit]:
    """Some that stand for all, from the first to the last, up to a number of elements."""
    if of_rows:
        share = max(elements // max(len(exhibits), 1), 1)
        return [e.rows(_spread(np.arange(e.length), max(share // e.width, 1))) for e in exhibits]
    small = [e for e in exhibits if e.size <= elements]
    step = math.ceil(sum(e.size for e in small) / elements)
    return small[:: max(step, 1)]


def _spread(places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most so many of the places, from the first to the last."""
    if len(places) <= count:
        return places
    chosen: NDArray[np.intp] = places[np.linspace(0, len(places) - 1, count).astype(int)]
    return chosen


def differing_rows(pairs: Iterable[Pair]) -> NDArray[np.bool_]:
    """Which rows differ in one of some pairs of arrays."""
    found: NDArray[np.bool_] = np.logical_or.reduce(
        [(a != b).reshape(len(a), -1).any(axis=1) for a, b in pairs]
    )
    return found


def exhibits_of(evidence: Evidence) -> Iterator[Exhibit]:
    """The cases that were answered."""
    for case in evidence.cases:
        if case.name in evidence.answers:
            pairs = {name: (a, b) for name, a, b in evidence.compared(case)}
            yield Exhibit(evidence.operation, question(evidence.fields, case), pairs)


def is_of_rows(evidence: Evidence) -> bool:
    """Whether the rows of its cases stand for themselves, and are given as rows."""
    given = {name for chosen in evidence.chosen.values() for name in chosen.values()}
    return OPERATIONS[evidence.operation].is_by_row and not any(split(name)[1] for name in given)


def is_generated(evidence: Evidence) -> bool:
    """Whether its tensors are so large that they are not kept."""
    return any(RECIPE in case.parameters for case in evidence.cases)


def in_turn(whole: list[Exhibit], *, of_rows: bool) -> list[Exhibit]:
    """What to look at in turn, so that what is no explanation is soon left out.

    Some rows of the cases where these stand for themselves; else a few small cases that differ in
    kind; then everything.
    """
    if of_rows:
        return [*(one.some_rows(differing_rows(one.pairs.values())) for one in whole), *whole]
    small = [exhibit for exhibit in whole if exhibit.size <= _SMALL]
    first = small[:: max(1, len(small) // _VARIED)]
    return [*first, *(exhibit for exhibit in whole if exhibit not in first)]


def sample(exhibits: list[Exhibit]) -> list[Exhibit]:
    """The first cases, up to a number of elements; of a case that is there twice, the first."""
    once = list({exhibit.question.name: exhibit for exhibit in reversed(exhibits)}.values())[::-1]
    sizes = itertools.accumulate(exhibit.size for exhibit in once)
    return [e for e, size in zip(once, sizes, strict=True) if size <= _ENOUGH] or once[:1]
