"""Reports in files: JSON and JUnit's XML for machines, a page for people."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mor_ref.golden.store.whole_files import write_whole
from mor_ref.verify.comparing.compare import Difference
from mor_ref.verify.comparing.distance import distance, shown
from mor_ref.verify.reporting.junit import as_junit
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification


def as_json(verification: Verification) -> str:
    """Return everything that was found, the conclusion first."""
    first = dict.fromkeys(("candidate", "verdict", "complete", "conformance", "diagnosis"))
    record: dict[str, Any] = first | asdict(verification)
    record |= {"verdict": verification.verdict, "complete": verification.is_complete}
    record["conformance"]["text"] = str(verification.conformance)
    record["results"] = [_suite(result) for result in verification.results]
    return json.dumps(record, indent=1)


def _suite(result: SuiteResult) -> dict[str, Any]:
    record: dict[str, Any] = dict.fromkeys(("suite", "verdict", "complete", "stage")) | asdict(
        result
    )
    record |= {"verdict": result.verdict, "complete": result.is_complete}
    first = result.first_mismatching_field
    record["stage"] = first.name if first else None
    record["differences"] = [_difference(one) for one in result.differences]
    return record


def _difference(difference: Difference) -> dict[str, Any]:
    """Return a field that differs, with the numbers of its entries as bits and as values."""
    entries = [
        {
            "index": entry.index,
            "expected": _number(entry.expected, difference.format),
            "actual": _number(entry.actual, difference.format),
            "distance": distance(entry.actual, entry.expected, difference.format),
            "inputs": [{"what": i.what} | _number(i.bits, i.format) for i in entry.inputs],
        }
        for entry in difference.entries
    ]
    return asdict(difference) | {"entries": entries}


def _number(bits: int, fmt: str) -> dict[str, Any]:
    return {"bits": bits, "format": fmt, "shown": shown(bits, fmt)}


WRITERS: dict[str, Callable[[Verification], str]] = {
    ".json": as_json,
    ".xml": as_junit,
    ".html": as_html,
}


def prepare_report(path: Path) -> None:
    """Refuse a report that cannot be written, before anything is run; and remove an older one.

    If this run ends early, nobody takes the report of an older run for its own.
    """
    if path.suffix not in WRITERS:
        raise ValueError(f"report is {str(path)!r}; give a file that ends in .json, .xml or .html")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(
            f"report is {str(path)!r}, which cannot be written ({error.strerror}); give a file in "
            "a directory that is there and can be written to"
        ) from error


def write_report(verification: Verification, path: Path) -> None:
    """Write the report that the end of the name asks for."""
    write_whole(path, WRITERS[path.suffix](verification).encode())
