"""A wheel holds all that an installed package needs: code, types, and the bundled files."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from extras import imported

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import mor_ref
from mor_ref.golden import bundled_files
from mor_ref.golden.all_inputs.digests import bundled_digests
from mor_ref.verify.candidates.candidate import CandidateError
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.running.run import not_opened
from mor_ref.verify.running.suites import suites_in
assert "<h1>" in as_html(not_opened("name", suites_in(bundled_files(), []), CandidateError("no")))
print(mor_ref.__file__, len(bundled_digests()), *mor_ref.encode([1.0, -2.0], "e4m3"))
"""


@pytest.mark.tier("full")
def test_a_wheel_works_away_from_its_source(tmp_path):
    imported("build")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(place)
    assert "mor_ref/py.typed" in names
    assert "mor_ref/verify/reporting/templates/page.css" in names
    assert "mor_ref/golden/v1/exhaustive.json" in names
    assert {"mor_ref/sources/c/mor_ref.h", "mor_ref/sources/c/mor_ref_dpi.sv"} <= {*names}
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "experiments"))]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=True,
    )
    where, digests, *codes = done.stdout.split()
    assert Path(where).is_relative_to(place)
    assert int(digests) > 100
    assert codes == ["56", "192"]
