"""Which deviation explains the mismatches of a candidate: alone, or two of them together."""

import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mor_ref.deviations import DEVIATIONS, Deviation, applied
from mor_ref.golden.expected import OPERATIONS
from mor_ref.golden.suite import Arrays, Case, question
from mor_ref.golden.views import seen, split
from mor_ref.verify.evidence import Evidence

Together = tuple[Deviation, ...]
_WRONG, _RIGHT = 64, 32  # elements of the rows of a case that are looked at first
_SMALL, _VARIED = 200, 16  # elements, and cases
_LEADERS, _TELLING = 4, 4  # deviations to pair with others, and cases that they leave unexplained
_ENOUGH = 800  # elements by which the share of mismatches that is explained is judged
# What the model raises where deviations together leave the numbers that it is made for.
_BEYOND = (ArithmeticError, ValueError, KeyError, IndexError, struct.error)


_ALONE: list[Together] = [(deviation,) for deviation in DEVIATIONS.values()]


@dataclass(frozen=True)
class Explanation:
    """Deviations that together give what a candidate gave in all of a suite's mismatches.

    Where `explained` is less than `of`, they are those that give the most.
    """

    deviations: tuple[str, ...]
    rules: tuple[str, ...]
    explained: int
    of: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left unexplained."""
        return self.explained == self.of


@dataclass(frozen=True)
class SuiteDiagnosis:
    """What explains the mismatches of a suite; several where the suite cannot tell them apart."""

    suite: str
    mismatches: int
    explanations: tuple[Explanation, ...]


@dataclass(frozen=True)
class Diagnosis:
    """What explains the mismatches of each suite that has some."""

    suites: tuple[SuiteDiagnosis, ...] = ()


@dataclass(frozen=True, eq=False)
class _Exhibit:
    """A case of a suite, or some rows of it, with what a candidate gave."""

    operation: str
    question: Case
    pairs: dict[str, tuple[NDArray[np.integer], NDArray[np.integer]]]  # expected, given

    @property
    def size(self) -> int:
        """How many elements go in."""
        return max(array.size for array in self.question.arrays.values())

    @property
    def differs(self) -> bool:
        """Whether anything in it differs."""
        return any(bool((a != b).any()) for a, b in self.pairs.values())

    def rows(self, chosen: NDArray[np.intp]) -> "_Exhibit":
        """Some rows alone."""
        inputs = {name: array[chosen] for name, array in self.question.arrays.items()}
        question = Case(self.question.name, self.question.parameters, inputs)
        pairs = {name: (a[chosen], b[chosen]) for name, (a, b) in self.pairs.items()}
        return _Exhibit(self.operation, question, pairs)


@dataclass(frozen=True)
class _Score:
    """How often deviations give what a candidate gave where that is wrong, and otherwise."""

    explained: int = 0
    wrong: int = 0
    contradicted: int = 0

    def __add__(self, other: "_Score") -> "_Score":
        return _Score(
            self.explained + other.explained,
            self.wrong + other.wrong,
            self.contradicted + other.contradicted,
        )


def diagnose(
    found: Iterable[Evidence], on_suite: Callable[[str], None] = lambda _: None
) -> Diagnosis:
    """What explains the mismatches of these suites, each of which has some.

    `on_suite` is called with the name of each before it is looked at, as that may take a minute. A
    suite is left out of which nothing could be compared that differs.

    What explains one suite is tried first on the next. The tensors of large suites take long: they
    are held to that alone.
    """
    known: list[Together] = []
    diagnoses = []
    for evidence in sorted(found, key=_cost):
        on_suite(evidence.suite)
        whole = _exhibits(evidence)
        if not whole:
            continue
        mismatches = sum(int((a != b).sum()) for e in whole for a, b in e.pairs.values())
        exhibits = _in_order(evidence, whole)
        survivors = _explaining(known, exhibits, may_search=not _is_generated(evidence))
        survivors = _surviving(survivors, _matching(evidence)) or survivors
        if survivors:
            explanations = [_explanation(those, mismatches, mismatches) for those in survivors]
        elif _is_generated(evidence):
            explanations = []
        else:
            explanations = [_explanation(*best) for best in _leaders(exhibits)[:1]]
        known += [those for those in survivors if those not in known]
        diagnoses.append(SuiteDiagnosis(evidence.suite, mismatches, tuple(explanations)))
    return Diagnosis(tuple(diagnoses))


def _explaining(
    known: list[Together], exhibits: list[_Exhibit], *, may_search: bool
) -> list[Together]:
    """The deviations that explain all: one alone if there is one, else two together."""
    singles: list[Together] = [those for those in known if len(those) == 1]
    found = _surviving(singles, exhibits)
    if not found and may_search:
        found = _surviving(_ALONE, exhibits)
    if not found:
        found = _surviving([those for those in known if len(those) > 1], exhibits)
    if not found and may_search:
        found = _surviving_pairs(singles, exhibits)
    return found


def _cost(evidence: Evidence) -> tuple[bool, bool]:
    return _is_generated(evidence), not OPERATIONS[evidence.operation].by_row


def _in_order(evidence: Evidence, whole: list[_Exhibit]) -> list[_Exhibit]:
    """What to look at in turn, so that what is no explanation is soon left out.

    Some rows of the cases where these stand for themselves; else a few small cases that differ in
    kind; then everything.
    """
    if OPERATIONS[evidence.operation].by_row:
        return [*(_some_rows(exhibit) for exhibit in whole), *whole]
    small = [exhibit for exhibit in whole if exhibit.size <= _SMALL]
    first = small[:: max(1, len(small) // _VARIED)]
    return [*first, *(exhibit for exhibit in whole if exhibit not in first)]


def _is_generated(evidence: Evidence) -> bool:
    return any("recipe" in case.parameters for case in evidence.cases)


def _names(together: Together) -> tuple[str, ...]:
    return tuple(deviation.name for deviation in together)


def _exhibits(evidence: Evidence) -> list[_Exhibit]:
    """The cases in which something differs, small ones first."""
    return sorted((e for e in _all(evidence) if e.differs), key=lambda exhibit: exhibit.size)


def _matching(evidence: Evidence) -> list[_Exhibit]:
    """The cases in which nothing differs: what explains the others should change nothing there."""
    return [exhibit for exhibit in _all(evidence) if not exhibit.differs]


def _all(evidence: Evidence) -> Iterator[_Exhibit]:
    for case in evidence.cases:
        if case.name in evidence.answers:
            pairs = {name: (a, b) for name, a, b in evidence.compared(case)}
            yield _Exhibit(evidence.operation, question(evidence.fields, case), pairs)


def _some_rows(exhibit: _Exhibit) -> _Exhibit:
    """A few rows that differ and a few that do not, of a case whose rows stand for themselves."""
    wrong = np.zeros(len(next(iter(exhibit.question.arrays.values()))), np.bool_)
    for a, b in exhibit.pairs.values():
        wrong |= (a != b).reshape(len(wrong), -1).any(axis=1)
    width = exhibit.size // len(wrong)
    chosen = [
        _spread(np.flatnonzero(wrong), max(_WRONG // width, 2)),
        _spread(np.flatnonzero(~wrong), max(_RIGHT // width, 1)),
    ]
    return exhibit.rows(np.sort(np.concatenate(chosen)))


def _spread(places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """At most so many of the places, from the first to the last."""
    if len(places) <= count:
        return places
    chosen: NDArray[np.intp] = places[np.linspace(0, len(places) - 1, count).astype(int)]
    return chosen


def _surviving(candidates: Iterable[Together], exhibits: list[_Exhibit]) -> list[Together]:
    """Those that give what the candidate gave in every case that differs."""
    left = list(candidates)
    for exhibit in exhibits:
        left = [those for those in left if _score(those, exhibit).contradicted == 0]
    return left


def _surviving_pairs(known: list[Together], exhibits: list[_Exhibit]) -> list[Together]:
    """Two deviations together, of which one explains another suite or much of this one."""
    leaders = [those for those, _, _ in _leaders(exhibits)[:_LEADERS]]
    for leader in dict.fromkeys([*known, *leaders]):
        telling = (e for e in exhibits if _score(leader, e).contradicted)
        first = list(itertools.islice(telling, _TELLING))
        pairs = [pair for (other,) in _ALONE for pair in _both_ways(leader[0], other)]
        found = _surviving(_surviving(pairs, first), exhibits)
        if found:
            return found
    return []


def _both_ways(a: Deviation, b: Deviation) -> list[Together]:
    if a is b:
        return []
    return [(a, b), (b, a)] if _share(a, b) else [(a, b)]


def _share(a: Deviation, b: Deviation) -> bool:
    """Whether two deviations replace the same step, so that their order matters."""
    return bool({step for step, _ in a.replacements} & {step for step, _ in b.replacements})


def _sample(exhibits: list[_Exhibit]) -> list[_Exhibit]:
    """The first cases, up to a number of elements; of a case that is there twice, the first."""
    once = list({exhibit.question.name: exhibit for exhibit in reversed(exhibits)}.values())[::-1]
    sizes = itertools.accumulate(exhibit.size for exhibit in once)
    return [e for e, size in zip(once, sizes, strict=True) if size <= _ENOUGH] or once[:1]


def _leaders(exhibits: list[_Exhibit]) -> list[tuple[Together, int, int]]:
    """The deviations that explain the most of the first cases: how many mismatches, of how many."""
    sample = _sample(exhibits)
    scores = [(sum((_score(those, e) for e in sample), _Score()), those) for those in _ALONE]
    scores = [(score, those) for score, those in scores if score.explained]
    scores.sort(key=lambda pair: pair[0].contradicted - pair[0].explained)
    return [(those, score.explained, score.wrong) for score, those in scores]


def _explanation(those: Together, explained: int, of: int) -> Explanation:
    rules = sorted({rule for deviation in those for rule in deviation.rules})
    return Explanation(_names(those), tuple(rules), explained, of)


def _given_by(those: Together, exhibit: _Exhibit) -> Arrays | None:
    """What the model gives with these deviations; nothing if they lead it out of its numbers."""
    question = exhibit.question
    try:
        with applied(*those):
            return OPERATIONS[exhibit.operation].function(question.parameters, question.arrays)
    except _BEYOND:
        return None


def _fields(those: Together, exhibit: _Exhibit) -> Iterator[tuple[NDArray[np.integer], ...]]:
    """Expected, given, and what these deviations give, for each field."""
    found = _given_by(those, exhibit)
    if found is None:
        yield from ((expected, given, ~given) for expected, given in exhibit.pairs.values())
        return
    for name, (expected, given) in exhibit.pairs.items():
        field, views = split(name)
        if field in found:
            ours = seen(found[field], views, exhibit.question.parameters)
            is_alike = ours.size == expected.size
            yield expected, given, ours.reshape(expected.shape) if is_alike else ~given


def _score(those: Together, exhibit: _Exhibit) -> _Score:
    explained = wrong = contradicted = 0
    for expected, given, ours in _fields(those, exhibit):
        differs = given != expected
        explained += int((differs & (ours == given)).sum())
        wrong += int(differs.sum())
        contradicted += int((ours != given).sum())
    return _Score(explained, wrong, contradicted)
