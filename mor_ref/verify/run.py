"""Running a candidate on suites, and what came of it."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mor_ref.golden.container import read_manifest, read_suite
from mor_ref.golden.suite import Field, chosen, question
from mor_ref.verify.candidates import Answer, Candidate, CandidateError, Folder
from mor_ref.verify.compare import AnswerError, Difference, fields_of, given_as
from mor_ref.verify.conformance import Conformance, conformance
from mor_ref.verify.diagnosis import Diagnosis, diagnose
from mor_ref.verify.evidence import Evidence, Failure

Verdict = Literal["match", "mismatch", "not run", "failed"]


@dataclass(frozen=True)
class Unknown:
    """Names that a candidate gave and nobody knows, and the known one that is like the first."""

    names: tuple[str, ...] = ()
    nearest: str = ""


@dataclass(frozen=True)
class FieldResult:
    """A field of a suite: how many of its entries were compared, and how many differ."""

    name: str
    rules: tuple[str, ...]
    compared: int
    differing: int


@dataclass(frozen=True)
class SuiteResult:
    """A candidate on a suite: how much was compared, and what differs.

    The fields are in the order in which one follows from another; `not_given` are those that no
    answer had, `unknown` what answers had that the suite has not, and `unknown_cases` the cases
    that a folder has and the suite has not. `expected` holds what all that are expected mean, in
    the same order.
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
    failure: Failure | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether all that was answered matches; a suite without an answer was not run.

        One in which the candidate failed is no match, whatever was compared before (PRO-010).
        """
        if self.differences:
            return "mismatch"
        if self.failure:
            return "failed"
        return "match" if self.compared else "not run"

    @property
    def compared(self) -> int:
        """How many entries were compared."""
        return sum(field.compared for field in self.fields)

    @property
    def differing(self) -> int:
        """How many entries differ."""
        return sum(difference.count for difference in self.differences)

    @property
    def is_comparable(self) -> bool:
        """Whether all that was given has bits that could be compared."""
        return not any(difference.problem for difference in self.differences)

    @property
    def stage(self) -> FieldResult | None:
        """The first field at which the candidate and the reference part."""
        return next((field for field in self.fields if field.differing), None)


@dataclass(frozen=True)
class Verification:
    """A candidate on suites, with what explains its mismatches.

    `not_asked` are the suites after the one in which the candidate failed, and `unknown` those that
    a folder has results of and nobody knows.
    """

    candidate: str
    vectors: str
    results: tuple[SuiteResult, ...]
    not_asked: tuple[str, ...]
    unknown: Unknown
    diagnosis: Diagnosis
    conformance: Conformance

    @property
    def verdict(self) -> Verdict:
        """A match needs a suite that was run, and none that differs or in which it failed."""
        if self.failure:
            return "failed"
        verdicts = {result.verdict for result in self.results}
        if "mismatch" in verdicts:
            return "mismatch"
        return "match" if "match" in verdicts else "not run"

    @property
    def failure(self) -> Failure | None:
        """Why the candidate could not be run to the end, if it could not."""
        return next((result.failure for result in self.results if result.failure), None)


def verify(
    candidate: Candidate,
    folder: Path,
    names: list[str],
    on_suite: Callable[[str], None] = lambda _: None,
    on_diagnosis: Callable[[str, int], None] = lambda _, __: None,
) -> Verification:
    """Run a candidate on the suites of a folder, all of them if none is named, until it fails.

    `on_suite` is called with the name of each suite that was run, and `on_diagnosis` with the name
    of each whose mismatches are about to be diagnosed, and how many such suites there are.
    """
    there = read_manifest(folder)["suites"]
    wanted = chosen(there, names)
    results, found = [], []
    for name in wanted:
        evidence = _asked(candidate, folder, name, there[name])
        results.append(_result(evidence, there[name]))
        found.append(evidence)
        on_suite(name)
        if evidence.failure:
            break
    wrong = [e for e, r in zip(found, results, strict=True) if r.differences]
    return Verification(
        candidate.name,
        str(folder),
        tuple(results),
        tuple(wanted[len(found) :]),
        _unknown(candidate.suites if isinstance(candidate, Folder) else (), there),
        diagnose(wrong, lambda name: on_diagnosis(name, len(wrong))),
        conformance(found, sum(len(there[name]["cases"]) for name in wanted)),
    )


def _asked(candidate: Candidate, folder: Path, name: str, entry: dict[str, Any]) -> Evidence:
    """What a candidate answers to the cases of a suite, up to one at which it fails."""
    fields, operation = fields_of(entry), entry["operation"]
    cases = read_suite(folder, name, entry)
    answers: dict[str, Answer] = {}
    for case in cases:
        try:
            answer = candidate.answer(name, operation, question(fields, case))
            _check(answer or {}, fields, f"{candidate.name}, case {case.name!r} of {name}")
        except CandidateError as error:
            failure = Failure(case.name, str(error))
            return Evidence(name, operation, fields, cases, answers, failure=failure)
        if answer is not None:
            answers[case.name] = answer
    others = candidate.cases(name) if isinstance(candidate, Folder) else ()
    return Evidence(name, operation, fields, cases, answers, others)


def _check(answer: Answer, fields: list[Field], whose: str) -> None:
    """Refuse an answer that cannot be compared with anything."""
    try:
        given_as(fields, answer)
    except AnswerError as error:
        raise CandidateError(f"{whose}: the answer {error}") from error


def _unknown(names: Iterable[str], known: Iterable[str]) -> Unknown:
    """The names that are not known."""
    strange = tuple(sorted({*names} - {*known}))
    nearest = difflib.get_close_matches(strange[0], [*known], n=1, cutoff=0.0) if strange else []
    return Unknown(strange, "".join(nearest))


def _result(evidence: Evidence, entry: dict[str, Any]) -> SuiteResult:
    given, differences = evidence.given, tuple(evidence.differences())
    there = {*given, *evidence.not_given}
    fields = [
        FieldResult(
            field.name,
            field.rules,
            sum(case.arrays[field.name].size for case in evidence.answered_with(field.name)),
            sum(d.count for d in differences if d.kept == field.name),
        )
        for field in evidence.fields
        if field.name in given
    ]
    expected = {field.name: field.meaning for field in evidence.fields if field.name in there}
    return SuiteResult(
        evidence.suite,
        entry["title"],
        entry["normative"],
        tuple(entry["rules"]),
        len(evidence.cases),
        evidence.answered,
        tuple(fields),
        tuple(evidence.not_given),
        _unknown(evidence.unknown, expected),
        _unknown(evidence.other_cases, [case.name for case in evidence.cases]),
        expected,
        differences,
        evidence.failure,
    )
