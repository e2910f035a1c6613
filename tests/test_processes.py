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


def options(name):
    """Return the options that a variable of the Makefile has for all runs in many processes."""
    makefile = ROOT / "Makefile"
    if not makefile.exists():
        pytest.skip("a source distribution has no Makefile")
    (found,) = re.findall(rf"^{name} := (-.*)$", makefile.read_text(), re.MULTILINE)
    runs = re.findall(r"-m pytest -n auto .*", makefile.read_text())
    assert len(runs) == 4
    assert all(f"$({name})" in run for run in runs)
    return found


def in_two_processes(folder, given):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", *given.split()],
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.tier("full")
def test_the_tests_of_a_file_run_in_one_process(tmp_path):
    """Under the options of the Makefile; other versions of xdist ignore some of them."""
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(SAMPLE)
    assert in_two_processes(tmp_path, options("BY_FILE")).returncode == 0
    processes = defaultdict(set)
    for path in tmp_path.glob("test_?.[0-9]"):
        processes[path.stem].add(path.read_text())
    assert [len(found) for found in processes.values()] == [1, 1]
    assert len(set().union(*processes.values())) == 2


@pytest.mark.tier("full")
def test_a_test_without_end_is_named(tmp_path):
    """After a second here; a test of a machine that is slower than that would be named as well."""
    (tmp_path / "test_waits.py").write_text(
        "import threading\n\ndef test_of_a_wait():\n    threading.Event().wait()\n"
    )
    given = f"{options('BY_FILE')} {options('ENDED')}".replace("timeout=1200", "timeout=1")
    found = in_two_processes(tmp_path, given)
    assert found.returncode == 1
    assert "crashed while running 'test_waits.py::test_of_a_wait'" in found.stdout
    assert 'test_waits.py", line 4 in test_of_a_wait' in found.stdout + found.stderr


def test_files_that_begin_first_are_there():
    """conftest.py names them."""
    text = (ROOT / "conftest.py").read_text()
    names = re.findall(r'"(test_\w+\.py)"', text)
    assert len(names) > 10
    assert [name for name in names if not (ROOT / "tests" / name).exists()] == []
