"""Running a candidate on suites, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mor_ref.golden.container import read_manifest, read_suite
from mor_ref.golden.suite import chosen, question
from mor_ref.verify.candidates import Candidate, CandidateError
from mor_ref.verify.compare import AnswerError, Difference, fields_of
from mor_ref.verify.conformance import Conformance, conformance
from mor_ref.verify.diagnosis import Diagnosis, diagnose
from mor_ref.verify.evidence import Evidence

Verdict = Literal["match", "mismatch", "not run"]


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
    answer had, and `unknown` what answers had that the suite has not. `expected` holds what all
    that are expected mean, in the same order.
    """

    suite: str
    title: str
    normative: bool
    rules: tuple[str, ...]
    cases: int
    answered: int
    fields: tuple[FieldResult, ...]
    not_given: tuple[str, ...]
    unknown: tuple[str, ...]
    expected: Mapping[str, str]
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether all that was answered matches; a suite without an answer was not run."""
        if not self.compared:
            return "not run"
        return "mismatch" if self.differences else "match"

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
    """A candidate on all suites, with what explains its mismatches."""

    candidate: str
    vectors: str
    results: tuple[SuiteResult, ...]
    diagnosis: Diagnosis
    conformance: Conformance

    @property
    def verdict(self) -> Verdict:
        """A match needs a suite that was run, and none that differs."""
        verdicts = {result.verdict for result in self.results}
        if "mismatch" in verdicts:
            return "mismatch"
        return "match" if "match" in verdicts else "not run"


def verify(
    candidate: Candidate,
    folder: Path,
    names: list[str],
    on_suite: Callable[[str], None] = lambda _: None,
    on_diagnosis: Callable[[str, int], None] = lambda _, __: None,
) -> Verification:
    """Run a candidate on the suites of a folder, all of them if none is named.

    `on_suite` is called with the name of each suite that was run, and `on_diagnosis` with the name
    of each whose mismatches are about to be diagnosed, and how many such suites there are.
    """
    there = read_manifest(folder)["suites"]
    results, found = [], []
    for name in chosen(there, names):
        evidence = _answers(candidate, folder, name, there[name])
        results.append(_result(evidence, there[name]))
        found.append(evidence)
        on_suite(name)
    wrong = [e for e, r in zip(found, results, strict=True) if r.verdict == "mismatch"]
    return Verification(
        candidate.name,
        str(folder),
        tuple(results),
        diagnose(wrong, lambda name: on_diagnosis(name, len(wrong))),
        conformance(found),
    )


def _answers(candidate: Candidate, folder: Path, name: str, entry: dict[str, Any]) -> Evidence:
    fields, operation = fields_of(entry), entry["operation"]
    cases = read_suite(folder, name, entry)
    answers = {}
    for case in cases:
        answer = candidate.answer(name, operation, question(fields, case))
        if answer is not None:
            answers[case.name] = answer
    return Evidence(name, operation, fields, cases, answers)


def _result(evidence: Evidence, entry: dict[str, Any]) -> SuiteResult:
    try:
        given = evidence.given
        differences = tuple(evidence.differences())
    except AnswerError as error:
        raise CandidateError(f"the answer to suite {evidence.suite!r} {error}") from error
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
    there = {*given, *evidence.not_given}
    return SuiteResult(
        evidence.suite,
        entry["title"],
        entry["normative"],
        tuple(entry["rules"]),
        len(evidence.cases),
        len(evidence.answers),
        tuple(fields),
        tuple(evidence.not_given),
        tuple(evidence.unknown),
        {field.name: field.meaning for field in evidence.fields if field.name in there},
        differences,
    )
