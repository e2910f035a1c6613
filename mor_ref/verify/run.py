"""Running a candidate on suites, and what came of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mor_ref.golden.container import read_manifest, read_suite
from mor_ref.golden.suite import chosen
from mor_ref.verify.candidates import Candidate
from mor_ref.verify.compare import Difference, differences, inputs_of

Verdict = Literal["match", "mismatch", "not run"]


@dataclass(frozen=True)
class SuiteResult:
    """A candidate on a suite: how much was compared, and what differs."""

    suite: str
    title: str
    normative: bool
    rules: tuple[str, ...]
    cases: int
    answered: int
    compared: int
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether all that was answered matches; a suite without an answer was not run."""
        if not self.answered:
            return "not run"
        return "mismatch" if self.differences else "match"

    @property
    def differing(self) -> int:
        """How many entries differ."""
        return sum(difference.count for difference in self.differences)


@dataclass(frozen=True)
class Verification:
    """A candidate on all suites."""

    candidate: str
    vectors: str
    results: tuple[SuiteResult, ...]

    @property
    def verdict(self) -> Verdict:
        """A match needs a suite that was run, and none that differs."""
        verdicts = {result.verdict for result in self.results}
        for verdict in ("mismatch", "match"):
            if verdict in verdicts:
                return "mismatch" if verdict == "mismatch" else "match"
        return "not run"


def verify(
    candidate: Candidate,
    folder: Path,
    names: list[str],
    on_suite: Callable[[SuiteResult], None] = lambda _: None,
) -> Verification:
    """Run a candidate on the suites of a folder, all of them if none is named."""
    there = read_manifest(folder)["suites"]
    results = []
    for name in chosen(there, names):
        results.append(_on_suite(candidate, folder, name, there[name]))
        on_suite(results[-1])
    return Verification(candidate.name, str(folder), tuple(results))


def _on_suite(candidate: Candidate, folder: Path, name: str, entry: dict[str, Any]) -> SuiteResult:
    given = tuple(field["name"] for field in entry["fields"] if field["role"] == "input")
    expected = {f["name"]: f["format"] for f in entry["fields"] if f["role"] == "expected"}
    cases = read_suite(folder, name, entry)
    found: list[Difference] = []
    answered = compared = 0
    for case in cases:
        question = inputs_of(case, given)
        answer = candidate.answer(name, entry["operation"], question)
        if answer is not None:
            answered += 1
            compared += sum(case.arrays[field].size for field in expected if field in case.arrays)
            found.extend(differences(case, expected, question.arrays, answer))
    return SuiteResult(
        name,
        entry["title"],
        entry["normative"],
        tuple(entry["rules"]),
        len(cases),
        answered,
        compared,
        tuple(found),
    )


def all_differences(verification: Verification) -> Iterator[tuple[SuiteResult, Difference]]:
    """Every difference with its suite."""
    for result in verification.results:
        for difference in result.differences:
            yield result, difference
