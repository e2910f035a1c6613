"""Reports in files: JSON and JUnit's XML for machines, a page for people."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

from mor_ref.golden.container import write_whole
from mor_ref.verify.page import as_html
from mor_ref.verify.report import suite_lines, verdicts
from mor_ref.verify.run import Verification


def as_json(verification: Verification) -> str:
    """Everything that was found."""
    record = asdict(verification) | {"verdict": verification.verdict}
    for entry, result in zip(record["results"], verification.results, strict=True):
        entry["verdict"] = result.verdict
        entry["stage"] = result.stage.name if result.stage else None
    record["conformance"]["text"] = str(verification.conformance)
    return json.dumps(record, indent=1)


def as_junit(verification: Verification) -> str:
    """A test for each suite, as continuous integration shows them."""
    diagnoses = {diagnosis.suite: diagnosis for diagnosis in verification.diagnosis.suites}
    root = ET.Element(
        "testsuite",
        name=f"mor-ref verify {verification.candidate}",
        tests=str(len(verification.results) + len(verification.not_asked)),
        failures=str(sum(r.verdict == "mismatch" for r in verification.results)),
        skipped=str(verdicts(verification)["not run"]),
        errors=str(sum(r.verdict == "failed" for r in verification.results)),
    )
    for result in verification.results:
        test = ET.SubElement(root, "testcase", classname="mor_ref", name=result.suite)
        text = "\n".join(suite_lines(result, diagnoses.get(result.suite)))
        if result.verdict == "not run":
            ET.SubElement(test, "skipped", message="the candidate has no answer").text = text
        elif result.verdict == "mismatch":
            message = f"{result.differing} entries differ"
            ET.SubElement(test, "failure", message=message).text = text
        elif result.failure:
            ET.SubElement(test, "error", message=result.failure.message).text = text
        else:
            ET.SubElement(test, "system-out").text = text
    for suite in verification.not_asked:
        test = ET.SubElement(root, "testcase", classname="mor_ref", name=suite)
        ET.SubElement(test, "skipped", message="the candidate had failed before")
    ET.indent(root)
    return _NOT_OF_XML.sub("?", ET.tostring(root, encoding="unicode", xml_declaration=True)) + "\n"


# Names come from elsewhere, and XML has no way to write these characters.
_NOT_OF_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
WRITERS: dict[str, Callable[[Verification], str]] = {
    ".json": as_json,
    ".xml": as_junit,
    ".html": as_html,
}


def check_report(path: Path) -> None:
    """Refuse a report of a kind that is not written, before anything is run."""
    if path.suffix not in WRITERS:
        raise ValueError(f"report is {str(path)!r}; give a file that ends in .json, .xml or .html")


def write_report(verification: Verification, path: Path) -> None:
    """Write the report that the end of the name asks for."""
    check_report(path)
    write_whole(path, WRITERS[path.suffix](verification).encode())
