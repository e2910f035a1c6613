"""The kernels on a GPU, through CuPy: compiled here, checked, and only then loaded."""

import functools
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mor_ref.cuda import nvrtc, ptx, source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.unavailable import CudaError


class GpuError(CudaError):
    """There is no GPU to run kernels on, or something that they need is missing."""


def errors_of_torch(name: str) -> tuple[type[Exception], ...]:
    """Return an error class of torch as a tuple to catch, empty if it does not exist."""
    torch = sys.modules.get("torch")
    return (getattr(torch, name),) if hasattr(torch, name) else ()


@contextmanager
def explained(
    what: str, advice: str, kinds: tuple[type[Exception], ...] = (RuntimeError,)
) -> Iterator[None]:
    """Turn some errors of CuPy or torch into one sentence."""
    memory_errors: tuple[type[Exception], ...] = MemoryError, *errors_of_torch("OutOfMemoryError")
    try:
        yield
    except CudaError:
        raise
    except memory_errors as error:
        raise GpuError(
            f"the GPU has too little memory left ({error}); free some of it, or give less at once"
        ) from error
    except kinds as error:
        raise GpuError(f"{what} ({error}); {advice}") from error


_LOADING = (
    "update the driver if it is older than NVRTC, or delete the compiled kernels, which lie in "
    "MOR_REF_CACHE or ~/.cache/mor_ref/cuda"
)
USING_MEMORY = (
    "memory of the GPU cannot be used",
    "an error of a kernel before this may be the cause",
)


@functools.cache
def cupy() -> Any:
    """Return CuPy, if it is installed and sees a GPU."""
    try:
        import cupy as module
    except ImportError as error:
        raise GpuError(
            f"mor_ref.cuda needs CuPy, which cannot be imported ({error}); pip install "
            "'mor-ref[gpu]', or use mor_ref itself, which runs on the CPU"
        ) from error
    with explained("CuPy cannot use the GPU", "check the driver with nvidia-smi, and update it"):
        is_available = module.is_available()
    if not is_available:
        raise GpuError(
            "mor_ref.cuda needs an NVIDIA GPU, and CuPy sees none; check the driver with "
            "nvidia-smi, or use mor_ref itself, which runs on the CPU"
        )
    return module


def cubin(program: str, capability: int) -> bytes:
    """Return a source compiled for a GPU, once its PTX is known to be bit-exact."""
    known = [number for number in nvrtc.architectures() if number <= capability]
    if not known:
        raise GpuError(
            f"the GPU is of compute capability {capability / 10}, and NVRTC "
            f"{'.'.join(map(str, nvrtc.version()))} compiles for {nvrtc.architectures()[0] / 10} "
            "and later; install an older nvidia-cuda-nvrtc"
        )
    if capability not in known:
        raise GpuError(
            f"the GPU is of compute capability {capability / 10}, which NVRTC "
            f"{'.'.join(map(str, nvrtc.version()))} does not know; pip install -U "
            "nvidia-cuda-nvrtc"
        )
    target = f"sm_{nvrtc.specific(capability)}"
    compiled = nvrtc.compiled(source.flattened(program), target, program)
    ptx.check(compiled.ptx, program)
    return compiled.cubin


@functools.cache
def _module(program: str, capability: int) -> Any:
    options = (*nvrtc.LANGUAGE, *nvrtc.ARITHMETIC, f"sm_{nvrtc.specific(capability)}")
    checker = Path(ptx.__file__).read_text("utf-8")
    key = source.digest(source.flattened(program), options, nvrtc.version(), checker)
    path = cached_file(f"{program}-{key}.cubin", lambda: cubin(program, capability))
    return cupy().RawModule(path=str(path))


def copying(what: str) -> AbstractContextManager[None]:
    """Explain an error of a copy that CuPy compiles a kernel for."""
    advice = "install CuPy's compiler: pip install 'mor-ref[gpu]'"
    kinds = RuntimeError, cupy().cuda.compiler.CompileException
    return explained(f"CuPy cannot copy {what}", advice, kinds)


def in_order(array: Any, argument: str) -> Any:
    """Return an array in C order; a kernel of CuPy copies it if it is in another."""
    what = f"CuPy cannot copy {argument} into C's order"
    advice = "give an array in C's order, or install CuPy's compiler: pip install 'mor-ref[gpu]'"
    with explained(what, advice, (RuntimeError, cupy().cuda.compiler.CompileException)):
        return cupy().ascontiguousarray(array)


class Gpu:
    """The GPU that is CuPy's current device; kernels go to its current stream.

    `capability` is its compute capability, 90 for 9.0.
    """

    def __init__(self) -> None:
        self._cupy = cupy()
        with explained("the GPU does not answer", "check it with nvidia-smi"):
            self.capability = int(self._cupy.cuda.Device().compute_capability)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array with undefined contents."""
        with explained(*USING_MEMORY):
            return self._cupy.empty(shape, dtype)

    def filled(self, shape: tuple[int, ...], dtype: Any, byte: int) -> Any:
        """Return an array with this value in every byte, for which CuPy compiles nothing."""
        array = self.empty(shape, dtype)
        with explained(*USING_MEMORY):
            array.data.memset_async(byte, array.nbytes)
        return array

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """Return an array of the host, on the GPU."""
        with explained(*USING_MEMORY):
            return self._cupy.asarray(array)

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """Return an array of the GPU, on the host."""
        with explained(*USING_MEMORY):
            return np.asarray(self._cupy.asnumpy(array))

    def address(self, array: Any) -> int:
        """Return the address of an array."""
        return int(array.data.ptr)

    def launch(
        self, program: str, kernel: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> None:
        """Run a kernel: arrays go in by their address, and rows and NumPy's numbers by value."""
        with explained(f"kernel {kernel} of {program} cannot be loaded or run", _LOADING):
            run = _module(program, self.capability).get_function(kernel)
            run((blocks,), (threads,), tuple(arguments))
