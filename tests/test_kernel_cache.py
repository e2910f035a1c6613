"""Kernels are kept on disk, and never those of another source."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import mor_ref

PACKAGE = Path(mor_ref.__file__).parent

ENCODE = """
import mor_ref
from mor_ref.engine import encoding
print(mor_ref.encode([1.0625], "e4m3")[0])
print(sum(encoding.encode_array.stats.cache_hits.values()))
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the package that can be edited, and an environment that uses it."""
    shutil.copytree(PACKAGE, tmp_path / "mor_ref", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    return tmp_path, environment


def run(program, where, environment):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def edit(path, old, new):
    source = path.read_text()
    assert source.count(old) == 1
    path.write_text(source.replace(old, new))


def test_a_second_process_finds_the_kernel(copy):
    assert run(ENCODE, *copy) == ["56", "0"]
    assert run(ENCODE, *copy) == ["56", "1"]


def test_an_edit_in_a_file_that_a_kernel_calls_is_noticed(copy):
    where, _ = copy
    assert run(ENCODE, *copy) == ["56", "0"]
    # Makes every shift to the right one too short; encoding.py and its times stay as they are.
    edit(where / "mor_ref/engine/intrinsics.py", "builder.lshr(*args)", "builder.shl(*args)")
    code, hits = run(ENCODE, *copy)
    assert hits == "0"
    assert code != "56"


def test_going_back_to_a_source_finds_its_kernels_again(copy):
    where, _ = copy
    path = where / "mor_ref/engine/intrinsics.py"
    source = path.read_text()
    run(ENCODE, *copy)
    edit(path, "builder.lshr(*args)", "builder.shl(*args)")
    run(ENCODE, *copy)
    path.write_text(source)
    assert run(ENCODE, *copy) == ["56", "1"]


def test_a_kernel_of_a_source_that_changed_under_the_process_is_not_kept(copy):
    where, environment = copy
    program = f"""
import mor_ref.engine.encoding
path = {str(where / "mor_ref/engine/parallel.py")!r}
open(path, "a").write("# edited while the process runs\\n")
{ENCODE}"""
    assert run(program, where, environment) == ["56", "0"]
    assert run(ENCODE, *copy) == ["56", "0"]


def test_old_sources_are_forgotten(copy):
    where, _ = copy
    kept = where / "cache" / "mor_ref"
    for number in range(40):
        (kept / f"old{number}").mkdir(parents=True)
    run(ENCODE, *copy)
    assert len(list(kept.iterdir())) == 16


def test_a_home_that_cannot_be_written_still_works(copy):
    where, environment = copy
    home = where / "home"
    home.mkdir()
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    del environment["NUMBA_CACHE_DIR"]
    environment.pop("XDG_CACHE_HOME", None)
    if os.geteuid() == 0:  # root writes everywhere: a file in the place of a folder stops it too
        home.chmod(stat.S_IRWXU)
        (home / ".cache").write_text("")
    assert run(ENCODE, where, environment | {"HOME": str(home)}) == ["56", "0"]


def test_importing_compiles_nothing_and_imports_no_numba(copy):
    program = """
import sys, mor_ref
print("numba" in sys.modules, "numpy" in sys.modules)
mor_ref.encode
print("numba" in sys.modules)
"""
    assert run(program, *copy) == ["False", "False", "False"]
    where, _ = copy
    assert not (where / "cache").exists()


def test_without_the_compiler_there_is_no_engine_and_it_says_so(copy):
    where, environment = copy
    program = """
import mor_ref
try:
    mor_ref.encode([1.0], "e4m3")
except RuntimeError as error:
    print(error)
"""
    said = " ".join(run(program, where, environment | {"NUMBA_DISABLE_JIT": "1"}))
    assert said.startswith("NUMBA_DISABLE_JIT is set")
    assert "mor_ref.exact" in said
