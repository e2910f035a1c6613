"""The answers of a candidate to a suite, next to the expected ones."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.model.views import SEPARATOR, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import Field, format_meant
from mor_ref.recipes import Asked, rungs_of
from mor_ref.verify.candidates.candidate import NO_REMARKS, Answer, Remarks
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.compare import MISSING, comparisons
from mor_ref.verify.comparing.compared_field import ComparedField, Placed
from mor_ref.verify.comparing.difference import Difference
from mor_ref.verify.comparing.names_given import given_as
from mor_ref.verify.comparing.values import Marks


@dataclass(frozen=True)
class Failure:
    """Why a candidate has no answer to a case, or to any if `case` is None."""

    case: str | None
    message: str


@dataclass(frozen=True)
class NotAsked:
    """Cases that were not asked any more, and why; they have no reason if all were asked."""

    cases: tuple[str, ...] = ()
    why: str = ""

    def __add__(self, more: "NotAsked") -> "NotAsked":
        return NotAsked(self.cases + more.cases, self.why or more.why)


ALL_ASKED = NotAsked()


@dataclass(frozen=True)
class Repeats:
    """How many `cases` were asked again, `of` how many that had an answer, and how often in all.

    At some of these cases, the candidate `failed`.
    """

    cases: int = 0
    of: int = 0
    questions: int = 0
    failed: int = 0

    def __add__(self, more: "Repeats") -> "Repeats":
        return Repeats(
            self.cases + more.cases,
            self.of + more.of,
            self.questions + more.questions,
            self.failed + more.failed,
        )


NO_REPEATS = Repeats()


@dataclass(frozen=True)
class Strip:
    """Some rows of a large tensor: the first row, and where each field of them is in the whole one.

    `places` has the first row of a field in the whole field, and the shape of the whole field.
    """

    first: int
    places: Mapping[str, tuple[int, tuple[int, ...]]]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The cases of a suite, and the answers to them by their names.

    `failures` are the cases in which the candidate failed. If it `is_over`, no more cases can be
    asked of it: of this suite or of another. `other_cases` are answered cases that the suite does
    not have. `witnesses` are the case and the field at which the suite exposes each deviation.
    `allowed` are the bits that may differ. `left_out` counts the rows, or the cases if rows depend
    on each other, that are outside the `domain`. `remarks` are the candidate's own. If the one case
    is a `strip`, other strips of the same case follow. If it `is_of_parts`, its cases are parts of
    those of the suite. `entries_left_out` marks the entries of fields of cases that are not
    compared, as inputs of theirs are outside the domain. `fields_left_out` are the fields of whole
    cases that are outside. `repeats` counts the cases that were asked again, and `second` has
    later answers that are not the first, or None where there is none. Cases that were `not_asked`
    come after a failure.
    """

    suite: str
    operation: str
    fields: list[Field]
    cases: list[Case]
    answers: Mapping[str, Answer]
    other_cases: Collection[str] = ()
    failures: tuple[Failure, ...] = ()
    witnesses: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    is_over: bool = False
    allowed: Allowed = EVERY_BIT
    domain: str = "all"
    left_out: int = 0
    remarks: Remarks = NO_REMARKS
    is_of_parts: bool = False
    strip: Strip | None = None
    entries_left_out: Mapping[str, Mapping[str, Marks]] = dataclasses.field(default_factory=dict)
    fields_left_out: frozenset[str] = frozenset()
    repeats: Repeats = NO_REPEATS
    not_asked: NotAsked = ALL_ASKED
    second: Mapping[str, Answer | None] = dataclasses.field(default_factory=dict)

    @cached_property
    def chosen(self) -> dict[str, dict[str, str]]:
        """For each case that was answered: which entry of the answer is compared with which field.

        Names of fields to names given.
        """
        return {case: given_as(self.fields, answer) for case, answer in self.answers.items()}

    @cached_property
    def given(self) -> list[str]:
        """The expected fields that at least one answer has."""
        names = {name for chosen in self.chosen.values() for name in chosen}
        return [field.name for field in self.fields if field.name in names]

    @property
    def not_given(self) -> list[str]:
        """The expected fields that no answer has."""
        there = {name for case in self.cases for name in case.arrays}
        return [
            field.name
            for field in self.fields
            if field.role == "expected" and field.name in there and field.name not in self.given
        ]

    @property
    def unknown(self) -> list[str]:
        """The names in answers that are neither fields of the suite nor of its operation."""
        known = {split(field.name)[0] for field in self.fields}
        if self.operation in OPERATIONS:
            known |= set(OPERATIONS[self.operation].outputs)
        strange = {name for name in self._named if name.split(SEPARATOR)[0] not in known}
        return sorted(strange - {*self.of_rungs})

    @property
    def of_rungs(self) -> list[str]:
        """The names in answers that are codes and scales of rungs, which no suite compares.

        A field that a suite has the digests of is compared.
        """
        asked = (Asked(self.operation, case.parameters) for case in self.cases[:1])
        known = {
            f"{rung}.{field}"
            for one in asked
            for rung, of_it in rungs_of(one).items()
            for field in OPERATIONS[of_it.operation].outputs
        }
        compared = {split(field.name)[0] for field in self.fields}
        return sorted(name for name in self._named if name in known - compared)

    @property
    def _named(self) -> set[str]:
        return {name for answer in self.answers.values() for name in answer}

    @property
    def is_continued(self) -> bool:
        """Whether the case was begun by another strip."""
        return self.strip is not None and self.strip.first > 0

    @property
    def answered(self) -> int:
        """How many cases were answered; none if no answer has anything that is expected."""
        return len(self.answers) if self.given else 0

    def answered_with(self, field: str) -> list[Case]:
        """Return the cases whose answers have a field that is expected there."""
        return [
            case
            for case in self.cases
            if field in case.arrays and field in self.chosen.get(case.name, ())
        ]

    def size_of(self, case: Case, field: str) -> int:
        """Return how many entries of a field of a case are compared."""
        left = self.entries_left_out.get(case.name, {}).get(field)
        return case.arrays[field].size - (0 if left is None else int(np.count_nonzero(left)))

    def has_all_of(self, field: str) -> bool:
        """Return whether every case that has a field was answered with it."""
        return len(self.answered_with(field)) == sum(field in case.arrays for case in self.cases)

    @cached_property
    def comparisons(self) -> dict[str, list[ComparedField]]:
        """The comparisons of each case that was answered, of all fields that any answer has."""
        given = [field for field in self.fields if field.name in self.given]
        return {
            case.name: list(
                comparisons(
                    self.operation,
                    case,
                    given,
                    self.answers[case.name],
                    self.chosen[case.name],
                    self.allowed,
                    self.entries_left_out.get(case.name, {}),
                )
            )
            for case in self.cases
            if case.name in self.answers
        }

    @property
    def left_out_of_fields(self) -> dict[str, int]:
        """How many entries are left out of fields that are compared, by CASE/FIELD."""
        return {
            f"{one.case}/{one.suite_field}": int(np.count_nonzero(one.left_out))
            for found in self.comparisons.values()
            for one in found
            if one.left_out is not None
        }

    def compared(self, case: str) -> dict[str, ComparedField]:
        """Return the comparisons of a case, by view, as far as fields could be compared."""
        found = self.comparisons.get(case, ())
        return {one.view: one for one in found if one.problem is None}

    def differences(self) -> Iterator[Difference]:
        """Yield every field of every case that differs, or cannot be compared."""
        for case in self.cases:
            found = self.comparisons.get(case.name, ())
            for one in found:
                if one.count or one.problem is not None:
                    asked = question(self.fields, case)
                    if self.strip is None:
                        yield one.difference(self.operation, asked)
                    else:
                        yield self._placed(one, asked, self.strip)

    def _placed(self, one: ComparedField, asked: Case, strip: Strip) -> Difference:
        """Return a comparison of a strip as one of the whole tensor."""
        start, shape = strip.places[one.suite_field]
        is_whole = strip.first == 0 and shape == one.expected.shape  # its inputs are in all strips
        placed = Placed(strip.first, start, shape)
        return one.difference(self.operation, None if is_whole else asked, placed)

    def lacking(self) -> Iterator[Difference]:
        """Yield the fields that no answer here has; if other parts have them, they are missing."""
        absent = [field for field in self.fields if field.name in self.not_given]
        for case in self.cases if not self.is_continued else ():
            for field in absent if case.name in self.answers else ():
                if field.name in case.arrays:
                    shape = case.arrays[field.name].shape
                    if self.strip is not None:
                        _, shape = self.strip.places[field.name]
                    fmt = format_meant(field.format, case.parameters)
                    names = (case.name, field.name, field.name, fmt)
                    yield Difference(*names, 0, math.prod(shape), shape, problem=MISSING)
