"""Shares of the tests, which a run can be split into."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def collected(*options):
    """Return what pytest says of the tests of a small file with these options."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *options]
    done = subprocess.run(
        [*command, "tests/test_extras.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def collected_tests(*options):
    return [line for line in collected(*options).splitlines() if "::" in line]


def test_each_test_is_in_one_share():
    shares = [collected_tests(f"--share={number}/3") for number in range(3)]
    assert all(shares)
    assert sorted(name for share in shares for name in share) == sorted(collected_tests())


def test_a_share_is_one_of_those_that_there_are():
    said = collected("--share=3/3")
    assert "share is '3/3'; give a number below that of all shares: 0/4" in said
