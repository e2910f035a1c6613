"""What tests need that is not installed everywhere, and how to get it.

`needs` marks tests that compare with a library, which are left out without it; what else is missing
skips a test. A run ends with the sums of both.
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
    "torchao": PEERS,
    "modelopt": PEERS,
    "compressed_tensors": PEERS,
    "loguru": PEERS,
    "triton": PEERS,
    "gfloat": TEST,
    "verifloat": f"Python 3.12 and {TEST}",
    "mpi4py": TEST,
    "mpiexec": TEST,
    "nvidia": TEST,
    "NVRTC": TEST,
    "ziglang": TEST,
    "a C++ compiler": TEST,
    "build": DEV,
    "distributed": DEV,
    "furo": DEV,
    "matplotlib": DEV,
    "mypy": DEV,
    "playwright": DEV,
    "ruff": DEV,
    "sphinx_needs": DEV,
    "chromium": "apt-get install chromium",
    "clang++": "apt-get install clang",
    "g++": "apt-get install g++",
    "gcc": "apt-get install gcc",
    "iverilog": "apt-get install iverilog",
}
# What the fixtures of a test need, as if it were marked.
OF_FIXTURES = {"browser": ("playwright", "chromium"), "page": ("playwright", "chromium")}
_REASON = re.compile(r"needs (?P<name>.+?): (?P<how>.+)")


def needs(*modules):
    """A mark for tests that are left out of a run, and counted, if a module is missing."""
    return pytest.mark.needs(*modules)


def needed_by(item):
    """The modules and programs that the marks and the fixtures of a test name."""
    for marker in item.iter_markers("needs"):
        yield from marker.args
    for fixture in getattr(item, "fixturenames", ()):
        yield from OF_FIXTURES.get(fixture, ())


def is_there(name):
    """Whether a module or a program is installed."""
    return find_spec(name) is not None or shutil.which(name) is not None


def reason(name):
    """Why a test is skipped, as `summary` reads it."""
    return f"needs {name}: {HOW[name]}"


def skip_without(*names):
    """Skip the test if a module or a program is missing."""
    for name in names:
        if not is_there(name):
            pytest.skip(reason(name))


@functools.cache
def imported(name):
    """A module, or skip the test. What importing it warns of is silenced."""
    package = name.partition(".")[0]
    return pytest.importorskip(name, reason=reason(package), exc_type=ImportError)


def of_benchmarks(name):
    """Return a module of the benchmarks, or skip the test."""
    reason = "a source distribution has no benchmarks"
    return pytest.importorskip(f"benchmarks.{name}", reason=reason)


def missing(names):
    """The first of some modules that is not installed, or None."""
    return next((name for name in names if not is_there(name)), None)


def counted(reasons):
    """How many of the reasons of skips name what is missing; others are not of this module."""
    found = (_REASON.search(text) for text in reasons)
    return Counter((each["name"], each["how"]) for each in found if each)


def summary(counts):
    """A line for each way to install what is missing: how many tests need what."""
    ways = sorted({how for _, how in counts}, key=lambda way: -_tests(counts, way))
    for way in ways:
        names = ", ".join(sorted(name for name, how in counts if how == way))
        number = _tests(counts, way)
        yield f"{number} {'tests need' if number > 1 else 'test needs'} {names}: {way}"


def _tests(counts, way):
    return sum(number for (_, how), number in counts.items() if how == way)
