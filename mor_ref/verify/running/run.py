"""Running a candidate on suites, and the results."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mor_ref.golden.model.suite import Field
from mor_ref.verify.candidates.candidate import Candidate
from mor_ref.verify.candidates.results_directory import ResultsDirectory
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.compare import Difference
from mor_ref.verify.comparing.conformance import Conformance, conformance
from mor_ref.verify.comparing.domain import Domain, said_of_left_out, within
from mor_ref.verify.comparing.evidence import Evidence, Failure
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.records import Diagnosis
from mor_ref.verify.running.ask import Ask, ask_here
from mor_ref.verify.running.suites import Suites
from mor_ref.verify.running.unknown import Unknown, unknown

Verdict = Literal["match", "mismatch", "incomplete", "not run", "failed"]


@dataclass(frozen=True)
class FieldResult:
    """A field of a suite: how many of its entries were compared, and how many differ.

    `nans` counts those that are a NaN where a NaN is expected, and `not_comparable` the cases in
    which nothing was compared.
    """

    name: str
    rules: tuple[str, ...]
    compared: int
    differing: int
    nans: int = 0
    not_comparable: int = 0

    @property
    def matches(self) -> bool:
        """Whether all of it could be compared, and nothing differs."""
        return not self.differing and not self.not_comparable


@dataclass(frozen=True)
class SuiteResult:
    """Result of a candidate on a suite.

    `fields` are in the order in which one follows from another. `not_given` names the fields that
    no answer had, `unknown` those of answers that the suite does not have, `case_names` all cases,
    `unknown_cases` those of a directory, `not_answered` those without an answer, and `failures`
    those at which the candidate failed. `expected` has the meaning of each expected field. If the
    result `must_be_complete`, an incomplete one is not a match. `left_out` says how many inputs are
    outside the domain.
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

    @property
    def verdict(self) -> Verdict:
        """Whether all answered fields match; a suite without an answer was not run.

        A suite in which the candidate failed does not match, even if all answers do (PRO-010). Nor
        does one with a misspelt field.
        """
        if self.differences:
            return "mismatch"
        if self.failures:
            return "failed"
        if self.must_be_complete and not self.is_complete:
            return "incomplete"
        if self.is_misspelt:
            return "incomplete"
        return "match" if self.compared else "not run"

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


@dataclass(frozen=True)
class Verification:
    """A candidate on suites, with the deviations that explain its mismatches.

    `not_asked` are the suites after the last one that was asked. `unknown` are the
    unknown suites of a directory of results. `not_opened` says why no suite could be asked at all.
    """

    candidate: str
    vectors: str
    results: tuple[SuiteResult, ...]
    not_asked: tuple[str, ...]
    unknown: Unknown
    diagnosis: Diagnosis
    conformance: Conformance
    not_opened: Failure | None = None

    @property
    def verdict(self) -> Verdict:
        """A match needs a suite that was run, and none that differs or in which it failed.

        A run that must be complete does not match if there are results of unknown suites.
        """
        if self.failures:
            return "failed"
        verdicts = {result.verdict for result in self.results}
        if self.unknown.names and any(result.must_be_complete for result in self.results):
            verdicts.add("incomplete")
        decisive: tuple[Verdict, ...] = ("mismatch", "incomplete", "match")
        return next((verdict for verdict in decisive if verdict in verdicts), "not run")

    @property
    def is_complete(self) -> bool:
        """Whether all suites that were asked for are, and nothing else was given."""
        is_more = self.unknown.names or self.not_asked
        return not is_more and all(result.is_complete for result in self.results)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Where the candidate failed, and why."""
        if self.not_opened:
            return (self.not_opened,)
        return tuple(failure for result in self.results for failure in result.failures)


def verify(
    candidate: Candidate,
    suites: Suites,
    on_suite: Callable[[str], None] = lambda _: None,
    on_diagnosis: Callable[[str, int], None] = lambda _, __: None,
    *,
    must_be_complete: bool = False,
    ask: Ask = ask_here,
    allowed: Allowed = EVERY_BIT,
    domain: Domain = "all",
) -> Verification:
    """Run a candidate on suites.

    If the candidate fails at a case, the others still run. If suites `must_be_complete`, one that
    was answered in part is not a match. `ask` yields the answers; `allowed` bits may differ.
    Inputs outside the `domain` are not compared.
    `on_suite` is called with the name of each suite that was run, and `on_diagnosis` before each
    diagnosis, with the number of suites to diagnose as well.
    """
    results, found = [], []
    for answered in ask(candidate, suites):
        evidence = within(replace(answered, allowed=allowed), domain)
        entry = suites.entries[evidence.suite]
        results.append(_result(evidence, entry, must_be_complete=must_be_complete))
        found.append(evidence)
        on_suite(evidence.suite)
        if evidence.is_over:
            break
    wrong = [e for e, r in zip(found, results, strict=True) if r.differences]
    right = [e for e, r in zip(found, results, strict=True) if r.verdict == "match"]
    there = candidate.suites if isinstance(candidate, ResultsDirectory) else ()
    return Verification(
        candidate.name,
        str(suites.directory),
        tuple(results),
        tuple(suites.entries)[len(found) :],
        unknown(there, suites.known),
        diagnose(wrong, right, lambda name: on_diagnosis(name, len(wrong))),
        conformance(found, suites.entries, len(suites.known)),
    )


def not_opened(name: str, suites: Suites, reason: str) -> Verification:
    """Return the report on a candidate that could not be opened: no suite was asked."""
    nothing = conformance([], suites.entries, len(suites.known))
    return Verification(
        name,
        str(suites.directory),
        (),
        tuple(suites.entries),
        Unknown(),
        Diagnosis(),
        nothing,
        Failure(None, reason),
    )


def _result(evidence: Evidence, entry: dict[str, Any], *, must_be_complete: bool) -> SuiteResult:
    given, differences = evidence.given, tuple(evidence.differences())
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
        unknown(evidence.other_cases, [case.name for case in evidence.cases]),
        {field.name: field.meaning for field in there},
        differences,
        evidence.failures,
        must_be_complete,
        tuple(case.name for case in evidence.cases if case.name not in evidence.answers),
        said_of_left_out([evidence]),
        tuple(case.name for case in evidence.cases),
    )


def _field_result(
    evidence: Evidence, field: Field, differences: Sequence[Difference]
) -> FieldResult:
    unlike = {d.case for d in differences if d.problem is not None}
    compared = (c for c in evidence.answered_with(field.name) if c.name not in unlike)
    return FieldResult(
        field.name,
        field.rules,
        sum(case.arrays[field.name].size for case in compared),
        sum(d.count for d in differences),
        sum(d.nans for d in differences),
        len(unlike),
    )
