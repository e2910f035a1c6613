"""Condition: the shortest description that separates entries that differ from those that match."""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mor_ref.verify.diagnosing.diagnosis_records import Condition
from mor_ref.verify.diagnosing.entries import Entries, Integers, Marks
from mor_ref.verify.diagnosing.input_properties import of_expected, of_inputs
from mor_ref.verify.diagnosing.properties import (
    Category,
    Flag,
    Number,
    Property,
    of_cases,
    of_places,
)

_PAIRED = 24  # descriptions that are tried in pairs
_COST = 12.0  # bits of a property in a description
_SAVED = 40.0  # bits that a description must save, to exclude an accident
_EXCLUDING = 4  # a further term keeps at most one in 4 of the matching entries
_SHOWN = 8  # and excludes one for 8 entries that differ, or the last ones if these are 8
_OF_FURTHER = 8.0  # bits that it must save, and its own: some hundred properties are tried
_FEW_NAMES = 2


@dataclass(frozen=True, eq=False)
class _Term:
    """A property of every entry that differs; `matching` marks the other entries that have it.

    `ends` names the lines towards whose ends, or beginnings, such entries are.
    """

    words: str
    cost: float
    matching: Marks
    ends: frozenset[tuple[str, bool]] = frozenset()

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.matching))


def condition(
    e: Entries, wrong: Marks, right: Marks, *, of_places_only: bool = False
) -> Condition | None:
    """Return the shortest description that separates the wrong entries from the right ones.

    It fits all wrong entries, and is much shorter than a list of them; None if there is none. If
    `of_places_only`, it uses places and parameters, but no numbers.
    """
    at, others = np.flatnonzero(wrong), np.flatnonzero(right)
    if len(at) < 2 or not len(others):
        return None
    numbers = () if of_places_only else (of_inputs(e), of_expected(e))
    properties = itertools.chain(of_places(e), of_cases(e), *numbers)
    terms = [
        term for one in properties for term in _terms(one, at, others) if term.count < len(others)
    ]
    best = min(_descriptions(terms, len(at)), key=lambda one: _length(one, len(at)), default=None)
    if best is None:
        return None
    saved = _bits_of_choice(len(at), len(others)) - _length(best, len(at))
    is_specific = best.count <= 2 * len(at) and best.count <= len(others) / 2
    if saved < _SAVED or not is_specific:
        return None
    return Condition(
        best.words,
        len(at),
        len(at) + best.count,
        len(others) - best.count,
        is_of_places=of_places_only,
    )


def _length(term: _Term, differing: int) -> float:
    """Return the bits of a description: of its terms, and of a choice among matching entries."""
    return term.cost + _bits_of_choice(differing, term.count)


def _bits_of_choice(some: int, others: int) -> float:
    """Return log2 of the number of ways to choose `some` from all."""
    found = math.lgamma(some + others + 1) - math.lgamma(some + 1) - math.lgamma(others + 1)
    return found / math.log(2)


def _descriptions(terms: list[_Term], differing: int) -> Iterator[_Term]:
    """Yield each term, pairs of terms, and the best pair with a third term."""
    yield from terms
    few = sorted(terms, key=lambda one: (one.count, one.cost))[:_PAIRED]
    combined = [(a, b) for a, b in itertools.combinations(few, 2) if not a.ends & b.ends]
    pairs = [both for a, b in combined if _earns(both := _both(a, b), a, differing)]
    yield from pairs
    best = min(pairs, key=lambda one: (one.count, one.cost), default=None)
    if best is not None and best.count:
        triples = (_both(best, one) for one in few if not best.ends & one.ends)
        yield from (one for one in triples if _earns(one, best, differing))


def _earns(both: _Term, one: _Term, differing: int) -> bool:
    """Return whether a further term shows in the counts, and excludes most of the entries left.

    A few matching entries, next to each other, are excluded by some property or other, even if none
    is left. So are more of them if few entries differ.
    """
    excluded = one.count - both.count
    is_shown = excluded * _SHOWN >= (differing if both.count else _SHOWN * _SHOWN)
    saved = _bits_of_choice(differing, one.count) - _bits_of_choice(differing, both.count)
    is_saving = saved >= both.cost - one.cost + _OF_FURTHER
    return is_shown and is_saving and both.count * _EXCLUDING <= one.count


def _both(one: _Term, other: _Term) -> _Term:
    words = f"{one.words} and {other.words}"
    ends = one.ends | other.ends
    return _Term(words, one.cost + other.cost, one.matching & other.matching, ends)


def _terms(one: Property, at: Integers, others: Integers) -> Iterable[_Term]:
    """Yield the terms by which a property describes all wrong entries."""
    match one:
        case Flag():
            wrong = one.marks[at]
            if wrong.all():
                yield _Term(one.words, _COST, one.marks[others], _ends(one, is_end=True))
            elif not wrong.any():
                ends = _ends(one, is_end=False)
                yield _Term(one.otherwise, _COST, ~one.marks[others], ends)
        case Category():
            there = np.unique(one.values[at])
            if len(there) <= _FEW_NAMES:
                said = " or ".join(one.names[k] for k in there.tolist())
                cost = _COST + len(there) * math.log2(len(one.names))
                yield _Term(f"{one.words} is {said}", cost, np.isin(one.values[others], there))
        case Number():
            yield from _of_number(one, one.values[at], one.values[others])


def _ends(one: Flag | Number, *, is_end: bool) -> frozenset[tuple[str, bool]]:
    return frozenset({(one.line, is_end)} if one.line else ())


def _of_number(
    one: Number, wrong: NDArray[np.number], right: NDArray[np.number]
) -> Iterator[_Term]:
    if np.isnan(wrong).any():
        return
    low, high = wrong.min(), wrong.max()
    if low == high:
        words = f"{one.words} is {one.shown(low.item())}"
        yield _Term(words, _COST + one.bits, right == low, _ends(one, is_end=True))
    elif one.has_order:
        below, above = right[right < low], right[right > high]
        if below.size:
            limit = _roundest(below.max().item(), low.item())
            words = f"{one.words} >= {one.shown(limit)}"
            yield _Term(words, _COST + one.bits, right >= low, _ends(one, is_end=False))
        if above.size:
            limit = -_roundest(-above.min().item(), -high.item())
            words = f"{one.words} <= {one.shown(limit)}"
            yield _Term(words, _COST + one.bits, right <= high, _ends(one, is_end=True))


def _roundest(below: float, low: float) -> float:
    """Return the whole number with most factors 2 that is above `below` and at most `low`."""
    if not (float(low).is_integer() and abs(low) < 1 << 40):
        return low
    first = math.floor(max(below, low - (1 << 12))) + 1
    return max(range(first, int(low) + 1), key=lambda k: (k & -k if k else 1 << 50, k))
