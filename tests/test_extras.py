"""The words of a run on tests that it skipped, as something is not installed."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import extras
import pytest

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Tests of a machine without torch, and with a library that is broken.
SAMPLE = """
import pytest
from extras import imported, needs, reason, skip_without

@needs("torch", "torchao")
@pytest.mark.parametrize("n", range(3))
def test_with_torch(n):
    raise AssertionError

@pytest.mark.parametrize("x", [pytest.param(1, marks=needs("torchao")), 2])
def test_of_two_cases(x):
    assert x == 2

def test_of_a_program():
    skip_without("iverilog")

@pytest.mark.parametrize("n", range(2))
def test_of_a_module(n):
    imported("gfloat.nowhere")

def test_of_something_else():
    pytest.skip("this processor cannot flush")
"""
ABSENT = """
import extras
extras.is_there = lambda name: False
"""


def sample(folder):
    """Write a project with this conftest.py, for a machine where nothing is installed."""
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text() + ABSENT)
    (folder / "test_sample.py").write_text(SAMPLE)
    markers = "".join(f"    {name}(): as in the project\n" for name in ("needs", "tier"))
    paths = f"    {ROOT}\n    {ROOT / 'tests'}\n"
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath =\n{paths}addopts = --strict-markers\nmarkers =\n{markers}"
    )


def run(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


@pytest.mark.tier("full", but=["one process"])
@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two processes"])
def test_a_run_ends_with_what_would_bring_more_tests(tmp_path, processes):
    sample(tmp_path)
    lines = run(tmp_path, *processes)
    said = [line for line in lines if "what is missing" in line]
    assert said == [
        (
            "5 of 6 skips are for 7 tests that need what is missing: 4 torch, torchao: "
            "pip install -e '.[peers]'; 2 gfloat: pip install -e '.[test]'; "
            "1 iverilog: apt-get install iverilog"
        )
    ]
    # Of the four with torch or torchao, a skip for each of the two stands for all.
    assert "1 passed, 6 skipped" in lines[-1]
    assert "deselected" not in lines[-1]


def test_a_test_that_is_asked_for_by_name_says_what_it_needs(tmp_path):
    """Also one that is not the first of its file."""
    sample(tmp_path)
    lines = run(tmp_path, "-k", "test_with_torch and 2")
    assert "1 skipped" in lines[-1]
    assert any(
        line.startswith("1 skip is for 1 test that needs what is missing: 1 to") for line in lines
    )


def test_nothing_is_said_where_nothing_is_missing():
    assert extras.summary(["this processor cannot flush"]) is None
    reasons = ["needs a (2 tests): x", "needs b: x", "needs c (9 tests): y"]
    needed = "for 12 tests that need what is missing: 9 c: y; 3 a, b: x"
    assert extras.summary(reasons) == f"3 skips are {needed}"
    assert extras.summary([*reasons, "another"]) == f"3 of 4 skips are {needed}"


def test_every_extra_that_is_named_is_one():
    """And make test has those of dev: only software that is large, or has no wheel, is missing."""
    named = {name for how in extras.HOW.values() for name in re.findall(r"\.\[(\w+)\]", how)}
    assert named <= set(EXTRAS)
    assert "mor-ref[docs,plot,test]" in EXTRAS["dev"]
    assert "mor-ref[experiment,prove,record,test]" in EXTRAS["peers"]


def modules_asked_for(path):
    """Yield the names in calls of importorskip in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
            yield node.args[0].value if isinstance(node.args[0], ast.Constant) else None


def test_tests_skip_by_the_one_way_that_is_counted():
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "importorskip" in path.read_text():
            assert list(modules_asked_for(path)) == [], path
