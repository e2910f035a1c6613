"""Verifying candidates: which can be opened, the status of a run and its reports."""

import json
import re
import signal
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from forking import MAIN
from terminals import errors_on_terminal
from verifying import DECISIONS, module, run

from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.numba_engine import Engine
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting import junit, report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["module"]  # a fixture


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("candidate", "status", "message"),
    [
        ("candidate:right", 0, "decisions: match, "),
        ("candidate:wrong", 1, "field accepted: 1 of "),
        ("candidate:failing", 3, "candidate:failing raised ArithmeticError on case 'mean_relative"),
        ("candidate:listing", 3, "returned a list for case 'mean_relative_error' of suite"),
        ("candidate:number", 3, "number is of type int, which cannot be called; give a function"),
        ("candidate:nothing", 3, "candidate:nothing cannot be imported: module 'candidate' has no"),
        (
            "nowhere:nothing",
            3,
            "nowhere:nothing cannot be imported: No module named 'nowhere'; give",
        ),
        ("dir:nowhere", 3, "nowhere is not a directory; give one with SUITE.safetensors files"),
        (
            "gpu",
            2,
            "candidate is 'gpu', which is not known; give numba, cuda, cuda-host, cuda-ptx,",
        ),
    ],
)
def test_exit_status(module, candidate, status, message):
    done = run(module, candidate, "--suite", "decisions")
    assert done.returncode == status, done.stderr
    assert message in (done.stdout + done.stderr).replace("\n", " ").replace("  ", " ")
    assert "Traceback" not in done.stderr


def test_reports_begin_with_the_verdict():
    """In JSON and in JUnit's XML; the page has a test of its own."""
    found = verify(Engine(), suites_in(bundled_files(), ["decisions", "error_steps"]))
    record = json.loads(report_files.as_json(found))
    assert [*record][:3] == ["candidate", "verdict", "complete"]
    assert [*record["results"][0]][:3] == ["suite", "verdict", "complete"]
    root = ET.fromstring(junit.as_junit(found))[0]  # noqa: S314  # made a line before
    assert [(one.get("name"), one.get("value")) for one in root[0]] == [
        ("verdict", "match"),
        ("conformance", str(found.conformance)),
    ]
    verdict, *_, last = report.lines(found)
    assert verdict == last == "numba: match (2 match, 0 mismatch, 0 not run)"


def test_reports(module):
    assert (
        run(module, "candidate:wrong", "--suite", "decisions", "--report", "r.json").returncode == 1
    )
    record = json.loads((module / "r.json").read_text())
    assert record["verdict"] == "mismatch"
    assert record["results"][0]["differences"][0]["entries"][0]["index"] == [3]
    both = ("--report", "r.xml", "--report", "second.json")
    status = run(module, "candidate:right", "--suite", "decisions", "--suite", "mx", *both)
    assert json.loads((module / "second.json").read_text())["verdict"] == "match"
    assert status.returncode == 0
    root = ET.parse(module / "r.xml").getroot()[0]  # noqa: S314  # written a line before
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "1")
    hostile = PythonFunction("a\x00\x1b\ud800<b>", lambda *_: {"accepted": np.zeros(3, np.uint8)})
    text = junit.as_junit(verify(hostile, suites_in(bundled_files(), ["decisions"])))
    assert "a???<b>" in ET.fromstring(text).get("name")  # noqa: S314  # made a line before
    wrong = run(module, "candidate:right", "--report", "r.pdf")
    assert wrong.returncode == 2
    assert "give a file that ends in .json, .xml or .html" in wrong.stderr


GIVE_RESULTS = "give one with SUITE.safetensors files, or with directories SUITE of files of cases"
GIVE = "; give MODULE:FUNCTION of a module that is installed or in the working directory"


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ("nowhere:nothing", f"nowhere:nothing cannot be imported: No module named 'nowhere'{GIVE}"),
        ("broken:run", f"broken:run cannot be imported: no\\udc80 such thing{GIVE}"),
        (
            "dir:nowhere",
            f"nowhere is not a directory; {GIVE_RESULTS}",
        ),
        (
            "candidate:number",
            "candidate:number is of type int, which cannot be called; give a function",
        ),
    ],
)
def test_a_candidate_that_cannot_be_opened_is_reported(module, candidate, said):
    """In place of the report of an earlier run."""
    (module / "broken.py").write_text("raise OSError('no\\udc80\\nsuch thing')")
    for kind in ("json", "xml", "html"):
        assert run(module, "candidate:right", *DECISIONS, "--report", f"r.{kind}").returncode == 0
        done = run(module, candidate, *DECISIONS, "--report", f"r.{kind}")
        assert done.returncode == 3
        assert said not in done.stderr  # the report has it, once
    assert done.stdout.splitlines() == [
        said,
        "not asked: decisions",
        "conformance: nothing was compared",
        f"{candidate}: failed (0 match, 0 mismatch, 1 not run)",
    ]
    record = json.loads((module / "r.json").read_text())
    assert (record["verdict"], record["complete"]) == ("failed", False)
    assert (record["results"], record["not_asked"]) == ([], ["decisions"])
    assert record["not_opened"] == {"case": None, "message": said}
    root = ET.parse(module / "r.xml").getroot()[0]  # noqa: S314  # written a line before
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "2", "failures": "0", "errors": "1", "skipped": "1"}
    assert root.find("testcase/error").get("message") == said
    page = (module / "r.html").read_text(encoding="utf-8")
    assert "✗ failed" in page
    assert "Not asked: <code>decisions</code>" in page


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("nowhere/r.json", "No such file or directory"),
        ("candidate.py/r.json", "Not a directory"),
        ("folder.json", "Is a directory"),
        ("/proc/r.xml", "No such file or directory"),
        (f"{'x' * 300}.html", "File name too long"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(module, report, reason):
    (module / "folder.json").mkdir()
    done = run(module, "candidate:failing", *DECISIONS, "--report", report)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"report is '{report}', which cannot be written ({reason}); give a" in done.stderr
    assert len(list(module.iterdir())) == 2


def test_no_report_of_another_run_is_left(module):
    """Whatever ends a run: here a signal that no program can handle."""
    text = "import os, signal\ndef run(*_):\n    os.kill(os.getppid(), signal.SIGKILL)\n"
    (module / "killing.py").write_text(text)
    assert run(module, "candidate:right", *DECISIONS, "--report", "r.json").returncode == 0
    done = run(module, "killing:run", *DECISIONS, "--report", "r.json")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert not (module / "r.json").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "kern.py:run",
            "give module:function, without .py, in the directory of the module: kern:run",
        ),
        ("./kern.py:run", "candidate is './kern.py:run'; give module:function, without .py, in"),
        ("../a/kern:run", "in the directory of the module: kern:run"),
        ("kern.py", "in the directory of the module: kern:FUNCTION"),
        ("kern", "candidate is 'kern', a module; give kern:FUNCTION"),
        ("kern2", "candidate is 'kern2', which is not known; give numba, cuda"),
    ],
)
def test_a_file_is_no_name_of_a_module(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kern.py").write_text("run = None\n")
    with pytest.raises(ValueError, match=re.escape(message)):
        candidate_named(name)


def test_a_time_that_is_none_is_refused_for_every_candidate():
    for name in ("numba", "dir:nowhere", "candidate:right", "exec:true"):
        for seconds in (0, -1, float("nan"), 1e7):
            with pytest.raises(ValueError, match=f"^timeout is {seconds}; give a number of sec"):
                candidate_named(name, seconds)


@pytest.mark.tier("full")
def test_progress(module):
    """Both callbacks are called, with the suites in turn; a diagnosis is on show while it lasts."""
    asked = []

    def wrong(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {name: array ^ array.dtype.type(1) for name, array in found.items()}

    verify(
        PythonFunction("wrong", wrong),
        suites_in(bundled_files(), ["scale_steps", "decisions"]),
        asked.append,
        lambda suite, of: asked.append((suite, of)),
    )
    assert asked == ["scale_steps", "decisions", ("scale_steps", 2), ("decisions", 2)]
    shown, fine = (
        errors_on_terminal(
            [sys.executable, "-c", MAIN, "verify", name, "--suite", "decisions"], cwd=module
        )
        for name in ("candidate:wrong", "candidate:right")
    )
    assert "verified decisions" in shown
    assert "diagnosed" in shown
    assert "diagnosed" not in fine


def test_the_engine_is_a_candidate():
    found = verify(Engine(), suites_in(bundled_files(), ["error_steps"]))
    assert found.verdict == "match"
    assert list(report.lines(found))[-1] == "numba: match (1 match, 0 mismatch, 0 not run)"
