"""Reports in files: JSON and JUnit's XML for machines, a page for people."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mor_ref.addresses import cause_path, on_site, rule_path
from mor_ref.golden import bundled_files
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.verify.comparing.difference import Difference, Entry
from mor_ref.verify.comparing.distance import shown
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.origin import Origin, origin_here
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.rules import known_among
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification
from mor_ref.whole_files import write_whole


def as_json(verification: Verification, made: Origin | None = None) -> str:
    """Return everything that was found, the conclusion first, the origin last."""
    conclusion = ("candidate", "verdict", "complete", "conformance", "diagnosis", "addresses")
    first = dict.fromkeys(conclusion)
    record: dict[str, Any] = first | asdict(verification)
    record |= {"verdict": verification.verdict, "complete": verification.is_complete}
    if verification.vectors == str(bundled_files()):
        record["vectors"] = "bundled"  # wherever this package lies
    record["conformance"]["text"] = str(verification.conformance)
    record["addresses"] = _addresses(verification)
    record["results"] = [_suite(result) for result in verification.results]
    if made is not None:
        record["made"] = asdict(made)
    return json.dumps(record, indent=1)


def _addresses(verification: Verification) -> dict[str, str]:
    """Return where the causes and the rules are described that the record names."""
    explanations = [e for suite in verification.diagnosis.suites for e in suite.explanations]
    causes = sorted({name for one in explanations for name in one.deviations})
    rules = known_among(
        [
            *(rule for one in explanations for rule in one.rules),
            *(rule for result in verification.results for rule in result.rules),
            *(r for result in verification.results for field in result.fields for r in field.rules),
        ]
    )
    paths = {name: cause_path(name) for name in causes if name in CAUSES}
    paths |= {rule.id: rule_path(rule.id) for rule in rules}
    return {name: on_site(path) for name, path in paths.items()}


def _suite(result: SuiteResult) -> dict[str, Any]:
    record: dict[str, Any] = dict.fromkeys(("suite", "verdict", "complete", "stage")) | asdict(
        result
    )
    record |= {"verdict": result.verdict, "complete": result.is_complete}
    del record["by_parameters"]  # a declaration has it
    first = result.first_mismatching_field
    record["stage"] = None if first is None else first.name  # one that differs is false
    record["differences"] = [_difference(one) for one in result.differences]
    return record


def _difference(difference: Difference) -> dict[str, Any]:
    """Return a field that differs, with the numbers of its entries as bits and as values."""
    entries = [_entry(entry, difference) for entry in difference.entries]
    kinds = [
        {"words": kind.words, "count": kind.count, "entry": _entry(kind.entry, difference)}
        for kind in difference.kinds
    ]
    return asdict(difference) | {"entries": entries, "kinds": kinds}


def _entry(entry: Entry, of: Difference) -> dict[str, Any]:
    return {
        "index": entry.index,
        "expected": _number(entry.expected, of.format, of.number(entry.expected)),
        "actual": _number(entry.actual, of.format, of.number(entry.actual)),
        "distance": of.apart(entry),
        "inputs": [
            {"what": i.what} | _number(i.bits, i.format, shown(i.bits, i.format))
            for i in entry.inputs
        ],
    }


def _number(bits: int, fmt: str, said: str) -> dict[str, Any]:
    return {"bits": bits, "format": fmt, "shown": said}


WRITERS: dict[str, Callable[[Verification, Origin, str | None], str]] = {
    ".json": lambda found, made, _: as_json(found, made),
    ".xml": lambda found, made, _: as_junit(found, made),
    ".html": as_html,
}


def write_reports(
    verification: Verification, paths: Iterable[Path], site: str | None = None
) -> None:
    """Write reports of the kinds that their names end in; rules on a page lead to the `site`."""
    paths = list(paths)
    if not paths:
        return  # the origin of a candidate is read from all its files
    made = origin_here(verification.candidate, Path(verification.vectors))
    for path in paths:
        write_whole(path, WRITERS[path.suffix](verification, made, site).encode())
