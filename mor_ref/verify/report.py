"""Reports of a verification: JSON and JUnit's XML for machines, lines for people."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

from mor_ref.golden.container import write_whole
from mor_ref.verify.run import SuiteResult, Verification

_SHOWN = 5  # differences of a suite


def lines(verification: Verification) -> Iterator[str]:
    """What people read."""
    for result in verification.results:
        yield from _suite_lines(result)
    counts = [
        f"{sum(result.verdict == verdict for result in verification.results)} {verdict}"
        for verdict in ("match", "mismatch", "not run")
    ]
    yield f"{verification.candidate}: {verification.verdict} ({', '.join(counts)})"


def _suite_lines(result: SuiteResult) -> Iterator[str]:
    if result.verdict == "not run":
        yield f"{result.suite}: not run, the candidate has no answer"
        return
    foreign = "" if result.normative else ", not normative"
    some = "" if result.answered == result.cases else f" of {result.cases}"
    yield (
        f"{result.suite}: {result.verdict}, {result.compared:,} entries of {result.answered}{some} "
        f"cases{foreign}"
    )
    for difference in result.differences[:_SHOWN]:
        yield f"  {difference}"
    if result.differences:
        if len(result.differences) > _SHOWN:
            yield f"  and {len(result.differences) - _SHOWN} more fields of cases"
        yield f"  rules: {', '.join(result.rules)}"


def as_json(verification: Verification) -> str:
    """Everything that was found."""
    record = asdict(verification) | {"verdict": verification.verdict}
    for entry, result in zip(record["results"], verification.results, strict=True):
        entry["verdict"] = result.verdict
    return json.dumps(record, indent=1)


def as_junit(verification: Verification) -> str:
    """A test for each suite, as continuous integration shows them."""
    root = ET.Element(
        "testsuite",
        name=f"mor-ref verify {verification.candidate}",
        tests=str(len(verification.results)),
        failures=str(sum(r.verdict == "mismatch" for r in verification.results)),
        skipped=str(sum(r.verdict == "not run" for r in verification.results)),
        errors="0",
    )
    for result in verification.results:
        test = ET.SubElement(root, "testcase", classname="mor_ref", name=result.suite)
        if result.verdict == "not run":
            ET.SubElement(test, "skipped", message="the candidate has no answer")
        elif result.verdict == "mismatch":
            text = "\n".join(_suite_lines(result))
            message = f"{result.differing} entries differ"
            ET.SubElement(test, "failure", message=message).text = text
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


_WRITERS = {".json": as_json, ".xml": as_junit}


def check_report(path: Path) -> None:
    """Refuse a report of a kind that is not written, before anything is run."""
    if path.suffix not in _WRITERS:
        raise ValueError(f"report is {str(path)!r}; give a file that ends in .json or .xml")


def write_report(verification: Verification, path: Path) -> None:
    """Write the report that the end of the name asks for."""
    check_report(path)
    write_whole(path, _WRITERS[path.suffix](verification).encode())
