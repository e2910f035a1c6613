"""The result of a candidate on a suite, and on parts of one together."""

import dataclasses
import difflib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mor_ref.operations.fields import Field
from mor_ref.verify.candidates.candidate import NO_REMARKS, Remarks
from mor_ref.verify.comparing.by_parameters import FieldOfCases, added, by_parameters
from mor_ref.verify.comparing.changed_answers import Change
from mor_ref.verify.comparing.difference import Difference
from mor_ref.verify.comparing.evidence import (
    ALL_ASKED,
    NO_REPEATS,
    Evidence,
    Failure,
    NotAsked,
    Repeats,
)
from mor_ref.verify.outcome import Outcome, Verdict
from mor_ref.verify.running.field_result import FieldResult
from mor_ref.verify.running.unknown_names import Unknown, unknown


@dataclass(frozen=True)
class SuiteResult(Outcome):
    """Result of a candidate on a suite.

    `fields` are in the order in which one follows from another. `not_given` names the fields that
    no answer had, `unknown` those of answers that the suite does not have, `case_names` all cases,
    `unknown_cases` those of a directory, `not_answered` those without an answer, and `failures`
    those at which the candidate failed. `expected` has the meaning of each expected field. If the
    result `must_be_complete`, an incomplete one is not a match. `left_out` says how many inputs are
    outside the domain, and `not_diagnosed` how many mismatches are in cases that are too large.
    `remarks` are the candidate's own; a result with open entries is not a match. `of_rungs` names
    the codes and scales of rungs in answers, which are not compared. `entries_left_out` counts
    those of CASE/FIELD. `repeats` counts the cases that were asked again, and `changes`
    are those of the answers. Cases that were `not_asked` come after a failure. `ties` counts the
    entries next to a tie that were allowed to differ. `by_parameters` has each field of the cases
    that have the same parameters.
    """

    suite: str
    title: str
    normative: bool
    rules: tuple[str, ...]
    cases: int
    answered: int
    fields: tuple[FieldResult, ...]
    not_given: tuple[str, ...]
    unknown: Unknown
    unknown_cases: Unknown
    expected: Mapping[str, str]
    differences: tuple[Difference, ...]
    failures: tuple[Failure, ...] = ()
    must_be_complete: bool = False
    not_answered: tuple[str, ...] = ()
    left_out: str = ""
    case_names: tuple[str, ...] = ()
    not_diagnosed: int = 0
    remarks: Remarks = NO_REMARKS
    of_rungs: tuple[str, ...] = ()
    entries_left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)
    repeats: Repeats = NO_REPEATS
    not_asked: NotAsked = ALL_ASKED
    changes: tuple[Change, ...] = ()
    ties: int = 0
    by_parameters: tuple[FieldOfCases, ...] = ()

    def __add__(self, more: "SuiteResult") -> "SuiteResult":
        """Return the result of both parts of a suite, or of a case and its next strip."""
        is_strip = self.case_names[-1:] == more.case_names
        if is_strip:
            more = replace(
                more, cases=0, answered=0, not_answered=(), case_names=(), unknown=Unknown()
            )
        given = {one.name: one for one in self.fields}
        for field in more.fields:
            given[field.name] = given[field.name] + field if field.name in given else field
        expected = {**self.expected, **more.expected}
        missing = {*self.not_given, *more.not_given}
        left_out = Counter(self.entries_left_out) + Counter(more.entries_left_out)
        differences = _joined([*self.differences, *more.differences])
        return replace(
            self,
            cases=self.cases + more.cases,
            answered=self.answered + more.answered,
            fields=tuple(given[name] for name in expected if name in given),
            not_given=tuple(name for name in expected if name in missing and name not in given),
            unknown=self.unknown if self.unknown.names else more.unknown,
            expected=expected,
            differences=tuple(_without(left_out, differences)),
            failures=self.failures + more.failures,
            not_answered=self.not_answered + more.not_answered,
            case_names=self.case_names + more.case_names,
            remarks=self.remarks + more.remarks,
            of_rungs=tuple(dict.fromkeys(self.of_rungs + more.of_rungs)),
            entries_left_out=left_out,
            repeats=self.repeats + more.repeats,
            not_asked=self.not_asked + more.not_asked,
            changes=self.changes + more.changes,
            ties=self.ties + more.ties,
            by_parameters=added((*self.by_parameters, *more.by_parameters)),
        )

    def with_missing(self, missing: Sequence[Difference]) -> "SuiteResult":
        """Return the result if fields of some cases are missing that other parts have."""
        places = {name: place for place, name in enumerate(self.case_names)}
        order = {name: place for place, name in enumerate(self.expected)}
        differences = sorted(
            (*self.differences, *missing),
            key=lambda one: (places[one.case], order[one.suite_field]),
        )
        counts = Counter(one.suite_field for one in missing)
        fields = (
            replace(field, not_comparable=field.not_comparable + counts[field.name])
            for field in self.fields
        )
        return replace(self, differences=tuple(differences), fields=tuple(fields))

    @property
    def verdict(self) -> Verdict:
        """Whether all answered fields match; a suite without an answer was not run.

        A suite in which the candidate failed does not match, even if all answers do (PRO-010). Nor
        does one with a misspelt field.
        """
        if self.differences or self.changes:
            return "mismatch"
        if self.failures:
            return "failed"
        if self.must_be_complete and not self.is_complete:
            return "incomplete"
        if self.is_misspelt or self.remarks.open:
            return "incomplete"
        if self.ties:
            return "match but for ties"
        return "match" if self.compared else "not run"

    @property
    def said(self) -> tuple[str, ...]:
        """The remarks of the candidate, and those on the cause if there is a mismatch."""
        return self.remarks.lines + (self.remarks.notes if self.differences else ())

    @property
    def is_misspelt(self) -> bool:
        """Whether an unknown name is like that of a field that was not given."""
        return any(difflib.get_close_matches(name, self.not_given) for name in self.unknown.names)

    @property
    def is_complete(self) -> bool:
        """Whether each field of each case was given and could be compared, and nothing else was."""
        is_all = self.answered == self.cases and not self.not_given and not self.failures
        is_more = self.unknown.names or self.unknown_cases.names
        return is_all and self.is_comparable and not is_more

    @property
    def compared(self) -> int:
        """How many entries were compared."""
        return sum(field.compared for field in self.fields)

    @property
    def differing(self) -> int:
        """How many of the entries that were compared differ."""
        return sum(difference.count for difference in self.differences)

    @property
    def cases_differing(self) -> int:
        """In how many cases something differs, or cannot be compared."""
        return len({difference.case for difference in self.differences})

    @property
    def changed_cases(self) -> tuple[str, ...]:
        """The cases whose answer was another when they were asked again."""
        return tuple(dict.fromkeys(change.case for change in self.changes))

    @property
    def nans(self) -> int:
        """How many entries that differ are a NaN where a NaN is expected."""
        return sum(difference.nans for difference in self.differences)

    @property
    def is_equal_but_for_nans(self) -> bool:
        """Whether all that differs is a NaN where a NaN is expected."""
        return self.is_comparable and 0 < self.nans == self.differing

    @property
    def is_comparable(self) -> bool:
        """Whether all that was given has bits that could be compared."""
        return not self.not_comparable

    @property
    def not_comparable(self) -> int:
        """How many fields of cases could not be compared."""
        return sum(difference.problem is not None for difference in self.differences)

    @property
    def is_silent(self) -> bool:
        """Whether the candidate gave nothing at all, and nothing is known of the reason."""
        given = self.unknown.names or self.unknown_cases.names or self.of_rungs
        return self.verdict == "not run" and not (given or self.said or self.left_out)

    @property
    def why_nothing(self) -> str:
        """The reason why nothing was compared."""
        is_outside = bool(self.left_out) and (self.answered > 0 or not self.cases)
        if is_outside:
            return "all of it is left out"
        return f"the candidate has no {'known field' if self.unknown.names else 'answer'}"

    @property
    def has_answers(self) -> bool:
        """Whether anything was given that is expected, be it comparable or not."""
        return bool(self.compared or self.differences)

    @property
    def first_mismatching_field(self) -> FieldResult | None:
        """The first field that differs or could not be compared.

        A field that is equal but for the bits of NaN is named only if there is no other.
        """
        mismatching = [field for field in self.fields if not field.matches]
        beyond_nan = [f for f in mismatching if f.differing > f.nans or f.not_comparable]
        return next(iter(beyond_nan or mismatching), None)


def _joined(differences: Sequence[Difference]) -> Iterable[Difference]:
    """Return differences; those of the strips of a field together."""
    found: dict[tuple[str, str], Difference] = {}
    for one in differences:
        key = one.case, one.suite_field
        found[key] = found[key] + one if key in found else one
    return found.values()


def _without(
    left_out: Mapping[str, int], differences: Iterable[Difference]
) -> Iterable[Difference]:
    """Yield differences that do not count the entries of fields that are left out."""
    for one in differences:
        left = left_out.get(f"{one.case}/{one.suite_field}", 0)
        yield replace(one, of=math.prod(one.shape) - left) if left else one


def result_of(
    evidence: Evidence,
    entry: Mapping[str, Any],
    changes: tuple[Change, ...] = (),
    *,
    must_be_complete: bool,
) -> SuiteResult:
    """Return the result of the answers to a suite, or to a part of it."""
    given, left_out = evidence.given, evidence.left_out_of_fields
    differences = tuple(_without(left_out, evidence.differences()))
    fields = [
        _field_result(evidence, field, [d for d in differences if d.suite_field == field.name])
        for field in evidence.fields
        if field.name in given
    ]
    there = [field for field in evidence.fields if field.name in {*given, *evidence.not_given}]
    return SuiteResult(
        evidence.suite,
        entry["title"],
        entry["normative"],
        tuple(entry["rules"]),
        len(evidence.cases),
        evidence.answered,
        tuple(fields),
        tuple(evidence.not_given),
        unknown(evidence.unknown, [field.name for field in there]),
        unknown(evidence.other_cases, entry["cases"]),
        {field.name: field.words for field in there},
        differences,
        evidence.failures,
        must_be_complete,
        tuple(case.name for case in evidence.cases if case.name not in evidence.answers),
        case_names=tuple(case.name for case in evidence.cases),
        remarks=evidence.remarks,
        of_rungs=tuple(evidence.of_rungs),
        entries_left_out=left_out,
        repeats=evidence.repeats,
        not_asked=evidence.not_asked,
        changes=changes,
        ties=sum(one.allowed_ties for found in evidence.comparisons.values() for one in found),
        by_parameters=by_parameters(evidence),
    )


def _field_result(
    evidence: Evidence, field: Field, differences: Sequence[Difference]
) -> FieldResult:
    unlike = {d.case for d in differences if d.problem is not None}
    compared = (c for c in evidence.answered_with(field.name) if c.name not in unlike)
    return FieldResult(
        field.name,
        field.rules,
        sum(evidence.size_of(case, field.name) for case in compared),
        sum(d.count for d in differences),
        sum(d.nans for d in differences),
        len(unlike),
    )
