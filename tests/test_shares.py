"""Shares of the tests, which a run can be split into."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import extras
import pytest

ROOT = Path(__file__).resolve().parent.parent


def collected(*options, of="tests/test_extras.py"):
    """Return what pytest says of the tests of a small file, or of others, with these options."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *options, of]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def collected_tests(*options, **of):
    return [line for line in collected(*options, **of).splitlines() if "::" in line]


@pytest.mark.tier("full")
def test_each_test_is_in_one_share():
    shares = [collected_tests(f"--share={number}/3") for number in range(3)]
    assert all(shares)
    assert sorted(name for share in shares for name in share) == sorted(collected_tests())


def test_a_share_is_one_of_those_that_there_are():
    said = collected("--share=3/3")
    assert "share is '3/3'; give a number below that of all shares: 0/4" in said


def test_once_leaves_out_what_passed_and_keeps_what_was_skipped(tmp_path):
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_few.py").write_text(
        "import os, pytest\n"
        "def test_passes(): pass\n"
        "def test_is_skipped_then_passes():\n"
        "    if 'FEW_NEED' not in os.environ: pytest.skip('it is not there')\n"
    )
    runs = []
    for environment in ({}, {"FEW_NEED": "1"}, {"FEW_NEED": "1"}):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", "--once=build/passed"],
            cwd=tmp_path,
            env={**os.environ, **environment, "PYTHONPATH": f"{ROOT}/tests"},
            capture_output=True,
            text=True,
            check=False,
        )
        runs.append(done.stdout.splitlines()[-1])
    assert [run.partition(" in ")[0] for run in runs] == [
        "1 passed, 1 skipped",
        "1 passed, 1 deselected",
        "2 deselected",
    ]
    passed = (tmp_path / "build" / "passed").read_text().splitlines()
    assert [name.partition("::test_")[2] for name in passed] == ["is_skipped_then_passes", "passes"]


def needed(*marks):
    """Yield what the calls of `needs` among some marks name."""
    for call in (node for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Call)):
        if ast.unparse(call.func) == "needs":
            yield from (name.value for name in call.args if isinstance(name, ast.Constant))


def sampled_tests(path):
    """Yield the tests of a file that a usual run has a share of, but those that lack a library.

    One skip stands for all of these.
    """
    nodes = ast.parse(path.read_text()).body
    of_file = [node for node in nodes if ast.unparse(node).startswith("pytestmark = ")]
    for node in nodes:
        marks = getattr(node, "decorator_list", [])
        tiers = [ast.unparse(mark) for mark in marks]
        sampled = any("mark.tier(" in mark and "but" in mark for mark in tiers)
        if sampled and not extras.missing(needed(*of_file, *marks)):
            yield f"{path.relative_to(ROOT).as_posix()}::{node.name}"


@pytest.mark.tier("full")
def test_of_each_sampled_test_a_usual_run_has_some():
    usual = {line.split("[")[0] for line in collected_tests(of="tests")}
    sampled = {name for path in (ROOT / "tests").glob("test_*.py") for name in sampled_tests(path)}
    assert len(sampled) > 100
    assert sampled <= usual
