"""The processes of a run of the tests: those of a file share what one process makes."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("n", range(8))
def test_of_a_file(n):
    Path(f"{Path(__file__).stem}.{n}").write_text(str(os.getpid()))
"""


def test_the_tests_of_a_file_run_in_one_process(tmp_path):
    """Under the options of the Makefile; other versions of xdist ignore some of them."""
    makefile = ROOT / "Makefile"
    if not makefile.exists():
        pytest.skip("a source distribution has no Makefile")
    (options,) = re.findall(r"^BY_FILE := (--dist .*)$", makefile.read_text(), re.MULTILINE)
    runs = re.findall(r"-m pytest -n auto .*", makefile.read_text())
    assert len(runs) == 3
    assert all("$(BY_FILE)" in run for run in runs)
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(SAMPLE)
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", *options.split()]
    subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        check=True,
    )
    processes = defaultdict(set)
    for path in tmp_path.glob("test_?.[0-9]"):
        processes[path.stem].add(path.read_text())
    assert [len(found) for found in processes.values()] == [1, 1]
    assert len(set().union(*processes.values())) == 2


def test_files_that_begin_first_are_there():
    """conftest.py names them."""
    text = (ROOT / "conftest.py").read_text()
    names = re.findall(r'"(test_\w+\.py)"', text)
    assert len(names) > 10
    assert [name for name in names if not (ROOT / "tests" / name).exists()] == []
