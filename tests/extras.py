"""Software that tests need and that is not installed everywhere, and how to get it.

`needs` marks tests that compare with a library. Without it, one skip stands for those of a file,
and says how many they are; what else is missing skips a test. A run ends with the sums of both.
"""

import functools
import re
import shutil
from collections import Counter
from importlib.util import find_spec

import pytest

DEV, TEST, PEERS = (f"pip install -e '.[{extra}]'" for extra in ("dev", "test", "peers"))
HOW = {
    "torch": PEERS,
    "scipy": TEST,
    "sympy": PEERS,
    "networkx": PEERS,
    "torchao": PEERS,
    "modelopt": PEERS,
    "compressed_tensors": PEERS,
    "gguf": PEERS,
    "onnx": PEERS,
    "onnxruntime": PEERS,
    "bitwuzla": PEERS,
    "bitsandbytes": "pip install bitsandbytes==0.50.2",
    "loguru": PEERS,
    "mx": "https://github.com/microsoft/microxcaling",
    "mmasim": "pip install mmasim==2.1.1",
    "quark": "pip install amd-quark==0.13",
    "transformer_engine": "pip install --no-deps transformer_engine==2.18.0",
    "transformers": PEERS,
    "pyarrow": PEERS,
    "tensorboard": PEERS,
    "triton": PEERS,
    "gfloat": TEST,
    "verifloat": f"Python 3.12 and {TEST}",
    "mpi4py": TEST,
    "mpiexec": TEST,
    "nvidia": TEST,
    "NVRTC": TEST,
    "nvdisasm": PEERS,
    "ziglang": TEST,
    "a C++ compiler": TEST,
    "build": DEV,
    "cocotb": PEERS,
    "distributed": DEV,
    "furo": DEV,
    "matplotlib": DEV,
    "mypy": DEV,
    "playwright": DEV,
    "ruff": DEV,
    "sphinx_needs": DEV,
    "chromium": "apt-get install chromium",
    "clang": "apt-get install clang",
    "clang++": "apt-get install clang",
    "ghdl": "apt-get install ghdl",
    "g++": "apt-get install g++",
    "gcc": "apt-get install gcc",
    "iverilog": "apt-get install iverilog",
    "ninja": "apt-get install ninja-build",
    "verilator": "apt-get install verilator",
}
# What the fixtures of a test need, as if it were marked.
OF_FIXTURES = {"browser": ("playwright", "chromium")}
_REASON = re.compile(r"needs (?P<name>.+?)(?: \((?P<number>\d+) tests\))?: (?P<how>.+)")


def needs(*modules):
    """Mark tests that need modules: without one, one skip stands for those of a file."""
    return pytest.mark.needs(*modules)


def needed_by(item):
    """Yield the modules and programs that the marks and the fixtures of a test name."""
    for marker in item.iter_markers("needs"):
        yield from marker.args
    for fixture in getattr(item, "fixturenames", ()):
        yield from OF_FIXTURES.get(fixture, ())


def is_there(name):
    """Return whether a module or a program is installed."""
    return find_spec(name) is not None or shutil.which(name) is not None


def reason(name, number=1):
    """Return why a test, or a number of tests, is skipped, as `summary` reads it."""
    return f"needs {name}{f' ({number} tests)' if number > 1 else ''}: {HOW[name]}"


def skip_without(*names):
    """Skip the test if a module or a program is missing."""
    for name in names:
        if not is_there(name):
            pytest.skip(reason(name))


@functools.cache
def imported(name):
    """Import a module without its warnings, or skip the test."""
    package = name.partition(".")[0]
    return pytest.importorskip(name, reason=reason(package), exc_type=ImportError)


def of_benchmarks(name):
    """Return a module of the benchmarks, or skip the test."""
    reason = "a source distribution has no benchmarks"
    return pytest.importorskip(f"benchmarks.{name}", reason=reason)


def missing(names):
    """Return the first of some modules that is not installed, or None."""
    return next((name for name in names if not is_there(name)), None)


def summary(reasons):
    """Return one line on the skips of a run, or None if nothing is missing.

    It says how many of pytest's skips are for how many tests, and how many of these tests each way
    to install something brings.
    """
    found = [match for match in map(_REASON.search, reasons) if match]
    if not found:
        return None
    counts = Counter()
    for each in found:
        counts[each["name"], each["how"]] += int(each["number"] or 1)
    ways = sorted({how for _, how in counts}, key=lambda way: (-_tests(counts, way), way))
    needed = "; ".join(f"{_tests(counts, way)} {_names(counts, way)}: {way}" for way in ways)
    tests = counts.total()
    of = "" if len(found) == len(reasons) else f"of {len(reasons)} "
    skips = "skip is" if len(found) == len(reasons) == 1 else "skips are"
    lacking = "tests that need" if tests > 1 else "test that needs"
    return f"{len(found)} {of}{skips} for {tests} {lacking} what is missing: {needed}"


def _names(counts, way):
    return ", ".join(sorted(name for name, how in counts if how == way))


def _tests(counts, way):
    return sum(number for (_, how), number in counts.items() if how == way)
