"""The kernels on a CPU: compiled as C++, run with CUDA's blocks, warps, barriers and atomics."""

import ctypes
import functools
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.cuda import source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.unavailable import CudaError
from mor_ref.processor_modes import check_processor

# Kernels load 16 bytes at once, of numbers of any type.
FLAGS = (
    "-std=c++17", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing", "-fPIC",
    "-shared", "-fvisibility=hidden", "-pthread",
)  # fmt: skip
_MOST_ERROR = 200  # characters, as host/launch.h has it
_MOST_ORDER, _MOST_WORKERS = (1 << 32) - 1, 1024


class HostError(CudaError):
    """The kernels cannot be compiled for a CPU, or their behaviour is undefined on a GPU."""


class Launch(ctypes.Structure):
    """A grid of blocks, as host/launch.h has it."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("order", ctypes.c_uint32),
        ("filling", ctypes.c_uint32),
        ("workers", ctypes.c_uint32),
        ("error", ctypes.c_char * _MOST_ERROR),
    )


@functools.cache
def compiler() -> tuple[str, ...]:
    """Return the command of a C++ compiler: $CXX, or else g++, clang++, or the ziglang wheel's."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen and not shutil.which(chosen[0]):
        raise HostError(f"CXX is {os.environ['CXX']!r}, which was not found; name a C++ compiler")
    if chosen:
        return tuple(chosen)
    for name in ("g++", "clang++"):
        if shutil.which(name):
            return (name,)
    if find_spec("ziglang"):
        return (sys.executable, "-m", "ziglang", "c++")
    raise HostError(
        "no C++ compiler was found to run CUDA kernels on the CPU; install g++ or clang++, or "
        "pip install ziglang"
    )


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    """Return the version that a compiler reports."""
    done = subprocess.run(  # noqa: S603  # the compiler of this machine
        [*command, "--version"], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@functools.cache
def library(
    name: str, directory: Path = source.KERNELS, extra: tuple[str, ...] = ()
) -> ctypes.CDLL:
    """Load a source as a library of this machine."""
    return loaded(library_file(name, directory, extra))


def loaded(path: Path) -> ctypes.CDLL:
    """Load the file of a library, or say why it cannot be loaded."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise HostError(
            f"{path} cannot be loaded ({error}); delete it, or set MOR_REF_CACHE to a directory "
            "whose libraries may be run"
        ) from error


def library_file(name: str, directory: Path = source.KERNELS, extra: tuple[str, ...] = ()) -> Path:
    """Return the file of that library, compiled once; `extra` are more compiler arguments."""
    flags = (*FLAGS, "-O2", *extra)
    text = source.flattened(name, directory)
    path = directory / f"{name}.cu"
    return file_of(name, text, (source.ON_CPU,), flags, lambda: compiled(path, flags))


def file_of(
    name: str,
    text: str,
    headers: Sequence[Path],
    flags: tuple[str, ...],
    make: Callable[[], bytes],
) -> Path:
    """Return the file of a library, made once for each text, headers and compiler."""
    header_texts = [
        path.read_text("utf-8") for place in headers for path in sorted(place.glob("*.h"))
    ]
    made_by = (compiler(), compiler_version(compiler()), platform.machine(), flags)
    return cached_file(f"{name}-{source.digest(text, *header_texts, made_by)}.so", make)


def compiled(path: Path, flags: tuple[str, ...]) -> bytes:
    """Return a library of this machine, compiled from a C++ source."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "kernels.so"
        files = (f"-I{source.ON_CPU}", "-x", "c++", str(path), "-o", str(out), "-lm")
        done = subprocess.run(  # noqa: S603  # the compiler of this machine
            [*compiler(), *flags, *files], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise HostError(f"{' '.join(compiler())} cannot compile {path.name}: {done.stderr}")
        return out.read_bytes()


@dataclass(frozen=True)
class Schedule:
    """How a CPU runs blocks.

    `order` is that of the threads of a block: 0 ascending, 1 descending, else a shuffled one.
    Before each block, shared memory is filled with a byte.
    """

    order: int = 0
    filling: int = 0xFF
    workers: int = 1

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        bounds = {"order": (0, _MOST_ORDER), "filling": (0, 0xFF), "workers": (1, _MOST_WORKERS)}
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or not least <= value <= most:
                raise HostError(f"{name} is {value!r}; give a whole number from {least} to {most}")

    def launch_of(self, grid: tuple[int, ...], block: tuple[int, ...]) -> Launch:
        """Return the launch of a grid of blocks, three sides each."""
        launch = Launch(order=self.order, filling=self.filling, workers=self.workers)
        launch.grid[:], launch.block[:] = grid, block
        return launch


@dataclass(frozen=True)
class Host(Schedule):
    """A CPU as a device: kernels take NumPy arrays."""

    directory: Path = source.KERNELS
    extra: tuple[str, ...] = ()

    def empty(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array with undefined contents."""
        return np.full(shape, np.array(-1).astype(dtype))

    def filled(self, shape: tuple[int, ...], dtype: Any, byte: int) -> NDArray[Any]:
        """Return an array with this value in every byte."""
        array = np.empty(shape, dtype)
        array.reshape(-1).view(np.uint8)[:] = byte
        return array

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return array

    def download(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array itself."""
        return array

    def address(self, array: NDArray[Any]) -> int:
        """Return the address of an array."""
        return array.ctypes.data

    def launch(
        self, program: str, kernel: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> None:
        """Run a kernel: arrays go in by their address, and rows and NumPy's numbers by value."""
        check_processor()
        launch = self.launch_of((blocks, 1, 1), (threads, 1, 1))
        values = [_value(argument) for argument in arguments]
        addresses = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        run = getattr(library(program, self.directory, self.extra), f"mor_launch_{kernel}")
        if run(ctypes.byref(launch), addresses):
            raise HostError(f"kernel {kernel}: {launch.error.decode()}")


def _value(argument: Any) -> NDArray[Any]:
    """Return the argument at the place that the launch reads."""
    if isinstance(argument, np.generic):
        return np.array(argument)
    if argument.dtype.fields is not None:  # a row
        return np.asarray(argument)
    return np.array(argument.ctypes.data, np.uint64)
