"""Compiles translated kernels for this machine, each once."""

import ctypes
import functools
import re
import tempfile
from pathlib import Path

from mor_ref.cuda import host, source

RUNTIME = Path(__file__).parent / "runtime"


@functools.cache
def runtime() -> ctypes.CDLL:
    """Load the library that runs blocks of threads."""
    return _library("ptx", (RUNTIME / "run.cpp").read_text("utf-8"), "-O2")


@functools.cache
def kernel(name: str, text: str) -> ctypes.CDLL:
    """Load a translated kernel as a library of this machine."""
    return _library(f"ptx-{name[:40]}", text, "-O1")


def line_of(error: str, text: str) -> int:
    """Return the line of PTX that an error of the compiler is about, or 0."""
    found = re.search(r"\.cpp:(\d+):\d+: error", error)
    line = text.split("\n")[int(found.group(1)) - 1] if found else ""
    number = re.search(r"// (\d+)$", line)
    return int(number.group(1)) if number else 0


def _library(name: str, text: str, level: str) -> ctypes.CDLL:
    flags = (*host.FLAGS, "-w", f"-I{RUNTIME}", level)

    def make() -> bytes:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / f"{name}.cpp"
            path.write_text(text, "utf-8")
            return host.compiled(path, flags)

    return host.loaded(host.file_of(name, text, (RUNTIME, source.ON_CPU), flags, make))
