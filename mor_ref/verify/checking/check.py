"""Checking a folder of suites: everything that its files and its manifest say, in processes.

The manifest is held to what this program says of its suites, and every value to the exact model;
those that the engine gives to the engine as well.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mor_ref.golden.making.witnesses import completed
from mor_ref.golden.model.suite import Case, Size, Suite, chosen, question
from mor_ref.golden.store.container import GoldenError, elements_of, read_manifest, read_suite
from mor_ref.golden.store.manifest import AGAIN
from mor_ref.golden.suites import SUITES
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.checking import findings
from mor_ref.verify.checking.findings import Finding
from mor_ref.verify.comparing.compare import fields_of
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.reporting.counts import counted
from mor_ref.workers.pools import processes

Verdict = Literal["match", "mismatch", "unusable"]
_SHOWN = 8  # findings of a suite, as text


@dataclass(frozen=True)
class SuiteCheck:
    """A suite: how many entries were held to the exact model, and to the engine; what is off."""

    suite: str
    cases: int = 0
    by_exact_model: int = 0
    by_engine: int = 0
    findings: tuple[Finding, ...] = ()
    is_usable: bool = True

    @property
    def verdict(self) -> Verdict:
        """A suite that nothing is off in matches; one that cannot be read or computed cannot."""
        if not self.is_usable:
            return "unusable"
        return "mismatch" if self.findings else "match"


@dataclass(frozen=True)
class Check:
    """A folder of suites, and what is off in it beside its suites."""

    folder: str
    suites: tuple[SuiteCheck, ...]
    findings: tuple[Finding, ...]
    is_usable: bool = True

    @property
    def verdict(self) -> Verdict:
        """A folder that nothing is off in matches; a suite that is unusable makes it so too."""
        if not self.is_usable or any(suite.verdict == "unusable" for suite in self.suites):
            return "unusable"
        is_off = self.findings or any(suite.findings for suite in self.suites)
        return "mismatch" if is_off else "match"


def check(
    folder: Path, names: list[str], on_suite: Callable[[str], None] = lambda _: None
) -> Check:
    """Check the suites of a folder, all of them if none is named.

    `on_suite` is called with the name of each suite that was checked.
    """
    manifest = read_manifest(folder)
    suites = manifest["suites"]
    size = Size(manifest["made_with"]["size"], manifest["made_with"]["seed"])
    wanted = chosen(suites, names)
    found = {}
    ordered = sorted(wanted, key=lambda name: -suites[name]["elements"])
    shards = [(folder, name, suites[name], size) for name in ordered]
    for number, result in processes().as_done(check_suite, shards):
        found[ordered[number]] = result
        on_suite(ordered[number])
    beside: list[Finding] = []
    is_usable = bool(names) or _add(beside, findings.of_folder(folder, manifest))
    return Check(str(folder), tuple(found[name] for name in wanted), tuple(beside), is_usable)


def check_suite(folder: Path, name: str, entry: Mapping[str, Any], size: Size) -> SuiteCheck:
    """Check a suite; that it cannot be read or computed is a finding, and ends the check."""
    try:
        cases = read_suite(folder, name, entry)
        suite = _as_listed(name, entry)
        exact = _evidence(suite, cases, functools.partial(_exact, suite))
        engine = _evidence(suite, cases, functools.partial(Engine().answer, name, suite.operation))
    except GoldenError as error:
        return SuiteCheck(name, findings=(Finding(str(error), name),), is_usable=False)
    found: list[Finding] = []
    if name in SUITES:
        found += findings.of_definition(SUITES[name], entry)
        found += findings.of_questions(SUITES[name], size, cases)
    if entry["elements"] != elements_of(cases):
        what = f"the manifest says it has {entry['elements']:,} elements, and it has "
        found.append(Finding(f"{what}{elements_of(cases):,}", name))
    found += findings.of_presence(exact)
    found += findings.of_values(exact, "the exact model")
    found += findings.of_values(engine, "the engine")
    found += findings.of_kills(suite, entry["kills"], cases)
    is_usable = _add(found, findings.of_negative(folder, suite, entry.get("negative"), cases), name)
    counts = len(cases), _compared(exact), _compared(engine)
    return SuiteCheck(name, *counts, tuple(found), is_usable)


def _add(found: list[Finding], more: Iterator[Finding], suite: str | None = None) -> bool:
    """Add to what was found; that something cannot be read is a finding, and False is returned."""
    try:
        found += more
    except GoldenError as error:
        found.append(Finding(str(error), suite))
        return False
    return True


def _as_listed(name: str, entry: Mapping[str, Any]) -> Suite:
    """The suite that the manifest describes, whatever this program has under that name."""
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


def _exact(suite: Suite, case: Case) -> Answer:
    try:
        return completed(suite, case).arrays
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
    """What people read of it."""
    for suite in found.suites:
        yield (
            f"{suite.suite}: {suite.verdict}, {counted(suite.by_exact_model, 'entry')} of "
            f"{counted(suite.cases, 'case')} held to the exact model, {suite.by_engine:,} of them "
            "to the engine"
        )
        yield from (f"  {finding}" for finding in suite.findings[:_SHOWN])
        if len(suite.findings) > _SHOWN:
            yield f"  and {counted(len(suite.findings) - _SHOWN, 'more finding')}"
    yield from map(str, found.findings)
    count = len(found.findings) + sum(len(suite.findings) for suite in found.suites)
    counts = f"{counted(len(found.suites), 'suite')}, {counted(count, 'finding')}"
    yield f"{found.folder}: {found.verdict} ({counts})"
