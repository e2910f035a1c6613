"""Candidates in Python, which have a process of their own, and functions, which are called here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import forking
import numpy as np
import pytest
from verifying import DECISIONS, cases_of, eventually, failure_of, is_running, run

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import question
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates import own_process, python_process
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

LONG = 1e6  # seconds, for candidates that answer
MODULE = """
import ctypes, os, pathlib, signal, subprocess, sys, threading, time
from mor_ref.operations import OPERATIONS

def right(operation, parameters, inputs):
    return OPERATIONS[operation].engine(parameters, inputs)

def faulty(operation, parameters, inputs):
    match parameters["metric"], parameters.get("format"):
        case "mean_relative_error", _:
            os._exit(0)
        case "not_worse_than", _:
            os.kill(os.getpid(), signal.SIGKILL)
        case _, "e5m2":
            sys.exit(0)
        case _, "e4m3":
            raise KeyboardInterrupt
    return right(operation, parameters, inputs)

def hanging(operation, parameters, inputs):
    threading.Event().wait()

def forking(operation, parameters, inputs):
    child = ctypes.CDLL(None).fork() if parameters.get("format") else os.fork()
    if child == 0:
        pathlib.Path(f"child{os.getpid()}").touch()
        if parameters.get("metric") == "not_worse_than":
            raise ValueError
        time.sleep(0.1)
    return right(operation, parameters, inputs)

def moving(operation, parameters, inputs):
    os.makedirs("elsewhere", exist_ok=True)
    os.chdir("elsewhere")
    print("printed by the candidate")
    return right(operation, parameters, inputs)

def adding(operation, parameters, inputs):
    inputs["x"] += 1
    return {"code": inputs["x"][:2], "y": None}

def leaving(operation, parameters, inputs):
    with open("left", "a") as file:
        print(subprocess.Popen(["sleep", "1000"]).pid, file=file)
    return right(operation, parameters, inputs)

def leaving_a_child(operation, parameters, inputs):
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)

def ending(operation, parameters, inputs):
    os._exit(0)

def closing(operation, parameters, inputs):
    os.closerange(3, 256)

def killing_the_asker(operation, parameters, inputs):
    pathlib.Path("candidate").write_text(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGKILL)
    threading.Event().wait()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "own_process.py").write_text(MODULE)
    (tmp_path / "ends_at_once.py").write_text("import os\nos._exit(0)\n")
    (tmp_path / "never_there.py").write_text("import threading\nthreading.Event().wait()\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_whatever_ends_a_call_fails_its_case_alone():
    """An exit of any kind, a crash and an interrupt; each case after it is asked."""
    with candidate_named("own_process:faulty", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]))
    assert found.verdict == "failed"
    (result,) = found.results
    assert (result.cases, result.answered) == (cases_of("decisions"), 1)
    said = {failure.case: failure.message for failure in result.failures}
    ended = "own_process:faulty, case {!r} of suite 'decisions': its process {} before it had an"
    for case, how in (
        ("mean_relative_error", "ended with status 0"),
        ("not_worse_than", "was ended by signal 9 (Killed)"),
    ):
        assert said[case].startswith(ended.format(case, how))
    raised = "own_process:faulty raised {} on case {!r} of suite 'decisions'"
    assert said["fits_range.e5m2"].startswith(raised.format("SystemExit", "fits_range.e5m2"))
    assert said["fits_range.e4m3"].startswith(raised.format("KeyboardInterrupt", "fits_range.e4m3"))


def test_the_command_ends_with_a_verdict_where_a_candidate_exits(here):
    done = run(here, "own_process:faulty", *DECISIONS, "--report", "r.json")
    assert done.returncode == 3
    assert json.loads((here / "r.json").read_text())["verdict"] == "failed"


@pytest.mark.usefixtures("here")
def test_a_call_that_hangs_is_ended_at_the_limit():
    """And no more cases are asked once this took three limits."""
    with candidate_named("own_process:hanging", LONG) as candidate:
        candidate._seconds = 0.25  # of each case; the import may take longer
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]))
    assert found.verdict == "failed"
    assert 1 <= len(found.failures) <= 3
    assert found.cases_not_asked == cases_of("decisions") - len(found.failures)
    assert found.why_not_asked == (
        "failed cases took 3 times the limit of 0.25 s, which --timeout sets"
    )
    said = "own_process:hanging, case 'mean_relative_error' of suite 'decisions': it gave no answer"
    assert found.failures[0].message == f"{said} within 0.25 s; give more time with --timeout"


@pytest.mark.usefixtures("here")
def test_a_child_that_keeps_the_pipe_of_answers_is_ended_at_the_limit():
    """The process has ended by then, and the report says how."""
    with candidate_named("own_process:leaving_a_child", LONG) as candidate:
        candidate._seconds = 0.5
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]))
    assert found.verdict == "failed"
    assert "its process ended with status 0 before it had an answer" in found.failures[0].message


def test_what_a_candidate_starts_ends_with_it(here):
    """Though all answers are right, and its process ends by itself."""
    with candidate_named("own_process:leaving", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]))
    assert found.verdict == "match"
    left = [int(line) for line in (here / "left").read_text().split()]
    assert left
    eventually(lambda: not any(map(is_running, left)))


@pytest.mark.usefixtures("here")
def test_a_candidate_that_ends_in_every_case_is_soon_not_asked(monkeypatch):
    monkeypatch.setattr(own_process, "_MOST_IN_A_ROW", 3)
    with candidate_named("own_process:ending", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["encode"]))
    assert (found.verdict, len(found.failures)) == ("failed", 3)
    assert found.cases_not_asked == cases_of("encode") - 3
    assert found.why_not_asked == "3 cases in a row ended the process"


@pytest.mark.usefixtures("here")
def test_a_candidate_that_closes_the_pipe_of_answers_is_said_to(capfd):
    with candidate_named("own_process:closing", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions"]))
    assert found.verdict == "failed"
    assert "before it had an answer" in found.failures[0].message
    assert "Traceback" not in capfd.readouterr().err


def test_a_child_of_a_candidate_answers_nothing(here):
    """It returns or raises as well, before or after its parent, and ends then."""
    with candidate_named("own_process:forking", LONG) as candidate:
        found = verify(candidate, suites_in(bundled_files(), ["decisions", "error_steps"]))
        children = [int(path.name.removeprefix("child")) for path in here.glob("child*")]
    assert found.verdict == "match"
    assert len(children) > cases_of("decisions")
    for child in children:
        eventually(lambda child=child: not is_running(child))


def test_a_candidate_that_moves_and_prints_changes_nothing_here(here):
    done = run(here, "own_process:moving", *DECISIONS, "--report", "r.json")
    assert done.returncode == 0
    assert "printed" not in done.stdout
    assert "printed by the candidate\n" in done.stderr
    assert (here / "r.json").exists()


@pytest.mark.usefixtures("here")
def test_modules_that_cannot_be_opened(monkeypatch):
    monkeypatch.setattr(python_process, "_LONGEST_OPENING", 0.25)
    for name, seconds, said in (
        (
            "ends_at_once:f",
            LONG,
            "ends_at_once:f cannot be opened: its process ended with status 0",
        ),
        ("never_there:f", 0.25, "never_there:f cannot be opened: it gave no answer within 0.25 s"),
        ("nowhere:f", LONG, "nowhere:f cannot be imported: No module named 'nowhere'; give MODULE"),
    ):
        with pytest.raises(CandidateError) as refused, candidate_named(name, seconds):
            pass
        assert str(refused.value).startswith(said)


@pytest.mark.usefixtures("here")
def test_the_process_ends_with_the_one_that_asks():
    """Also where it is killed while the candidate hangs."""
    read, write = os.pipe()
    command = [sys.executable, "-c", forking.MAIN, "verify", "own_process:killing_the_asker"]
    with subprocess.Popen([*command, *DECISIONS], pass_fds=[write], stderr=write) as process:
        assert process.wait() == -9
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        pipe.read()  # to the end: no process has the other end of the pipe any more
    assert Path("candidate").exists()


def test_results_in_one_buffer_are_those_of_their_case():
    buffer = np.zeros(1 << 20, np.uint8)

    def in_one_buffer(operation, parameters, inputs):
        at, results = 0, {}
        for name, array in OPERATIONS[operation].engine(parameters, inputs).items():
            part = buffer[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
            part[...] = array
            at, results[name] = at + -(-array.nbytes // 8) * 8, part
        return results

    candidate = PythonFunction("in one buffer", in_one_buffer)
    assert verify(candidate, suites_in(bundled_files(), ["encode_presets"])).verdict == "match"


def test_parameters_that_a_candidate_changes_are_its_own():
    def changing(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        parameters["block"][0] = 0
        parameters.clear()
        return found

    (case, *_) = (one for one in golden.load("quantize") if one.parameters["block"] == [4, 8])
    asked = question(fields_of(suites_in(bundled_files(), ["quantize"]).entries["quantize"]), case)
    before = dict(asked.parameters) | {"block": list(asked.parameters["block"])}
    assert PythonFunction("changing", changing).answer("quantize", "quantize", asked)
    assert asked.parameters == before


class UnreadableError(Exception):
    def __str__(self):
        raise ValueError


def raising_what_cannot_be_read(*_):
    raise UnreadableError


class Lazy(dict):
    def items(self):
        raise SystemExit(0)


class Panicking:
    def __array__(self, *_, **__):
        raise KeyError("panic")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda *_: 1 // 0, "raised ZeroDivisionError on case "),
        (lambda *_: Lazy(), "raised SystemExit on case "),
        (raising_what_cannot_be_read, "an exception whose text cannot be had"),
    ],
)
def test_any_exception_is_a_failure(function, said):
    assert said in failure_of(PythonFunction("raising", function), "error_steps")


def test_an_array_that_raises_is_no_array():
    found = verify(
        PythonFunction("panicking", lambda *_: {"accepted": Panicking()}),
        suites_in(bundled_files(), ["decisions"]),
    )
    assert "is not an array ('panic'); give NumPy arrays" in str(found.results[0].differences[0])
