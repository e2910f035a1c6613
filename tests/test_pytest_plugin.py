"""The plugin of pytest: cases of golden vectors as parameters, and failures with their cause."""

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from mor_ref.golden import bundled_files
from mor_ref.golden.store.manifest import read_manifest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import numpy as np
import pytest
from mor_ref.operations import OPERATIONS
from mor_ref.verify import assert_bit_exact

def run(case):
    return OPERATIONS[case.operation].engine(case.parameters, case.inputs)

@pytest.mark.mor_ref("mx_blocks", format=["e4m3", "e2m1"], scale_rule="rceil")
def test_of_a_marker(mor_ref_case):
    assert_bit_exact(run(mor_ref_case), mor_ref_case)

def test_of_the_option(mor_ref_case):
    assert_bit_exact(run(mor_ref_case), mor_ref_case)

@pytest.mark.mor_ref("mx_blocks/e4m3.rceil")
def test_that_fails(mor_ref_case):
    floor = {**mor_ref_case.parameters, "scale_rule": "floor"}
    found = OPERATIONS[mor_ref_case.operation].engine(floor, mor_ref_case.inputs)
    assert_bit_exact({"scale": found["scale"]}, mor_ref_case)
"""
WRONG = """
import pytest

@pytest.mark.mor_ref({arguments})
def test_of_nothing(mor_ref_case):
    pass
"""


def pytest_on(where, *options):
    """Run pytest with the plugin, whether or not this environment knows of the entry point."""
    plugin = ["-p", "no:mor_ref", "-p", "mor_ref.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", "-rA", *plugin, *options],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Run three tests, which take their cases from markers and from the option."""
    where = tmp_path_factory.mktemp("tests")
    (where / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers\nmor_ref_cases = decode/e4m3 error_steps\n"
    )
    (where / "test_mine.py").write_text(TESTS)
    return pytest_on(where)


def cases_that(are_wanted):
    cases = read_manifest(bundled_files())["suites"]["mx_blocks"]["cases"]
    return {name for name, parameters in cases.items() if are_wanted(parameters)}


@pytest.mark.tier("full")
def test_cases_of_a_marker(done):
    wanted = cases_that(lambda p: p["format"] in ("e4m3", "e2m1") and p["scale_rule"] == "rceil")
    ran = {
        line.split("[mx_blocks-")[1].rstrip("]")
        for line in done.stdout.splitlines()
        if line.startswith("PASSED test_mine.py::test_of_a_marker[")
    }
    assert wanted
    assert ran == wanted


def test_cases_of_the_option(done):
    assert "PASSED test_mine.py::test_of_the_option[decode-e4m3]" in done.stdout
    assert "PASSED test_mine.py::test_of_the_option[error_steps-" in done.stdout


def test_a_failure_names_field_place_bits_ulp_and_cause(done):
    assert done.returncode == 1
    lines = [line.removeprefix("E").strip() for line in done.stdout.splitlines()]
    (heading,) = (line for line in lines if line.startswith("AssertionError"))
    assert "case e4m3.rceil of mx_blocks" in heading
    after = lines[lines.index(heading) :]
    assert after[1].startswith("scale: ")
    assert "where 0x" in after[2]
    assert "1 ulp below" in after[2]
    assert any("are explained by `MXS-003/always`" in line for line in after)
    assert "assert_bit_exact.py" not in done.stdout  # the frame of the assertion is hidden


@pytest.mark.tier("full")
def test_names_that_are_wrong_are_refused(tmp_path):
    for name, arguments in {
        "suite": "'mx_block'",
        "case": "'decode/e9*'",
        "parameter": "'decode', format='e9m9'",
        "number": "3",
        "nothing": "",
    }.items():
        (tmp_path / f"test_{name}.py").write_text(WRONG.format(arguments=arguments))
    done = pytest_on(tmp_path, "--continue-on-collection-errors")
    for said in (
        "test_suite.py::test_of_nothing: suite is 'mx_block', which is not known; did you mean",
        "test_case.py::test_of_nothing: 'decode/e9*' names no case of decode; take some that",
        "test_of_nothing: a case of mor_ref_case is 3; give text, such as 'mx_bl",
        "'decode' names no case of decode with {'format': 'e9m9'}; take some that mor-ref",
        "mor_ref_case has no cases; name them in a marker, such as @pytest.mark.mor_ref('mx_",
    ):
        assert said in done.stdout
    assert "Traceback" not in done.stdout


def test_the_entry_point_is_the_plugin():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (entry,) = project["entry-points"]["pytest11"].items()
    loaded = EntryPoint(*entry, "pytest11").load()
    assert loaded.__name__ == "mor_ref.pytest_plugin"
    assert callable(loaded.pytest_generate_tests)


def test_pytest_starts_as_fast_as_without_it():
    """No library of numbers is loaded before a test asks for a case."""
    script = "import pytest, sys; import mor_ref.pytest_plugin; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"numpy", "numba", "llvmlite", "ml_dtypes", "safetensors", "typer"}
