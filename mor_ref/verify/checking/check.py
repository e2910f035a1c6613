"""Checking a directory of suites: everything that its files and its manifest say, in processes.

The manifest is compared with the suites of this program, and every value with the exact model.
`verify numba` compares the engine.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mor_ref.counts_in_words import counted
from mor_ref.definitions.block_formats import MissingFunctionError
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.expected import Memory, with_expected
from mor_ref.golden.model.suite import Case, Size, Suite, chosen, question
from mor_ref.golden.store.manifest import AGAIN, GoldenError, read_manifest
from mor_ref.golden.store.suite_files import elements_of, read_suite
from mor_ref.golden.suites import SUITES
from mor_ref.golden.suites.own import own_of_suite, suite_of_own
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.checking import suite_checks
from mor_ref.verify.checking.suite_checks import Finding
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.outcome import Outcome
from mor_ref.workers.pools import processes

Verdict = Literal["match", "mismatch", "unusable"]
_SHOWN = 8  # findings of a suite, as text


@dataclass(frozen=True)
class SuiteCheck(Outcome):
    """A suite: how many entries the exact model compared, and the findings.

    `computed` is how many inputs the exact model computed for it: in suites of rows and of small
    tensors, equal ones once. `model` says what computed the expected values: operations of a user
    have their own function.
    """

    suite: str
    cases: int = 0
    by_exact_model: int = 0
    computed: int = 0
    model: str = "the exact model"
    findings: tuple[Finding, ...] = ()
    is_usable: bool = True

    @property
    def verdict(self) -> Verdict:
        """Unusable if it cannot be read or computed; else a mismatch if there are findings."""
        if not self.is_usable:
            return "unusable"
        return "mismatch" if self.findings else "match"


@dataclass(frozen=True)
class Check(Outcome):
    """A directory of suites, and the findings in it outside its suites."""

    directory: str
    suites: tuple[SuiteCheck, ...]
    findings: tuple[Finding, ...]
    is_usable: bool = True

    @property
    def verdict(self) -> Verdict:
        """Unusable if it or a suite is; else a mismatch if it or a suite has findings."""
        if not self.is_usable or any(suite.verdict == "unusable" for suite in self.suites):
            return "unusable"
        is_off = self.findings or any(suite.findings for suite in self.suites)
        return "mismatch" if is_off else "match"


def check(
    directory: Path, names: list[str], on_suite: Callable[[str], None] = lambda _: None
) -> Check:
    """Check the suites of a directory, all of them if none is named.

    `on_suite` is called with the name of each suite that was checked.
    """
    manifest = read_manifest(directory)
    suites = manifest["suites"]
    size = Size(manifest["made_with"]["size"], manifest["made_with"]["seed"])
    wanted = chosen(suites, names)
    found = {}
    ordered = sorted(wanted, key=lambda name: -suites[name]["elements"])
    shards = [(directory, name, suites[name], size) for name in ordered]
    for number, result in processes().as_done(check_suite, shards):
        found[ordered[number]] = result
        on_suite(ordered[number])
    outside: list[Finding] = []
    is_usable = bool(names) or _add(outside, suite_checks.check_directory(directory, manifest))
    return Check(str(directory), tuple(found[name] for name in wanted), tuple(outside), is_usable)


def check_suite(directory: Path, name: str, entry: Mapping[str, Any], size: Size) -> SuiteCheck:
    """Check a suite; that it cannot be read or computed is a finding, and ends the check."""
    try:
        cases = read_suite(directory, name, entry)
        suite = _as_listed(name, entry)
        memory = Memory()
        exact = _evidence(suite, cases, functools.partial(_exact, suite, memory))
    except GoldenError as error:
        return SuiteCheck(name, findings=(Finding(str(error), name),), is_usable=False)
    found: list[Finding] = []
    if name in SUITES:
        found += suite_checks.check_definition(SUITES[name], entry)
        found += suite_checks.check_questions(SUITES[name], size, cases)
    elif (own := own_of_suite(name, entry)) is not None:
        found += suite_checks.check_definition(suite_of_own(own), entry)
    if entry["elements"] != elements_of(cases):
        what = f"the manifest says it has {entry['elements']:,} elements, and it has "
        found.append(Finding(f"{what}{elements_of(cases):,}", name))
    found += suite_checks.check_presence(exact)
    model = _model_of(suite.operation)
    found += suite_checks.check_values(exact, model)
    # Another size or seed may expose fewer deviations, and a suite of the user's own any.
    is_bundled = size == Size() and name in read_manifest(bundled_files())["suites"]
    found += suite_checks.check_witnesses(suite, entry["kills"], cases, lists_all=is_bundled)
    is_usable = _add(
        found, suite_checks.check_negative(directory, suite, entry.get("negative"), cases), name
    )
    counts = len(cases), _compared(exact), memory.computed
    return SuiteCheck(name, *counts, model, tuple(found), is_usable)


def _model_of(name: str) -> str:
    """Say what computes the expected values of an operation."""
    operation = OPERATIONS[name]
    if operation.model is operation.function:
        return "the function of its operation, which is also the engine"
    is_ours = operation.model.__module__.partition(".")[0] == __name__.partition(".")[0]
    return "the exact model" if is_ours else "the exact function of its own operation"


def _add(found: list[Finding], more: Iterator[Finding], suite: str | None = None) -> bool:
    """Add the findings; that something cannot be read is a finding, and False is returned."""
    try:
        found += more
    except GoldenError as error:
        found.append(Finding(str(error), suite))
        return False
    return True


def _as_listed(name: str, entry: Mapping[str, Any]) -> Suite:
    """Return the suite that the manifest describes; this program may have another."""
    rules, fields = tuple(entry["rules"]), tuple(fields_of(entry))
    return Suite(
        name,
        entry["title"],
        entry["operation"],
        rules,
        fields,
        lambda _: iter(()),
        entry["normative"],
    )


def _exact(suite: Suite, memory: Memory, case: Case) -> Answer:
    try:
        return with_expected(suite, case, memory).arrays
    except MissingFunctionError as error:
        raise GoldenError(f"case {case.name} cannot be computed here: {error}") from error
    except (ValueError, TypeError) as error:
        raise GoldenError(f"case {case.name} cannot be computed ({error}); {AGAIN}") from error


def _evidence(suite: Suite, cases: list[Case], answer: Callable[[Case], Answer | None]) -> Evidence:
    found = {case.name: answer(question(suite.fields, case)) for case in cases}
    given = {name: one for name, one in found.items() if one is not None}
    return Evidence(suite.name, suite.operation, list(suite.fields), cases, given)


def _compared(evidence: Evidence) -> int:
    return sum(
        case.arrays[field].size
        for case in evidence.cases
        for field in evidence.chosen.get(case.name, ())
        if field in case.arrays
    )


def lines(found: Check) -> Iterator[str]:
    """Yield the lines of the report."""
    for suite in found.suites:
        yield (
            f"{suite.suite}: {suite.verdict}, {counted(suite.by_exact_model, 'entry')} of "
            f"{counted(suite.cases, 'case')} compared with {suite.model}, which computed "
            f"{counted(suite.computed, 'input')}"
        )
        yield from (f"  {finding}" for finding in suite.findings[:_SHOWN])
        if len(suite.findings) > _SHOWN:
            yield f"  and {counted(len(suite.findings) - _SHOWN, 'more finding')}"
    yield from map(str, found.findings)
    count = len(found.findings) + sum(len(suite.findings) for suite in found.suites)
    counts = f"{counted(len(found.suites), 'suite')}, {counted(count, 'finding')}"
    yield f"{found.directory}: {found.verdict} ({counts})"
