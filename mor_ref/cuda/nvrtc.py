"""NVIDIA's compiler for kernels, as a library: it needs neither a GPU nor a driver."""

import ctypes
import ctypes.util
import functools
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mor_ref.cuda.unavailable import CudaError

# Before NVRTC 13.5, lambdas would have to say that they run on the device. NVRTC has a cache where
# there is a driver: on an H100, 13.0 loaded the program of another --ftz or --prec-div from it,
# next to the right PTX.
LANGUAGE = ("--std=c++17", "--device-as-default-execution-space", "--no-cache")
# The only arithmetic that kernels are compiled for: IEEE division (ART-001), and nothing fused or
# flushed (ART-002).
ARITHMETIC = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
_FIRST_SPECIFIC = 100  # such a GPU converts to 4 and 6 bits, which code for later ones may not


class NvrtcError(CudaError):
    """NVRTC is not there, or refused a source."""


class Compiled(NamedTuple):
    """A source that NVRTC compiled: text for all GPUs of a kind, and a program for one."""

    ptx: str
    cubin: bytes
    log: str


@functools.cache
def library() -> ctypes.CDLL:
    """Load NVRTC, from its wheel or from a CUDA toolkit."""
    for path in _places():
        try:
            nvrtc = ctypes.CDLL(path)
        except OSError:
            continue
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        return nvrtc
    raise NvrtcError(
        "NVRTC, which compiles the kernels, was not found; pip install nvidia-cuda-nvrtc, or set "
        "CUDA_PATH to a CUDA toolkit"
    )


def _places() -> Iterator[str]:
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(root).glob("*/lib/libnvrtc.so.*")):
            if "builtins" not in path.name and "alt" not in path.name:
                yield str(path)
    if "CUDA_PATH" in os.environ:
        yield from map(str, Path(os.environ["CUDA_PATH"]).glob("lib64/libnvrtc.so.*"))
    library_name = ctypes.util.find_library("nvrtc")
    if library_name:
        yield library_name


def version() -> tuple[int, int]:
    """Return the version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def architectures() -> tuple[int, ...]:
    """Return the GPUs that it compiles for: 90 is sm_90."""
    count = ctypes.c_int()
    library().nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library().nvrtcGetSupportedArchs(numbers)
    return tuple(numbers)


def specific(capability: int) -> str:
    """Return the architecture with all instructions of a GPU: 90 for sm_90, 100a for sm_100."""
    return f"{capability}a" if capability >= _FIRST_SPECIFIC else str(capability)


def compiled(
    text: str, architecture: str, name: str, options: tuple[str, ...] = ARITHMETIC
) -> Compiled:
    """Return a source compiled for an architecture, such as sm_90."""
    nvrtc, program = library(), ctypes.c_void_p()
    source, label = text.encode(), f"{name}.cu".encode()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, label, 0, None, None), name)
    try:
        words = [f"--gpu-architecture={architecture}", *LANGUAGE, *options]
        encoded = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        status = nvrtc.nvrtcCompileProgram(program, len(words), encoded)
        log = _part(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        _check(status, f"{name} for {architecture}", log.decode())
        ptx = _part(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        cubin = _part(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        return Compiled(ptx.rstrip(b"\0").decode(), cubin, log.rstrip(b"\0").decode())
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _part(program: ctypes.c_void_p, size_of: Callable[..., int], read: Callable[..., int]) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)), "the size of a result")
    if not size.value:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    _check(read(program, buffer), "a result")
    return buffer.raw


def _check(status: int, what: str, log: Any = "") -> None:
    if status:
        reason = library().nvrtcGetErrorString(status).decode()
        raise NvrtcError(
            f"NVRTC cannot compile {what} ({reason}): {log.rstrip(chr(0))}".rstrip(": ")
        )
