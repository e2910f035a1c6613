"""What a candidate answered on a suite, beside what is expected of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.suite import Case, Field, question
from mor_ref.golden.views import SEPARATOR, split
from mor_ref.verify.compare import Difference, differences, given_as, paired, problem_of

Answer = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The cases of a suite that were answered, and the answers by the names of the cases."""

    suite: str
    operation: str
    fields: list[Field]
    cases: list[Case]
    answers: Mapping[str, Answer]

    @property
    def given(self) -> list[str]:
        """The expected fields that at least one answer has."""
        names = {name for answer in self.answers.values() for name in given_as(self.fields, answer)}
        return [field.name for field in self.fields if field.name in names]

    @property
    def not_given(self) -> list[str]:
        """The expected fields that no answer has."""
        there = {name for case in self.cases for name in case.arrays}
        given = self.given
        return [
            field.name
            for field in self.fields
            if field.role == "expected" and field.name in there and field.name not in given
        ]

    @property
    def unknown(self) -> list[str]:
        """What answers gave that the suite has not."""
        known = {split(field.name)[0] for field in self.fields}
        names = {name for answer in self.answers.values() for name in answer}
        return sorted(name for name in names if name.split(SEPARATOR)[0] not in known)

    def answered_with(self, field: str) -> list[Case]:
        """The cases whose answers have a field that is expected there."""
        return [
            case
            for case in self.cases
            if case.name in self.answers
            and field in case.arrays
            and field in given_as(self.fields, self.answers[case.name])
        ]

    def differences(self) -> Iterator[Difference]:
        """Every field of every case that differs."""
        given = self.given
        for case in self.cases:
            if case.name not in self.answers:
                continue
            inputs = question(self.fields, case).arrays
            yield from differences(case, self.fields, inputs, self.answers[case.name], given)

    def compared(self, case: Case) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
        """The fields of a case that can be compared: name, what is expected, what was given.

        Both are in the view that the name says.
        """
        answer = self.answers[case.name]
        for field, name in given_as(self.fields, answer).items():
            if field in case.arrays:
                expected, actual = paired(case, field, name, answer[name])
                if problem_of(actual, expected) is None:
                    yield name if SEPARATOR in name else field, expected, np.asarray(actual)
