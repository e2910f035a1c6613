"""Every block of code of README, the guide and the specification runs, and shows what comes."""

import importlib.util
import re
import shutil
import socket
from pathlib import Path

import pytest
from extras import reason
from pages import PATH, Shell, blocks_of, commands_of

ROOT = Path(__file__).resolve().parent.parent
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *GUIDE,
    *sorted((ROOT / "spec").glob("*.md")),
]
# What a page needs that is not everywhere: a program, or a module.
NEEDS = {
    "c-library.md": ("gcc", "g++"),
    "candidates.md": ("g++",),
    "verify-cuda.md": ("g++", "nvidia"),
    "verify-c.md": ("gcc",),
    "verify-rtl.md": ("iverilog",),
    "verify-triton.md": ("triton", "torch"),
    "checkpoint.md": ("matplotlib",),
    "libraries.md": ("torch", "torchao", "modelopt"),
    "many-machines.md": ("distributed", "mpi4py", "mpiexec"),
}
PYTEST = "python -m pytest -p no:mor_ref -p mor_ref.pytest_plugin -p no:cacheprovider"
# What begins a command.
PROGRAMS = {
    "$",
    ">>>",
    "mor-ref",
    "python",
    "python3",
    "pip",
    "make",
    "dask",
    "mpiexec",
    "gcc",
    "g++",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_of_kinds_that_run(page):
    """A block that is nothing but text is not code: it says so, and has no commands."""
    for block in blocks_of(page):
        assert block.file or block.language in ("console", "python", "sh", "text"), block
        if block.language == "text":
            words = {line.split()[0] for line in block.text.splitlines() if line.strip()}
            assert words.isdisjoint(PROGRAMS), block.text
        if block.language == "python" and not block.file:
            assert ">>>" in block.text, block.text
        if block.language == "console":
            assert list(commands_of(block.text)), block.text
        if block.language == "sh":
            assert page.name == "README.md", block.text


def skip_without_what_it_needs(page):
    for name in NEEDS.get(page.name, ()):
        if not (shutil.which(name, path=PATH) or importlib.util.find_spec(name)):
            pytest.skip(reason(name))


# The test below this one follows the page on CUDA, and goes on from there.
@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize(
    "page", [page for page in GUIDE if page.name != "verify-cuda.md"], ids=lambda page: page.name
)
def test_guide(page, tmp_path):
    skip_without_what_it_needs(page)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    # The usual port of Dask may be taken, and the environment may know of no plugin.
    Shell(tmp_path).follow(page, {"8786": port, "pytest -q": f"{PYTEST} -q"})


# A GPU that launches what the page made for a laptop, and takes programs only: CuPy flushes
# subnormals in kernels that it compiles from a source.
CUPY = """
import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy import asarray, full, uint8

cuda = SimpleNamespace(Device=lambda: SimpleNamespace(compute_capability="90"))
asnumpy = asarray


class RawModule:
    def __init__(self, *, path):
        assert Path(path).read_bytes().startswith(b"\\x7fELF")

    def get_function(self, name):
        assert name == "encode_e4m3"
        return self.launch

    def launch(self, blocks, threads, arguments):
        x, code, n = arguments
        assert blocks[0] * threads[0] >= n
        places = (ctypes.c_void_p(array.ctypes.data) for array in (x, code))
        ctypes.CDLL("./laptop.so").launch(*places, int(n))
"""


@pytest.mark.tier("full")
def test_the_kernel_of_the_cuda_page_is_loaded_as_it_was_checked(tmp_path):
    page = ROOT / "docs" / "guide" / "verify-cuda.md"
    skip_without_what_it_needs(page)
    shell = Shell(tmp_path)
    shell.follow(page)
    (tmp_path / "encode.cubin").unlink(missing_ok=True)
    (tmp_path / "cupy.py").write_text(CUPY)
    done = shell.run("mor-ref verify kernel:on_gpu --suite encode")
    assert "kernel:on_gpu: match (1 match, 0 mismatch, 0 not run)" in done.stdout, done.stderr


# ---------------------------------------------------------------------- README


# Run elsewhere, or on less: these take minutes, or change the environment.
INSTEAD = {"make golden": "true", "make test": "true", "pip install .": "true"}


def commands_of_readme():
    for block in blocks_of(ROOT / "README.md"):
        if block.language == "sh":
            lines = (line.partition(" #")[0].strip() for line in block.text.splitlines())
            yield from (line for line in lines if line)


def test_readme(tmp_path):
    """The commands of `sh` blocks run after the others, in the directory of their files."""
    shell = Shell(tmp_path)
    shell.follow(ROOT / "README.md")
    targets = (ROOT / "Makefile").read_text()
    statuses = {}
    for command in commands_of_readme():
        if command.startswith("make "):
            assert re.search(rf"^{command.split()[1]}:", targets, re.MULTILINE)
        statuses[command] = shell.run(INSTEAD.get(command, command)).returncode
    assert INSTEAD.keys() <= statuses.keys()
    wrong = {command for command, status in statuses.items() if status}
    assert wrong == {"mor-ref verify mykernel:run --report report.html"}
    assert "MXS-003/log2-in-binary32" in (tmp_path / "report.html").read_text()
