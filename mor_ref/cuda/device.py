"""The kernels on a GPU, through CuPy: compiled here, checked, and only then loaded."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mor_ref.cuda import nvrtc, ptx, source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.errors import CudaError


class GpuError(CudaError):
    """There is no GPU to run kernels on, or something that they need is missing."""


@functools.cache
def cupy() -> Any:
    """CuPy, where it is installed and sees a GPU."""
    try:
        import cupy as found
    except ImportError as error:
        raise GpuError(
            f"mor_ref.cuda needs CuPy, which cannot be imported ({error}); pip install "
            "'mor-ref[gpu]', or use mor_ref itself, which runs on the CPU"
        ) from error
    if not found.is_available():
        raise GpuError(
            "mor_ref.cuda needs an NVIDIA GPU, and CuPy sees none; check the driver with "
            "nvidia-smi, or use mor_ref itself, which runs on the CPU"
        )
    return found


def cubin(program: str, capability: int) -> bytes:
    """A source compiled for a GPU, once its PTX is known to be bit-exact."""
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
    made = nvrtc.compiled(source.flattened(program), f"sm_{capability}", program)
    ptx.check(made.ptx, program)
    return made.cubin


@functools.cache
def _module(program: str, capability: int) -> Any:
    key = source.digest(
        source.flattened(program), nvrtc.ARITHMETIC, nvrtc.version(), f"sm_{capability}"
    )
    path = cached_file(f"{program}-{key}.cubin", lambda: cubin(program, capability))
    return cupy().RawModule(path=str(path))


class Gpu:
    """The GPU that is CuPy's current device; kernels go to its current stream."""

    def __init__(self) -> None:
        self._cupy = cupy()
        self._capability = int(self._cupy.cuda.Device().compute_capability)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array whose contents nobody may rely on."""
        return self._cupy.empty(shape, dtype)

    def full(self, shape: tuple[int, ...], dtype: Any, value: int) -> Any:
        """An array of one value."""
        return self._cupy.full(shape, value, dtype)

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """An array of the host's, on the GPU."""
        return self._cupy.asarray(array)

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """An array of the GPU's, on the host."""
        return np.asarray(self._cupy.asnumpy(array))

    def address(self, array: Any) -> int:
        """Where an array lies."""
        return int(array.data.ptr)

    def launch(
        self, program: str, kernel: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> None:
        """Run a kernel: arrays go in by their address, and rows and NumPy's numbers by value."""
        run = _module(program, self._capability).get_function(kernel)
        run((blocks,), (threads,), tuple(arguments))
