"""Compiles translated kernels for this machine, each once."""

import ctypes
import functools
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


def _library(name: str, text: str, level: str) -> ctypes.CDLL:
    flags = (*host.FLAGS, "-w", f"-I{RUNTIME}", level)

    def make() -> bytes:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / f"{name}.cpp"
            path.write_text(text, "utf-8")
            return host.compiled(path, flags)

    return host.loaded(host.file_of(name, text, (RUNTIME, source.ON_CPU), flags, make))
