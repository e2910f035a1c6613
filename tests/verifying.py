"""Candidates that the tests of verifying ask, and the runs on them."""

import os
import time
from pathlib import Path

import forking
import pytest

from mor_ref import golden
from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.diagnosing.diagnosis_records import Diagnosis
from mor_ref.verify.running import diagnosed_cases
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

MODULE = """
import numpy as np
from mor_ref.operations import OPERATIONS

def right(operation, parameters, inputs):
    return OPERATIONS[operation].engine(parameters, inputs) if operation == "decide" else None

def wrong(operation, parameters, inputs):
    found = right(operation, parameters, inputs)
    if found is not None:
        found["accepted"] = found["accepted"].copy()
        found["accepted"][3] ^= 1
    return found

def failing(operation, parameters, inputs):
    raise ArithmeticError("no units left")

def breaking(operation, parameters, inputs):
    if parameters.get("metric") == "not_worse_than":
        raise ArithmeticError("no units\\nleft \\udc80" + 400 * "!")
    return OPERATIONS[operation].engine(parameters, inputs)

def breaking_wrong(operation, parameters, inputs):
    found = breaking(operation, parameters, inputs)
    found["accepted"] = found["accepted"] ^ 1
    return found

def listing(operation, parameters, inputs):
    return [1, 2]

number = 3
"""


MANIFEST = read_manifest(bundled_files())["suites"]
DECIDING, QUANTIZING = ({*MANIFEST[name]["rules"]} for name in ("decisions", "mx"))


def entries_of(suite, field):
    return sum(case.arrays[field].size for case in golden.load(suite))


def cases_of(*suites):
    return sum(len(MANIFEST[suite]["cases"]) for suite in suites)


def run(where, *arguments):
    return forking.mor_ref("verify", *arguments, cwd=where)


@pytest.fixture
def module(tmp_path):
    (tmp_path / "candidate.py").write_text(MODULE)
    return tmp_path


@pytest.fixture
def undiagnosed(monkeypatch):
    """Skip the search for causes, which takes most of the time."""
    monkeypatch.setattr(diagnosed_cases, "diagnose", lambda *_: Diagnosis())


def failure_of(candidate, *names):
    """Return the message about a candidate that fails."""
    found = verify(candidate, suites_in(bundled_files(), list(names)))
    assert found.verdict == "failed"
    return found.failures[0].message


def on(change, name="decisions", operation="decide", *, must_be_complete=False):
    """Verify a candidate that changes the engine's results on a suite."""

    def function(asked, parameters, inputs):
        assert asked == operation
        return change(dict(OPERATIONS[asked].engine(parameters, inputs)))

    candidate = PythonFunction("changed", function)
    return verify(candidate, suites_in(bundled_files(), [name]), must_be_complete=must_be_complete)


DECISIONS = ("--suite", "decisions")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    # A child of a program that was killed is nobody's here, and may wait for its own burial.
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def eventually(condition):
    """Wait for an event that has to come, however long a busy machine takes."""
    while not condition():
        time.sleep(0.02)
