"""Scores of deviations: how well they reproduce the values of a candidate."""

import contextlib
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.deviations import Deviation, applied
from mor_ref.exact.step import Step, reached
from mor_ref.golden.model.views import seen, split
from mor_ref.mistakes.calls import KindOfCall, calls_made
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays
from mor_ref.verify.diagnosing.sample import Pair, Sample, rows_of_any

_LEAST_OF = 1000  # a guess explains one mismatch in 1000 at least
_LEAST_BITS = 20.0  # of surprise of a guess, because hundreds of deviations are tried
_LEAST_SHARE = 1e-6
_SHORT = 20  # entries: with as many, one bit each is enough
_MOST_BITS = 8.0  # of surprise of one entry at most: a single one is not enough
Together = tuple[Deviation, ...]
# Two deviations together may produce numbers that the model refuses with one of these errors.
_BEYOND = (ArithmeticError, ValueError, KeyError, IndexError, struct.error)


class Changes(NamedTuple):
    """Counts of entries that deviations change: right ones, all of them, and entries that differ.

    `values` are pairs of expected and given bits, if few entries of the field differ.
    """

    right: int = 0
    of: int = 0
    differing: int = 0
    values: frozenset[tuple[int, int]] = frozenset()

    def joined(self, other: "Changes") -> "Changes":
        """Return the changes of two cases together."""
        return Changes(
            self.right + other.right,
            self.of + other.of,
            self.differing + other.differing,
            self.values | other.values,
        )

    @property
    def is_whole(self) -> bool:
        """Whether every entry that differs is explained, and no other entry is changed."""
        return self.right == self.of == self.differing

    def bits(self, chance: float) -> float:
        """Return the bits of surprise if changes are right by `chance`; 0 if no more are right."""
        if self.right <= chance * self.of:
            return 0.0
        share, bits = self.right / self.of, self.right * math.log2(self.right / self.of / chance)
        if share < 1:
            bits += (self.of - self.right) * math.log2((1 - share) / (1 - chance))
        return max(bits, self._bits_of_values()) if self.is_whole else bits

    def _bits_of_values(self) -> float:
        """Return the bits of surprise of the given values, in a field that is explained whole.

        A new value counts with the bits of its distance from the expected one: it may be near by
        chance. A value or a distance that occurred before counts with one bit: a mistake other than
        the deviation would repeat it everywhere.
        """
        bits, seen_values, seen_distances = 0.0, set[int](), set[int]()
        for expected, given in sorted(self.values):
            distance = given - expected
            is_new = given not in seen_values and distance not in seen_distances
            seen_values.add(given)
            seen_distances.add(distance)
            bits += min(1 + math.log2(abs(distance)), _MOST_BITS) if is_new else 1.0
        return bits


@dataclass(frozen=True)
class Score:
    """Counts of mismatches that deviations explain, of all, and of mismatches that they would add.

    `changes` are by fields.
    """

    explained: int = 0
    of: int = 0
    more: int = 0
    changes: Mapping[str, Changes] = field(default_factory=dict)

    def __add__(self, other: "Score") -> "Score":
        changes = dict(self.changes)
        for name, one in other.changes.items():
            changes[name] = changes.get(name, Changes()).joined(one)
        return Score(
            self.explained + other.explained,
            self.of + other.of,
            self.more + other.more,
            changes,
        )

    @property
    def is_whole(self) -> bool:
        """Whether the deviations reproduce every value of the candidate."""
        return self.explained == self.of and not self.more

    @property
    def is_guess(self) -> bool:
        """Whether deviations explain at least 0.1 % of the mismatches."""
        return _LEAST_OF * self.explained >= self.of

    def is_more_than_chance(self, differing: Mapping[str, float]) -> bool:
        """Return whether more changes are right in a field than by accident.

        `differing` has, for each field, the share of entries that differ. Each such entry has at
        least two other values nearby.
        """
        return bool(self._surprising(differing))

    def whole_fields(self, differing: Mapping[str, float]) -> dict[str, int]:
        """Return the mismatches of fields that are explained as a whole, and not by accident."""
        return {
            name: self.changes[name].right
            for name in self._surprising(differing)
            if self.changes[name].is_whole
        }

    def _surprising(self, differing: Mapping[str, float]) -> list[str]:
        return [
            name
            for name, one in self.changes.items()
            if name in differing and one.bits(max(differing[name], _LEAST_SHARE) / 2) >= _LEAST_BITS
        ]

    @property
    def worth(self) -> int:
        """Twice the count of explained mismatches, minus the count of added ones."""
        return 2 * self.explained - self.more


@dataclass(frozen=True)
class Run:
    """The result of computing with deviations: their score, and the steps that were taken.

    `alike` is the share of the candidate's values that they reproduce in any place, in the fields
    that differ. For one deviation, `explained` has a bit for each entry that differs and that it
    explains. Without a deviation, `calls` are the kinds of calls of steps that there are.
    """

    score: Score
    steps: frozenset[Step]
    calls: frozenset[KindOfCall] = frozenset()
    alike: float = 0.0
    explained: int = 0


class Model:
    """The model with deviations. Each result is computed once, and its elements are counted.

    `deviations` are those that are tried.
    """

    def __init__(self, deviations: Iterable[Deviation] | None = None) -> None:
        tried = CAUSES.values() if deviations is None else deviations
        self._deviations = {deviation.name: deviation for deviation in tried}
        self.elements = 0
        changes = (change for one in self._deviations.values() for change in one.changes)
        self._calls = frozenset((change.step, change.where) for change in changes)
        self._runs: dict[tuple[Together, Sample], Run] = {}

    @property
    def alone(self) -> list[Together]:
        """Each deviation alone."""
        return [(deviation,) for deviation in self._deviations.values()]

    def named(self, names: Iterable[str]) -> Together:
        """Return the deviations of some names."""
        return tuple(self._deviations[name] for name in names)

    def run(self, those: Together, sample: Sample) -> Run:
        """Return the result of deviations on a sample; without deviations, of the reference.

        A deviation changes nothing if its steps are not reached without it, or not in the calls
        that it is about. Then the result for the other deviations is the result for all.
        """
        if (those, sample) not in self._runs:
            self._runs[those, sample] = self._without_one(those, sample) or self._new(those, sample)
        return self._runs[those, sample]

    def is_reached(self, deviation: Deviation, sample: Sample) -> bool:
        """Return whether the reference calls a step of a deviation in a way that it is about."""
        calls = self.run((), sample).calls
        return any((change.step, change.where) in calls for change in deviation.changes)

    def rows_missed(self, those: Together, sample: Sample) -> NDArray[np.bool_]:
        """Return the rows in which deviations do not reproduce the values of the candidate."""
        self.elements += sample.size
        found, _ = _computed(those, sample)
        return rows_of_any(pair.given != ours for _, pair, ours in _fields(found, sample))

    def first_left(self, those: Together, sample: Sample) -> tuple[str, list[int]]:
        """Return the field and the place of the first mismatch that deviations do not explain."""
        self.elements += sample.size
        found, _ = _computed(those, sample)
        for name, pair, ours in _fields(found, sample):
            is_left = pair.differs & (pair.given != ours)
            if is_left.any():
                return name, [int(i) for i in np.argwhere(is_left)[0]]
        raise AssertionError("asked of deviations that explain all")

    def arrays(self, those: Together, sample: Sample) -> dict[str, NDArray[np.integer]]:
        """Return the fields of the model with deviations, in the views of the sample."""
        self.elements += sample.size
        found, _ = _computed(those, sample)
        return {name: ours for name, _, ours in _fields(found, sample)}

    def _without_one(self, those: Together, sample: Sample) -> Run | None:
        for deviation in those:
            others = tuple(other for other in those if other is not deviation)
            run = self._runs.get((others, sample))
            if run is not None and run.steps.isdisjoint(steps_of(deviation)):
                return run
            if run is not None and not others and not self.is_reached(deviation, sample):
                return run
        return None

    def _new(self, those: Together, sample: Sample) -> Run:
        self.elements += sample.size
        with calls_made(() if those else self._calls) as calls:
            found, steps = _computed(those, sample)
        fields = list(_fields(found, sample))
        marks = [pair.differs & (pair.given == ours) for _, pair, ours in fields]
        score = sum(map(_score, fields, marks), Score())
        alike = [_alike(pair.given, ours) for _, pair, ours in fields if pair.differs.any()]
        explained = _joined(marks) if len(those) == 1 else 0
        share = sum(alike) / max(len(alike), 1)
        return Run(score, steps, frozenset(calls), share, explained)


@cache
def steps_of(deviation: Deviation) -> frozenset[Step]:
    """Return the steps that a deviation replaces."""
    return frozenset(step for step, _ in deviation.replacements)


Field = tuple[str, Pair, NDArray[np.integer]]


def _computed(those: Together, sample: Sample) -> tuple[Arrays | None, frozenset[Step]]:
    """Return the fields of the model with these deviations, and the steps that it takes.

    The fields are None if the deviations lead to numbers that the model refuses.
    """
    question, found = sample.question, None
    # Steps are noted when they are called, before their replacements. Numbers may overflow.
    with (
        applied(*those),
        reached() as steps,
        np.errstate(over="ignore"),
        contextlib.suppress(*_BEYOND),
    ):
        found = OPERATIONS[sample.operation].exact(question.parameters, question.arrays)
    return found, frozenset(steps)


def _fields(found: Arrays | None, sample: Sample) -> Iterator[Field]:
    """Yield each field: its name, and its expected, given and modelled bits."""
    for name, pair in sample.pairs.items():
        base, views = split(name)
        if found is None:
            yield name, pair, ~pair.given
        elif base in found:
            ours = seen(found[base], views, sample.question.parameters)
            is_alike = ours.size == pair.expected.size
            bits = ours.reshape(pair.expected.shape) if is_alike else ~pair.given
            yield name, pair, pair.compared(bits)


def _score(of_field: Field, marks: NDArray[np.bool_]) -> Score:
    """Return the score of a field whose marked mismatches are explained."""
    name, pair, ours = of_field
    missed, of = pair.given != ours, int(np.count_nonzero(pair.differs))
    more = int(np.count_nonzero(missed & ~pair.differs))
    explained = int(np.count_nonzero(marks))
    changed = int(np.count_nonzero(ours != pair.expected))
    values = _values(pair) if explained == changed == of < _SHORT else frozenset()
    changes = {name: Changes(explained, changed, of, values)} if changed or of else {}
    return Score(explained, of, more, changes)


def _joined(marks: Iterable[NDArray[np.bool_]]) -> int:
    """Return the marks of fields as the bits of one number."""
    return int.from_bytes(b"".join(np.packbits(one).tobytes() for one in marks))


def _alike(given: NDArray[np.integer], ours: NDArray[np.integer]) -> float:
    """Return the share of given entries whose values are also in `ours`, in any order."""
    _, rank = np.unique(np.concatenate([given.ravel(), ours.ravel()]), return_inverse=True)
    counts = (np.bincount(part, minlength=2 * given.size) for part in np.split(rank, 2))
    return float(np.minimum(*counts).sum()) / max(given.size, 1)


def _values(pair: Pair) -> frozenset[tuple[int, int]]:
    """Return the expected and the given bits of the entries that differ."""
    expected, given = (bits[pair.differs].tolist() for bits in (pair.expected, pair.given))
    return frozenset(zip(expected, given, strict=True))
