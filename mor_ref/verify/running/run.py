"""Running a candidate on suites, and the results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mor_ref.analysis.stored_tensors import SkippedTensor
from mor_ref.verify.candidates.candidate import Candidate, CandidateError
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.changed_answers import Change, changes_of
from mor_ref.verify.comparing.conformance import Conformance, Standing, conformance, standing_of
from mor_ref.verify.comparing.difference import Difference
from mor_ref.verify.comparing.domain import Domain, said_of_left_out, within
from mor_ref.verify.comparing.evidence import Evidence, Failure
from mor_ref.verify.comparing.near_ties import refuse_ties
from mor_ref.verify.diagnosing.diagnosis_records import Diagnosis
from mor_ref.verify.outcome import Outcome, Verdict
from mor_ref.verify.running.ask import Ask, ask_here
from mor_ref.verify.running.diagnosed_cases import DiagnosedCases
from mor_ref.verify.running.results import SuiteResult, result_of
from mor_ref.verify.running.suites import Entry, Suites
from mor_ref.verify.running.unknown_names import Unknown, unknown


@dataclass(frozen=True)
class Verification(Outcome):
    """A candidate on suites, with the deviations that explain its mismatches.

    `not_asked` are the suites after the last one that was asked; with the rest of this one, so many
    `cases_not_asked`, and `why_not_asked` says why. `unknown` are the
    unknown suites of a directory of results. `not_opened` says why no suite could be asked at all.
    `skipped` are the tensors of a user that no recipe takes, and `rounded` the names of those of
    float64, which were rounded first. The expected bits of so many tensors are
    `expected_from_engine`, and not from the exact model.
    """

    candidate: str
    vectors: str
    results: tuple[SuiteResult, ...]
    not_asked: tuple[str, ...]
    unknown: Unknown
    diagnosis: Diagnosis
    conformance: Conformance
    not_opened: Failure | None = None
    skipped: tuple[SkippedTensor, ...] = ()
    cases_not_asked: int = 0
    why_not_asked: str = ""
    rounded: tuple[str, ...] = ()
    expected_from_engine: int = 0

    @property
    def verdict(self) -> Verdict:
        """A match needs a suite that was run, and none that differs or in which it failed.

        A run that must be complete does not match if there are results of unknown suites, or
        skipped tensors.
        """
        if self.failures:
            return "failed"
        verdicts = {result.verdict for result in self.results}
        is_all = not self.unknown.names and not self.skipped
        if not is_all and any(result.must_be_complete for result in self.results):
            verdicts.add("incomplete")
        decisive: tuple[Verdict, ...] = ("mismatch", "incomplete", "match but for ties", "match")
        return next((verdict for verdict in decisive if verdict in verdicts), "not run")

    @property
    def is_complete(self) -> bool:
        """Whether all suites that were asked for are, and nothing else was given."""
        is_more = self.unknown.names or self.not_asked or self.skipped
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
    Inputs outside the `domain` are not compared. A suite may come in parts, one after the other,
    and only what a diagnosis looks at stays in memory.
    `on_suite` is called with the name of each suite, or part of one, that was run, and
    `on_diagnosis` before each diagnosis, with the number of suites to diagnose as well.
    """
    suites = asked_of(candidate, suites)
    refuse_ties(allowed.ties, {name: entry["operation"] for name, entry in suites.entries.items()})
    found: dict[str, _Found] = {}
    looked_at = DiagnosedCases(suites.most_diagnosed, with_parts=candidate.suites is not None)
    known = {**suites.entries, **suites.of_rungs}
    asked: set[tuple[str, str]] = set()
    for answered in ask(candidate, suites):
        counted = replace(answered, allowed=allowed)
        evidence, changes = within(counted, domain), changes_of(counted, domain)
        name = evidence.suite
        one = _found(evidence, known[name], changes, must_be_complete=must_be_complete)
        found[name] = found[name] + one if name in found else one
        looked_at.add(evidence)
        unasked = answered.not_asked.cases
        asked |= {(name, case.name) for case in answered.cases if case.name not in unasked}
        if name in suites.entries and not evidence.is_continued:
            on_suite(name)
        if evidence.is_over:
            break
        del answered, counted, evidence  # before the next is made
    whole = [one.whole(looked_at.passed_over(name)) for name, one in found.items()]
    diagnosis = looked_at.diagnosis(tuple(one.result for one in whole), on_diagnosis)
    verification = _verification(candidate, suites, whole, diagnosis)
    why = next((one.result.not_asked.why for one in whole if one.result.not_asked.why), "")
    left = _cases(suites) - sum(name in suites.entries for name, _ in asked) if why else 0
    return replace(verification, cases_not_asked=left, why_not_asked=why)


def _cases(suites: Suites) -> int:
    return sum(len(entry["cases"]) for entry in suites.entries.values())


def asked_of(candidate: Candidate, suites: Suites) -> Suites:
    """Return the suites that a candidate is asked: files need not have those for a diagnosis."""
    there = candidate.suites
    return suites if there is None else suites.of_files(there)


@dataclass(frozen=True)
class _Found:
    """The result of a suite, or of some parts of it, without its cases."""

    result: SuiteResult
    standing: Standing
    lacking: tuple[Difference, ...]

    def __add__(self, more: "_Found") -> "_Found":
        return _Found(
            self.result + more.result,
            self.standing + more.standing,
            self.lacking + more.lacking,
        )

    def whole(self, not_diagnosed: int) -> "_Found":
        """Return it after the last part: a field that any answer has is missing in all others."""
        missing = [one for one in self.lacking if one.suite_field in self.standing.given.fields]
        left_out = said_of_left_out([self.standing])
        result = replace(self.result, left_out=left_out, not_diagnosed=not_diagnosed)
        if not missing:
            return replace(self, result=result)
        return _Found(result.with_missing(missing), self.standing.not_conformant, ())


def _found(
    evidence: Evidence, entry: Entry, changes: tuple[Change, ...], *, must_be_complete: bool
) -> _Found:
    result = result_of(evidence, entry, changes, must_be_complete=must_be_complete)
    standing = standing_of(evidence)
    standing = standing.not_conformant if changes else standing
    return _Found(result, standing, tuple(evidence.lacking()))


def _verification(
    candidate: Candidate, suites: Suites, found: Sequence[_Found], diagnosis: Diagnosis
) -> Verification:
    """Return the verification of the suites that were asked, and of those of rungs."""
    names = {one.result.suite for one in found}
    of_rungs = {name: one for name, one in suites.of_rungs.items() if name in names}
    entries = {**suites.entries, **of_rungs}
    standings = [one.standing for one in found]
    return Verification(
        candidate.name,
        suites.source,
        tuple(one.result for one in found),
        tuple(name for name in suites.entries if name not in names),
        unknown(candidate.suites or (), suites.known),
        diagnosis,
        conformance(standings, entries, max(len(suites.known), len(entries))),
        skipped=suites.skipped,
        rounded=suites.rounded,
        expected_from_engine=suites.expected_from_engine,
    )


def not_opened(name: str, suites: Suites, error: CandidateError) -> Verification:
    """Return the report on a candidate that could not be opened: no suite was asked."""
    nothing = conformance([], suites.entries, len(suites.known))
    return Verification(
        name,
        suites.source,
        (),
        tuple(suites.entries),
        Unknown(),
        Diagnosis(),
        nothing,
        Failure(None, str(error)),
        suites.skipped,
        _cases(suites),
        error.why,
        suites.rounded,
    )
