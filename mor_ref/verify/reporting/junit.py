"""Reports as JUnit's XML, which continuous integration shows."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict
from xml.etree import ElementTree as ET

from mor_ref.counts_in_words import counted, differing_in_case
from mor_ref.verify.comparing.conformance import ties_allowed
from mor_ref.verify.reporting.origin import Origin
from mor_ref.verify.reporting.text import (
    cases_not_asked,
    differing,
    expected_bits,
    failing,
    suite_lines,
)
from mor_ref.verify.running.results import SuiteResult
from mor_ref.verify.running.run import Verification

# Names come from elsewhere, and XML has no way to write these characters.
_NOT_OF_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(verification: Verification, made: Origin | None = None) -> str:
    """Return a test for each suite, and one for each case of a suite that was answered.

    The origin is in the properties of the first suite, with the verdict.
    """
    root = ET.Element("testsuites", name=f"mor-ref verify {verification.candidate}")
    _suites(ET.SubElement(root, "testsuite", name=root.get("name", "")), verification, made)
    for result in verification.results:
        if result.has_answers or result.failures:
            _cases(ET.SubElement(root, "testsuite", name=result.suite), result)
    for one in root:
        _count(one, "testcase")
    _count(root, "testsuite/testcase")
    ET.indent(root)
    return _NOT_OF_XML.sub("?", ET.tostring(root, encoding="unicode", xml_declaration=True)) + "\n"


def _suites(root: ET.Element, verification: Verification, made: Origin | None) -> None:
    """Add the verdict, and a test for each suite with the explanation of its mismatches."""
    diagnoses = {diagnosis.suite: diagnosis for diagnosis in verification.diagnosis.suites}
    origin = {} if made is None else {f"made.{key}": said for key, said in asdict(made).items()}
    verdict = {"verdict": verification.verdict, "conformance": str(verification.conformance)}
    left = cases_not_asked(verification)
    not_asked = {"not asked": left} if left else {}
    bits = "; ".join(expected_bits(verification))
    expected = {"expected bits": bits} if bits else {}
    _properties(root, verdict | not_asked | expected | origin)
    if verification.not_opened:
        _test(root, verification.candidate, "error", verification.not_opened.message)
    for result in verification.results:
        text = "\n".join(suite_lines(result, diagnoses.get(result.suite)))
        _test(root, result.suite, *_outcome(result), text)
        if result.verdict == "mismatch" and result.failures:
            failed = "\n".join(failing(result))
            _test(root, f"{result.suite}, cases that failed", "error", *_failed(result), failed)
    for suite in verification.not_asked:
        _test(root, suite, "skipped", f"not asked: {verification.why_not_asked}")
    for tensor in verification.skipped:
        _test(root, tensor.name, "skipped", str(tensor))
    _verdict_of_no_suite(root, verification)


def _cases(root: ET.Element, result: SuiteResult) -> None:
    """Add a test for each case, with its differences."""
    failures = {failure.case: failure.message for failure in result.failures}
    differences = defaultdict(list)
    for difference in result.differences:
        differences[difference.case].append(difference)
    for name in result.case_names:
        if name in differences:
            entries = sum(one.count for one in differences[name])
            fields = sum(one.problem is not None for one in differences[name])
            message = differing_in_case(entries, fields)
            text = "\n".join(map(str, differences[name]))
            _test(root, name, "failure", message, text, result.suite)
        elif name in result.changed_cases:
            message = "another answer when it was asked again"
            text = "\n".join(str(change) for change in result.changes if change.case == name)
            _test(root, name, "failure", message, text, result.suite)
        elif name in failures:
            _test(root, name, "error", failures[name], "", result.suite)
        elif name in result.not_asked.cases:
            _test(root, name, "skipped", f"not asked: {result.not_asked.why}", "", result.suite)
        elif name in result.not_answered:
            kind = "failure" if result.must_be_complete else "skipped"
            _test(root, name, kind, "the candidate has no answer", "", result.suite)
        else:
            ET.SubElement(root, "testcase", classname=f"mor_ref.{result.suite}", name=name)


def _count(root: ET.Element, tests: str) -> None:
    """Say how many tests there are, and how many of them did not pass."""
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        root.set(count, str(len(root.findall(f"{tests}/{kind}"))))
    root.set("tests", str(len(root.findall(tests))))


def _outcome(result: SuiteResult) -> tuple[str, str | None]:
    """Return the kind of test that a suite becomes, and its message."""
    match result.verdict:
        case "mismatch":
            return "failure", differing(result)
        case "incomplete" if result.remarks.open:
            return "failure", f"{counted(result.remarks.open, 'entry')} without defined bits"
        case "incomplete":
            return "failure", "the answers are incomplete"
        case "failed":
            return "error", *_failed(result)
        case "not run":
            return "skipped", result.why_nothing
        case "match but for ties":
            return "failure", ties_allowed(result.ties)
        case "match":
            return "system-out", None


def _failed(result: SuiteResult) -> tuple[str]:
    """Return why the candidate failed at the first of the cases at which it did."""
    return (result.failures[0].message,)


def _verdict_of_no_suite(root: ET.Element, verification: Verification) -> None:
    """Add a failing test for a verdict that no suite has, so that each status but 0 has one."""
    strange = verification.unknown.names
    if verification.verdict == "incomplete" and strange:
        _test(root, verification.candidate, "failure", f"not suites: {', '.join(strange)}")
    if verification.verdict == "incomplete" and verification.skipped:
        skipped = counted(len(verification.skipped), "tensor")
        _test(root, verification.candidate, "failure", f"{skipped} skipped")
    if verification.verdict == "not run":
        _test(root, verification.candidate, "error", str(verification.conformance))


def _properties(root: ET.Element, values: Mapping[str, str]) -> None:
    found = ET.SubElement(root, "properties")
    for name, value in values.items():
        ET.SubElement(found, "property", name=name, value=value)


def _test(
    root: ET.Element, name: str, kind: str, message: str | None, text: str = "", suite: str = ""
) -> None:
    classname = f"mor_ref.{suite}" if suite else "mor_ref"
    test = ET.SubElement(root, "testcase", classname=classname, name=name)
    said = ET.SubElement(test, kind, {} if message is None else {"message": message})
    said.text = text or None
