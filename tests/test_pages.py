"""Every block of code of README, the guide and the specification runs, and shows what comes."""

import doctest
import importlib.util
import re
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
from extras import reason, skip_without
from pages import PATH, Shell, blocks_of, commands_of
from safetensors.numpy import save_file

from mor_ref.golden import kept_files

ROOT = Path(__file__).resolve().parent.parent
GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *GUIDE,
    *sorted((ROOT / "spec").glob("*.md")),
]
# Of the others, tests of the commands themselves have each one on less.
LONG_PAGES = {"report.md", "checkpoint.md", "larger-suites.md", "verify-triton.md"}
QUICK_PAGES = [f"[{page.name}]" for page in GUIDE if page.name not in LONG_PAGES]
# What a page needs that is not everywhere: a program, or a module.
NEEDS = {
    "verify-cuda.md": ("g++", "nvidia"),
    "verify-c.md": ("gcc",),
    "verify-rtl.md": ("iverilog",),
    "verify-triton.md": ("triton", "torch"),
    "checkpoint.md": ("matplotlib",),
    "many-machines.md": ("distributed", "mpi4py", "mpiexec"),
}
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
    """A block that is nothing but text is no code: it says so, and has no commands."""
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


@pytest.mark.tier("full", but=QUICK_PAGES)
@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
def test_guide(page, tmp_path):
    skip_without_what_it_needs(page)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    Shell(tmp_path).follow(page, {"8786": port})  # the usual one of Dask may be taken


# A GPU that launches what the page made for a laptop, and takes programs only: CuPy flushes
# subnormals in what it compiles from a source.
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


# The same calls on less: what takes minutes is run by tests of its own.
SHORTER = {
    "golden make --out DIR --size 10": "golden make decisions --out DIR --size 2",
    "exhaustive e5m2 --overflow ieee": "exhaustive e5m2 --candidate numba --chunks 0x3f",
    "golden export --to c --out DIR": "golden export --to c --suite decode --out DIR",
    "verify cuda-host": "verify cuda-host --suite decode",
    "--count 1000000000": "--count 4000",
    "--chunks 0x3f:0x41": "--chunks 0x3f",
}
STATUS = {"mor-ref verify cuda": (0, 3)}  # 3 where there is no GPU
DEVICE = """#!/usr/bin/env python3
import sys, numpy as np
from mykernel import run
case = {"format": "e4m3", "source": "f32", "rounding": "rne", "overflow": "satfinite"}
for line in sys.stdin:
    x = np.array([int(line, 16)], np.uint32)
    (code,) = run("encode", {**case, "nan": "canonical"}, {"x": x})["code"]
    print(line.strip(), f"{code:02x}")
"""


@pytest.fixture
def reader(tmp_path):
    """A folder with what README takes for granted: a kernel, a device, results, a model."""
    skip_without("gcc")
    shell = Shell(tmp_path)
    (tmp_path / "mykernel.py").write_text(kernel_of_readme())
    (tmp_path / "device").write_text(DEVICE)
    (tmp_path / "device").chmod(0o755)
    (tmp_path / "results").mkdir()
    shutil.copy(kept_files() / "decode.safetensors", tmp_path / "results")
    model = {"w": np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32)}
    save_file(model, tmp_path / "model.safetensors")
    source = ROOT / "examples" / "protocol" / "e4m3.c"
    assert shell.run(f"gcc -O2 -o mykernel '{source}'").returncode == 0
    return shell


def kernel_of_readme():
    """What a reader would keep of the example: its imports and its function."""
    shown = doctest.DocTestParser().get_examples((ROOT / "README.md").read_text())
    first = next(k for k, example in enumerate(shown) if example.source.startswith("def run("))
    assert shown[first - 1].source == "import ml_dtypes\n"
    return "".join(["import numpy as np\n", *(e.source for e in shown[first - 1 : first + 1])])


def commands_of_readme():
    for block in blocks_of(ROOT / "README.md"):
        if block.language == "sh":
            lines = (line.partition(" #")[0].strip() for line in block.text.splitlines())
            yield [line for line in lines if line]


def test_readme(reader):
    """In the order of the page; a variable is for the commands after it."""
    for number, commands in enumerate(commands_of_readme()):
        if number == 0:
            targets = (ROOT / "Makefile").read_text()
            assert commands == ["make golden", "make test"]
            assert all(re.search(rf"^{c.split()[1]}:", targets, re.MULTILINE) for c in commands)
            continue
        assignments = [command for command in commands if re.match(r"[A-Z]+=", command)]
        for command in commands:
            if command in assignments:
                continue
            for long, short in SHORTER.items():
                command = command.replace(long, short)  # noqa: PLW2901
            done = reader.run("; ".join([*assignments, command]))
            allowed = STATUS.get(command, (0,))
            assert done.returncode in allowed, f"{command}\n{done.stdout}\n{done.stderr}"
