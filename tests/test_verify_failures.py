"""Verifying candidates that fail, or answer what nobody asked."""

import json
import re
import shutil
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from safetensors.numpy import save_file
from test_page import differing, made
from verifying import DECIDING, MANIFEST, cases_of, entries_of, failure_of, module, on, run

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import Candidate, CandidateError
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.evidence import Failure
from mor_ref.verify.reporting import junit, report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.field_result import FieldResult
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["module"]  # a fixture


def test_an_answer_to_other_inputs_is_refused(tmp_path):
    """Who returns an input returns it as it was."""

    def repeating(change):
        def function(asked, parameters, inputs):
            return {**OPERATIONS[asked].engine(parameters, inputs), "x": change(inputs["x"])}

        return PythonFunction("repeating", function)

    names = ["quantize_steps"]
    assert verify(repeating(np.copy), suites_in(bundled_files(), names)).verdict == "match"
    for change in (lambda x: x ^ np.uint32(1), lambda x: x[:-1], lambda x: x.view(np.float32)):
        said = failure_of(repeating(change), *names)
        assert "repeating, case 'e4m3' of quantize_steps: the answer changes the input 'x'" in said
    case = golden.load("quantize_steps")[0]
    arrays = {f"{case.name}/{name}": array for name, array in case.arrays.items()}
    save_file(arrays, tmp_path / "quantize_steps.safetensors")
    folder = candidate_named(f"dir:{tmp_path}")
    assert verify(folder, suites_in(bundled_files(), names)).verdict == "match"
    arrays[f"{case.name}/x"] = case.arrays["x"][::-1].copy()
    save_file(arrays, tmp_path / "quantize_steps.safetensors")
    assert "changes the input 'x'; compute from the inputs" in (
        failure_of(candidate_named(f"dir:{tmp_path}"), *names)
    )


class UnsayableError(RuntimeError):
    """An exception whose text is another one."""

    def __str__(self):
        raise OSError("no text")


def test_an_exception_without_a_text_is_a_failure_as_well():
    def function(*_):
        raise UnsayableError

    said = failure_of(PythonFunction("failing", function), "decisions")
    assert "failing raised UnsayableError on case" in said
    assert "an exception whose text cannot be had" in said


@pytest.mark.tier("full")
def test_what_was_compared_next_to_a_failure_is_reported(module):
    """PRO-010, for functions as well: in all reports, and never as a match.

    A case that raises ends no other case and no other suite.
    """
    suites = ("--suite", "decisions", "--suite", "error_steps")
    for kind in ("json", "xml", "html"):
        done = run(module, "candidate:breaking", *suites, "--report", f"r.{kind}")
        assert done.returncode == 3
    said = (
        "candidate:breaking raised ArithmeticError on case 'not_worse_than' of suite 'decisions': "
        "no units left \\udc80!!!"
    )
    assert said not in done.stderr  # the report has it, once
    others = [case for case in golden.load("decisions") if case.name != "not_worse_than"]
    (verdict, *lines), size = (
        done.stdout.splitlines(),
        sum(case.arrays["accepted"].size for case in others),
    )
    cases = cases_of("decisions")
    assert lines[0] == f"decisions: failed, {size:,} entries in {cases - 1} of {cases} cases"
    assert lines[1].startswith(f"  it failed: {said}")
    assert len(lines[1]) < 500
    assert lines[2:] == [
        f"error_steps: match, {3 * entries_of('error_steps', 'u'):,} entries in 1 case",
        f"asked again: 3 of {cases} cases, 4 times in all; the same answers",
        (
            f"conformance: bit-exact in the given part: 4 fields, {cases} of {cases + 1} cases, "
            f"1 of {len(DECIDING) + 1} rules in full, 2 suites (of {len(MANIFEST)}); "
            "the rest was not shown"
        ),
        "candidate:breaking: failed (1 match, 0 mismatch, 0 not run, 1 failed)",
    ]
    assert verdict == lines[-1]
    record = json.loads((module / "r.json").read_text())
    assert (record["verdict"], record["not_asked"]) == ("failed", [])
    assert [result["verdict"] for result in record["results"]] == ["failed", "match"]
    (failure,) = record["results"][0]["failures"]
    assert failure["case"] == "not_worse_than"
    assert failure["message"].startswith(said)
    root = ET.parse(module / "r.xml").getroot()[0]  # noqa: S314  # written a line before
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "0", "errors": "1", "skipped": "0"}
    assert root.find("testcase/error").get("message").startswith(said)
    page = (module / "r.html").read_text(encoding="utf-8")
    assert "✗ failed" in page
    assert "no units left" in page


def test_cases_that_are_not_asked_any_more_are_counted_in_all_reports():
    """Those after the failure that ends the run, and those of the other suites."""

    class Late(Candidate):
        name = "late"

        def answer(self, _, operation, case):
            if case.name == "not_worse_than":
                raise CandidateError("it gave no answer", "run", "it was late too often")
            return OPERATIONS[operation].engine(case.parameters, case.arrays)

    found = verify(Late(), suites_in(bundled_files(), ["decisions", "error_steps"]))
    names = [case.name for case in golden.load("decisions")]
    left = names[names.index("not_worse_than") + 1 :]
    assert found.results[0].not_asked.cases == tuple(left)
    said = f"{len(left) + 1} cases were not asked: it was late too often"
    assert said in list(report.lines(found))
    assert f"<p>{said}</p>" in report_files.as_html(found)
    record = json.loads(report_files.as_json(found))
    assert record["cases_not_asked"] == len(left) + 1
    assert record["why_not_asked"] == "it was late too often"
    root = ET.fromstring(junit.as_junit(found))  # noqa: S314  # made a line before
    assert root.find("testsuite/properties/property[@name='not asked']").get("value") == said
    skipped = [test.get("name") for test in root.iter("testcase") if len(test.findall("skipped"))]
    assert skipped == ["error_steps", *left]
    messages = {one.get("message") for one in root.iter("skipped")}
    assert messages == {"not asked: it was late too often"}


def test_suites_are_counted_by_their_verdict():
    """A failure next to a mismatch is said, and a suite that was not asked is not run."""
    failures = (Failure("one", "no units left"),)
    (wrong,) = made([differing()], ["wrong"]).results
    right, failed = (
        replace(wrong, suite=name, differences=(), fields=(FieldResult("code", (), 9, 0),))
        for name in ("right", "failed")
    )
    failed = replace(failed, answered=0, fields=(), failures=failures, case_names=("one",))
    results = (right, replace(wrong, failures=failures), failed)
    found = replace(made(), results=results, not_asked=("late",))
    assert report.verdict_line(found).endswith(
        " (1 match, 1 mismatch, 1 not run, 1 failed; it also failed in 1 suite with a mismatch)"
    )
    root = ET.fromstring(junit.as_junit(found))  # noqa: S314  # made a line before
    assert [one.get("name") for one in root[1:]] == ["right", "wrong", "failed"]
    assert {one.get("name"): one[0].tag for one in root[0].findall("testcase")} == {
        "right": "system-out",
        "wrong": "failure",
        "wrong, cases that failed": "error",
        "failed": "error",
        "late": "skipped",
    }
    assert root.find("testsuite[@name='failed']/testcase/error").get("message") == "no units left"


def test_all_cases_that_failed_are_named():
    """The first with its message, and the others by name."""

    def raising(operation, parameters, inputs):
        if operation == "decide":
            raise ArithmeticError
        return OPERATIONS[operation].engine(parameters, inputs)

    found = verify(
        PythonFunction("raising", raising), suites_in(bundled_files(), ["decisions", "error_steps"])
    )
    first, *others = (case.name for case in golden.load("decisions"))
    lines = list(report.lines(found))
    cases = cases_of("decisions")
    assert lines[1] == f"decisions: failed, nothing was compared in {cases} cases"
    assert f"raising raised ArithmeticError on case '{first}' of suite 'decisions'" in lines[2]
    assert lines[3] == f"  and in {cases - 1} other cases: {', '.join(others)}"
    assert [result.verdict for result in found.results] == ["failed", "match"]
    assert [failure.case for failure in found.failures] == [first, *others]


def test_every_status_has_a_test_that_does_not_pass(tmp_path):
    """In JUnit: also where no suite says why the status is not 0."""

    def counts(found):
        root = ET.fromstring(junit.as_junit(found))[0]  # noqa: S314  # made a line before
        return {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}

    nothing = verify(
        PythonFunction("nothing", lambda *_: None), suites_in(bundled_files(), ["decisions"])
    )
    assert nothing.verdict == "not run"
    assert counts(nothing) == {"tests": "2", "failures": "0", "errors": "1", "skipped": "1"}
    for name in ("decisions", "decision"):
        shutil.copy(bundled_files() / "decisions.safetensors", tmp_path / f"{name}.safetensors")
    folder = candidate_named(f"dir:{tmp_path}")
    strange = verify(folder, suites_in(bundled_files(), ["decisions"]), must_be_complete=True)
    assert strange.verdict == "incomplete"
    assert counts(strange) == {"tests": "2", "failures": "1", "errors": "0", "skipped": "0"}


@pytest.mark.tier("full")
def test_a_mismatch_before_a_failure_is_one(module):
    """And it is diagnosed; what comes of the run is still that it failed."""
    done = run(module, "candidate:breaking_wrong", "--suite", "decisions", "--report", "r.xml")
    assert done.returncode == 3
    first, cases = done.stdout.splitlines()[0], cases_of("decisions")
    assert re.fullmatch(
        rf"decisions: mismatch, ([\d,]+) of \1 entries differ, in {cases - 1} of {cases - 1} cases "
        rf"compared; the suite has {cases}",
        first,
    )
    assert "  it failed: candidate:breaking_wrong raised ArithmeticError" in done.stdout
    assert "first mismatching field: accepted " in done.stdout
    assert "explains" in done.stdout
    counts = "0 match, 1 mismatch, 0 not run; it also failed in 1 suite with a mismatch"
    assert f"candidate:breaking_wrong: failed ({counts})" in done.stdout
    root = ET.parse(module / "r.xml").getroot()[0]  # noqa: S314  # written a line before
    assert "it failed" in root.find("testcase/failure").text
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "1", "errors": "1", "skipped": "0"}


def test_cases_and_suites_that_nobody_knows_are_named(tmp_path):
    """In a directory of results; right fields next to them are compared."""
    right = golden.load("decisions")[0]
    known = {f"{right.name}/accepted": right.arrays["accepted"]}
    strange = {f"{right.name}x/accepted": right.arrays["accepted"], "zz/accepted": np.zeros(3)}
    save_file(known | strange, tmp_path / "decisions.safetensors")
    save_file(known, tmp_path / "decision.safetensors")
    save_file(known, tmp_path / "mx.safetensors")  # not asked for, and known
    found = verify(candidate_named(f"dir:{tmp_path}"), suites_in(bundled_files(), ["decisions"]))
    assert found.verdict == "match"
    assert found.results[0].unknown_cases.names == (f"{right.name}x", "zz")
    assert found.unknown.names == ("decision",)
    assert not found.is_complete
    text = "\n".join(report.lines(found))
    assert (
        f"  not cases of this suite: {right.name}x, zz; "
        f"the nearest to {right.name}x is {right.name}\n"
    ) in text
    assert "\nnot suites: decision; the nearest to decision is decisions\n" in text
    page = report_files.as_html(found)
    assert f"not cases of this suite: <code>{right.name}x</code>, <code>zz</code>; the near" in page
    assert "not suites: <code>decision</code>; the nearest to <code>decision</code> is" in page


def test_complete_asks_for_suites_that_are_known(tmp_path):
    """A name that is misspelt is not made good by the suites that are not."""
    shutil.copy(bundled_files() / "decisions.safetensors", tmp_path)
    for is_strange, verdict in ((False, "match"), (True, "incomplete")):
        if is_strange:
            shutil.copy(
                bundled_files() / "error_steps.safetensors", tmp_path / "error_step.safetensors"
            )
        candidate = candidate_named(f"dir:{tmp_path}")
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]), must_be_complete=True)
        assert (found.verdict, found.is_complete) == (verdict, not is_strange)
        assert verify(candidate, suites_in(bundled_files(), ["decisions"])).verdict == "match"


@pytest.mark.tier("full")
def test_a_directory_in_which_nothing_is_known(module):
    """The status is 3, and the message has the found and the expected."""
    directory = module / "results"
    directory.mkdir()
    (directory / "decisions.npz").write_bytes(b"")
    done = run(module, "dir:results", "--suite", "decisions")
    assert done.returncode == 3
    assert (
        "results has no file of results, but decisions.npz; give one with SUITE.saf"
        in (done.stdout.splitlines()[0])
    )
    accepted, ok = "mean_relative_error/accepted", "mean_relative_error/ok"
    for name, key, nothing, message in (
        ("decision", accepted, "answer", "not suites: decision; the nearest to"),
        ("decisions", "mean/accepted", "answer", "  not cases of this suite: mean; the nearest"),
        ("decisions", ok, "known field", "  not fields of this suite: ok; the nearest to"),
    ):
        for file in directory.iterdir():
            file.unlink()
        save_file({key: np.zeros(3, np.uint8)}, directory / f"{name}.safetensors")
        done = run(module, "dir:results", "--suite", "decisions")
        assert done.returncode == 3
        assert done.stdout.startswith(f"decisions: not run, the candidate has no {nothing}\n")
        assert message in done.stdout


def test_names_that_nobody_knows_are_many(tmp_path):
    arrays = {f"case{k}/accepted": np.zeros(1, np.uint8) for k in range(3000)}
    save_file(arrays, tmp_path / "decisions.safetensors")
    found = verify(candidate_named(f"dir:{tmp_path}"), suites_in(bundled_files(), ["decisions"]))
    text = "\n".join(report.lines(found))
    assert "case1004, case1005 and 2,990 more; the nearest to case0 is " in text


def test_a_name_that_is_none_is_named():
    """As one that nobody knows, next to the fields that are compared."""
    for name, shown in (("caf\xe9", "'caf\\xe9'"), (7, "7"), ("a b", "'a b'")):
        found = on(lambda f, name=name: f | {name: f["accepted"]})
        assert found.verdict == "match"
        assert found.results[0].unknown.names == (shown,)


def test_a_candidate_that_exits_or_changes_its_inputs_is_held_to_what_it_gave():
    def leaving(*_):
        raise SystemExit(0)

    class PanicError(BaseException):
        """A panic of Rust, as Python sees it."""

    def panicking(*_):
        raise PanicError("index out of bounds")

    said = failure_of(PythonFunction("leaving", leaving), "decisions")
    assert "leaving raised SystemExit on case" in said
    said = failure_of(PythonFunction("panicking", panicking), "decisions")
    assert "panicking raised PanicError on case" in said

    def spoiling(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, {n: a.copy() for n, a in inputs.items()})
        for array in inputs.values():
            array[:] = 0
        return found

    found = verify(
        PythonFunction("spoiling", spoiling), suites_in(bundled_files(), ["quantize_steps"])
    )
    assert found.verdict == "match"


def test_each_case_is_a_test():
    """In JUnit: its differences, why it failed, or that it has no answer."""

    def some(operation, parameters, inputs):
        if parameters.get("format") == "bf16" or operation == "error_term":
            return None
        if parameters["metric"] == "not_worse_than":
            raise ArithmeticError
        found = OPERATIONS[operation].engine(parameters, inputs)["accepted"].copy()
        found[3] ^= parameters.get("format") == "e5m2"
        return {"accepted": found}

    for must_be_complete, unanswered in ((False, "skipped"), (True, "failure")):
        found = verify(
            PythonFunction("some", some),
            suites_in(bundled_files(), ["decisions", "error_steps"]),
            must_be_complete=must_be_complete,
        )
        root = ET.fromstring(junit.as_junit(found))  # noqa: S314  # made a line before
        assert [one.get("name") for one in root] == ["mor-ref verify some", "decisions"]
        tests = {one.get("name"): one for one in root[1]}
        assert list(tests) == [case.name for case in golden.load("decisions")]
        assert {one.get("classname") for one in root[1]} == {"mor_ref.decisions"}
        ends = {
            name: (one[0].tag, one[0].get("message")) for name, one in tests.items() if len(one)
        }
        said = ends.pop("not_worse_than")
        assert said[0] == "error"
        assert "some raised ArithmeticError" in said[1]
        assert ends == {
            "fits_range.e5m2": ("failure", "1 entry differs"),
            "fits_range.bf16": (unanswered, "the candidate has no answer"),
        }
        assert "field accepted: 1 of 1040 differ" in tests["fits_range.e5m2"][0].text
        is_strict = int(must_be_complete)
        assert {name: root[1].get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": str(cases_of("decisions")),
            "failures": str(1 + is_strict),
            "errors": "1",
            "skipped": str(1 - is_strict),
        }
        assert int(root.get("tests")) == len(root.findall("testsuite/testcase"))
