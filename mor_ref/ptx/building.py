"""Compiles translated kernels for this machine, each once."""

import ctypes
import functools
import platform
import subprocess
import tempfile
from pathlib import Path

from mor_ref.cuda import source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.host import HostError, compiler, compiler_version
from mor_ref.ptx.errors import PtxError

RUNTIME = Path(__file__).parent / "runtime"
_FLAGS = (
    "-std=c++17", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-fPIC",
    "-shared", "-fvisibility=hidden", "-pthread", "-w",
)  # fmt: skip


@functools.cache
def runtime() -> ctypes.CDLL:
    """Load the library that runs blocks of threads."""
    return _loaded("ptx", (RUNTIME / "run.cpp").read_text("utf-8"), "-O2")


@functools.cache
def kernel(name: str, text: str) -> ctypes.CDLL:
    """Load a translated kernel as a library of this machine."""
    return _loaded(f"ptx-{name[:40]}", text, "-O1")


def _loaded(name: str, text: str, level: str) -> ctypes.CDLL:
    headers = [
        path.read_text("utf-8")
        for directory in (RUNTIME, source.ON_CPU)
        for path in sorted(directory.glob("*.h"))
    ]
    flags = (*_FLAGS, level)
    made_by = (compiler(), compiler_version(compiler()), platform.machine(), flags)
    key = source.digest(text, *headers, made_by)
    path = cached_file(f"{name}-{key}.so", lambda: _compiled(name, text, flags))
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise HostError(
            f"{path} cannot be loaded ({error}); delete it, or set MOR_REF_CACHE to a directory "
            "whose libraries may be run"
        ) from error


def _compiled(name: str, text: str, flags: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        into, out = Path(directory) / "kernel.cpp", Path(directory) / "kernel.so"
        into.write_text(text, "utf-8")
        files = (f"-I{RUNTIME}", f"-I{source.ON_CPU}", str(into), "-o", str(out), "-lm")
        done = subprocess.run(  # noqa: S603  # the compiler of this machine
            [*compiler(), *flags, *files], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise PtxError(f"{' '.join(compiler())} cannot compile {name}: {done.stderr}")
        return out.read_bytes()
