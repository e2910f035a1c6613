"""Answers to cases that were asked again: a right answer depends on nothing but its case."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mor_ref.counts_in_words import counted
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST, split
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.comparing.compare import MISSING
from mor_ref.verify.comparing.compared_field import ComparedField
from mor_ref.verify.comparing.distance import shown
from mor_ref.verify.comparing.domain import Domain, within
from mor_ref.verify.comparing.evidence import Evidence

_ONE_IN, _FEWEST = 10, 2  # cases
_LARGEST = 1 << 18  # numbers of a case
_MOST_TIMES, _SHARE = 8, 4  # small cases are asked so often, for a quarter of all numbers
_LEAST = 256  # numbers that take as long as a question does anyway


@dataclass(frozen=True)
class Change:
    """A change in a later answer to a case: of a field, or of the whole answer."""

    case: str
    field: str
    words: str

    def __str__(self) -> str:
        where = f"case {self.case}, field {self.field}" if self.field else f"case {self.case}"
        return f"{where}: {self.words}"


def cases_to_repeat(cases: Sequence[Case], answers: Mapping[str, Answer]) -> list[Case]:
    """Return the cases to ask again, in this order; the same case may come several times.

    First a tenth of those that were answered, at least two, the last of them first. Then the
    smallest, up to a quarter of the numbers of all answers: a kernel may be wrong rarely.
    Cases that are so large that they would take most of the time are not among them.
    """
    answered = [case for case in cases if case.name in answers]
    there = [case for case in answered if _size(case) <= _LARGEST]
    count = max(-(-len(there) // _ONE_IN), min(_FEWEST, len(there)))
    found = [there[k * len(there) // count] for k in reversed(range(count))]
    left = sum(map(_cost, answered)) // _SHARE
    for case in sorted(there, key=_size) * _MOST_TIMES:
        left -= _cost(case)
        if left < 0:
            break
        found.append(case)
    return found


def _cost(case: Case) -> int:
    return max(_size(case), _LEAST)


def _size(case: Case) -> int:
    return max(array.size for array in case.arrays.values())


def is_same_answer(first: Answer, second: Answer | None) -> bool:
    """Return whether two answers have the same fields with the same bits."""
    if second is None or first.keys() != second.keys():
        return False
    return all(_is_same(first[name], second[name]) for name in first)


def _is_same(first: object, second: object) -> bool:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    return type(first) is type(second) and bool(first == second)


def changes_of(evidence: Evidence, domain: Domain) -> tuple[Change, ...]:
    """Return the changes in the later answers, as far as inputs and bits count."""
    if not evidence.second:
        return ()
    cases = [case for case in evidence.cases if case.name in evidence.second]
    twice = replace(evidence, cases=cases, second={})
    again = {name: answer for name, answer in evidence.second.items() if answer is not None}
    first = within(replace(twice, answers=_of(cases, evidence.answers)), domain)
    second = within(replace(twice, answers=again), domain)
    return tuple(change for case in first.cases for change in _changes(case.name, first, second))


def _of(cases: Sequence[Case], answers: Mapping[str, Answer]) -> dict[str, Answer]:
    return {case.name: answers[case.name] for case in cases}


def _changes(case: str, first: Evidence, second: Evidence) -> Iterator[Change]:
    if case not in second.answers:
        yield Change(case, "", "it has no answer when it is asked again")
        return
    before, after = (
        {one.suite_field: one for one in of.comparisons[case] if one.problem != MISSING}
        for of in (first, second)
    )
    for field in dict.fromkeys((*before, *after)):
        words = _words(before.get(field), after.get(field))
        if words:
            yield Change(case, field, words)


def _words(before: ComparedField | None, after: ComparedField | None) -> str:
    """Say how a field is another when its case is asked again; nothing if it is the same."""
    if before is None or after is None:
        return f"it is {'not given' if after is None else 'given'} when the case is asked again"
    if before.problem != after.problem:
        return f"when the case is asked again, it {after.problem or 'can be compared'}"
    if before.actual.shape != after.actual.shape or before.padding != after.padding:
        return "its layout is another when the case is asked again"
    places = np.argwhere(before.actual != after.actual)
    if not len(places):
        return ""
    of = counted(before.actual.size, "entry")
    verb = "differs" if len(places) == 1 else "differ"
    said = f"{len(places):,} of {of} {verb} when the case is asked again"
    if DIGEST in split(before.suite_field)[1]:
        return said
    place = tuple(places[0].tolist())
    bits = (shown(int(one.actual[place]), before.format) for one in (before, after))
    return f"{said}, the first at [{', '.join(map(str, place))}]: {', then '.join(bits)}"
