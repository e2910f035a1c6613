"""How well deviations reproduce the values of a candidate."""

import contextlib
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.deviations import DEVIATIONS, Deviation, applied
from mor_ref.exact.step import Step, reached
from mor_ref.golden.model.views import seen, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.operation import Arrays
from mor_ref.verify.diagnosing.sample import Pair, Sample, rows_of_any

_LEAST_OF = 1000  # a guess explains at least one of so many mismatches: a share of 0.1 %
_LEAST_BITS = 20.0  # of surprise of a guess: some hundred deviations are tried
_LEAST_SHARE = 1e-6
_SHORT = 20  # entries: of so many, a bit each is enough
_MOST_BITS = 8.0  # of surprise of one entry: a single one is not enough
Together = tuple[Deviation, ...]
ALONE: list[Together] = [(deviation,) for deviation in DEVIATIONS.values()]
# Deviations together may produce numbers that the model does not take: it raises one of these.
_BEYOND = (ArithmeticError, ValueError, KeyError, IndexError, struct.error)


class Changes(NamedTuple):
    """Entries of a field that deviations change: right ones, of all; and how many differ.

    `values` are the expected and the given bits of a field that has few entries that differ.
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
        """Whether every entry that differs is explained, and no other one is changed."""
        return self.right == self.of == self.differing

    def bits(self, chance: float) -> float:
        """Return the bits of surprise if each is right by this chance; 0 if not more are right."""
        if self.right <= chance * self.of:
            return 0.0
        share, bits = self.right / self.of, self.right * math.log2(self.right / self.of / chance)
        if share < 1:
            bits += (self.of - self.right) * math.log2((1 - share) / (1 - chance))
        return max(bits, self._bits_of_values()) if self.is_whole else bits

    def _bits_of_values(self) -> float:
        """Return the bits of surprise of the values of a field that is right as a whole.

        A wrong value is as near to the expected one by chance. A value or a distance that occurred
        is one bit: a mistake that has nothing to do with the deviation has the same one everywhere.
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
    """How many mismatches deviations explain, of how many; and how many more they would make.

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
        """Whether the share that the deviations explain does not round to 0.0 %."""
        return _LEAST_OF * self.explained >= self.of

    def is_more_than_chance(self, differing: Mapping[str, float]) -> bool:
        """Return whether in a field more changes are right than by accident.

        `differing` are the shares of the entries of fields that differ. Where one differs, at least
        two other values are near.
        """
        return bool(self._surprising(differing))

    def whole_fields(self, differing: Mapping[str, float]) -> dict[str, int]:
        """Return the mismatches of fields that are explained as a whole, not by accident."""
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
        """The mismatches explained, less half of those that would be added."""
        return 2 * self.explained - self.more


@dataclass(frozen=True)
class Run:
    """The result of computing with deviations: their score, and the steps that were taken.

    `alike` is the share of values of the candidate that they have, wherever these lie, in the
    fields that differ. For one deviation, `explained` has a bit for each entry that differs and
    that it explains.
    """

    score: Score
    steps: frozenset[Step]
    alike: float = 0.0
    explained: int = 0


class Model:
    """The model with deviations. It computes nothing twice, and counts what it computes."""

    def __init__(self) -> None:
        self.elements = 0
        self._runs: dict[tuple[Together, Sample], Run] = {}

    def run(self, those: Together, sample: Sample) -> Run:
        """Return the result of deviations on a sample, or of none, which is the reference.

        A deviation whose steps are not taken without it changes nothing. So a result for the
        others alone is a result for all together. A value of the candidate that the reference has,
        too, is right: no deviation explains it, and the expected value is wrong.
        """
        if (those, sample) not in self._runs:
            self._runs[those, sample] = self._without_one(those, sample) or self._new(those, sample)
        return self._runs[those, sample]

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
                return run if others else replace(run, score=replace(run.score, explained=0))
        return None

    def _new(self, those: Together, sample: Sample) -> Run:
        right = self._right(sample) if those else {}
        self.elements += sample.size
        found, steps = _computed(those, sample)
        fields = list(_fields(found, sample))
        marks = [_explained(one, right.get(one[0])) for one in fields]
        score = sum(map(_score, fields, marks), Score())
        alike = [_alike(pair.given, ours) for _, pair, ours in fields if pair.differs.any()]
        explained = _joined(marks) if len(those) == 1 else 0
        return Run(score, steps, sum(alike) / max(len(alike), 1), explained)

    def _right(self, sample: Sample) -> dict[str, NDArray[np.bool_]]:
        """Return where the values of the candidate are those of the reference, and not expected."""
        if not self.run((), sample).score.explained:
            return {}
        self.elements += sample.size
        found, _ = _computed((), sample)
        fields = _fields(found, sample)
        return {name: pair.differs & (pair.given == ours) for name, pair, ours in fields}


@cache
def steps_of(deviation: Deviation) -> frozenset[Step]:
    """Return the steps that a deviation replaces."""
    return frozenset(step for step, _ in deviation.replacements)


_STEPS = frozenset(step for deviation in DEVIATIONS.values() for step in steps_of(deviation))

Field = tuple[str, Pair, NDArray[np.integer]]


def _computed(those: Together, sample: Sample) -> tuple[Arrays | None, frozenset[Step]]:
    """Return the fields of the model with these deviations, and the steps that it takes.

    It yields nothing if they lead it out of its numbers.
    """
    question, found = sample.question, None
    # The steps are noted where they are called, in front of their replacements.
    with applied(*those), reached(_STEPS) as steps, contextlib.suppress(*_BEYOND):
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
    """Score a field: the marked mismatches are explained."""
    name, pair, ours = of_field
    missed, of = pair.given != ours, int(np.count_nonzero(pair.differs))
    more = int(np.count_nonzero(missed & ~pair.differs))
    explained = int(np.count_nonzero(marks))
    changed = int(np.count_nonzero(ours != pair.expected))
    values = _values(pair) if explained == changed == of < _SHORT else frozenset()
    changes = {name: Changes(explained, changed, of, values)} if changed or of else {}
    return Score(explained, of, more, changes)


def _explained(of_field: Field, right: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Return which mismatches of a field are explained: none whose value is `right`."""
    _, pair, ours = of_field
    found: NDArray[np.bool_] = pair.differs & (pair.given == ours)
    return found if right is None else found & ~right


def _joined(marks: Iterable[NDArray[np.bool_]]) -> int:
    """Return the marks of fields as the bits of one number."""
    return int.from_bytes(b"".join(np.packbits(one).tobytes() for one in marks))


def _alike(given: NDArray[np.integer], ours: NDArray[np.integer]) -> float:
    """Return the share of entries that have the values of others, in any order."""
    _, rank = np.unique(np.concatenate([given.ravel(), ours.ravel()]), return_inverse=True)
    counts = (np.bincount(part, minlength=2 * given.size) for part in np.split(rank, 2))
    return float(np.minimum(*counts).sum()) / max(given.size, 1)


def _values(pair: Pair) -> frozenset[tuple[int, int]]:
    """Return the expected and the given bits of the entries that differ."""
    expected, given = (bits[pair.differs].tolist() for bits in (pair.expected, pair.given))
    return frozenset(zip(expected, given, strict=True))
