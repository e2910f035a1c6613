"""What users hand in on a GPU, as plain contiguous bit patterns, or refused with a reason."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mor_ref.cuda.device import Gpu, cupy
from mor_ref.cuda.launching import Array, Bits
from mor_ref.partition import rows_and_columns

_SOURCES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_WORDS = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}
_TAKEN = (
    "a CuPy array, a CUDA tensor of torch, or another array on a GPU with "
    "__cuda_array_interface__ or DLPack"
)


class Numbers(NamedTuple):
    """The bit patterns of numbers, as rows and columns, and what they were."""

    bits: Bits
    dtype: str
    shape: tuple[int, ...]


def numbers_from(x: object, argument: str = "x") -> Numbers:
    """The bit patterns of the numbers in `x`, copied only if they do not lie in order."""
    array, dtype = _array_from(x, argument)
    if dtype not in _SOURCES:
        raise TypeError(
            f"{argument} has dtype {dtype}; give {', '.join(_SOURCES)}, converted by yourself, so "
            "that no rounding goes unseen"
        )
    source = _SOURCES[dtype]
    words = cupy().ascontiguousarray(array).view(_WORDS[source])
    shape = tuple(words.shape)
    return Numbers(Bits(words.reshape(rows_and_columns(shape)), source), dtype, shape)


def codes_from(codes: object, dtype: Any, argument: str = "codes") -> Array:
    """Codes, which are unsigned integers of that dtype."""
    array, name = _array_from(codes, argument)
    if name != np.dtype(dtype).name:
        raise TypeError(f"{argument} has dtype {name}; give {np.dtype(dtype).name}")
    return cupy().ascontiguousarray(array)


def _array_from(x: object, argument: str) -> tuple[Array, str]:
    """A CuPy array of the same memory, and the dtype of what it was."""
    if _is_torch_tensor(x):
        return _from_torch(x, argument)
    if isinstance(x, np.ndarray | np.generic | list | tuple | int | float):
        raise TypeError(
            f"{argument} is a {type(x).__name__}, which lies on the host; give {_TAKEN}, such as "
            f"cupy.asarray({argument}), or call mor_ref itself"
        )
    try:
        if hasattr(x, "__cuda_array_interface__"):
            array = cupy().asarray(x)
        else:
            array = cupy().from_dlpack(x)
    except (TypeError, AttributeError, BufferError, RuntimeError) as error:
        raise TypeError(
            f"{argument} is a {type(x).__name__}, and no array on a GPU ({error}); give {_TAKEN}"
        ) from error
    return array, str(array.dtype)


def _is_torch_tensor(x: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _from_torch(x: Any, argument: str) -> tuple[Array, str]:
    """The tensor's memory; CuPy need not know bfloat16."""
    torch = sys.modules["torch"]
    if x.device.type != "cuda" or x.layout != torch.strided:
        raise TypeError(
            f"{argument} is a torch tensor of layout {x.layout} on {x.device}; give a dense one "
            f"on a GPU, such as {argument}.to_dense().cuda(), or call mor_ref itself"
        )
    plain = x.detach().resolve_neg().contiguous()
    name = str(x.dtype).removeprefix("torch.")
    if plain.dtype == torch.bfloat16:
        plain = plain.view(torch.int16)
    return cupy().from_dlpack(plain), name


@contextmanager
def on_stream_of(x: object) -> Iterator[Gpu]:
    """The GPU that `x` lies on, with the stream that its library works on as the current one."""
    gpu = cupy()
    if _is_torch_tensor(x) and x.is_cuda:  # type: ignore[attr-defined]
        torch = sys.modules["torch"]
        device = x.device  # type: ignore[attr-defined]
        stream = torch.cuda.current_stream(device).cuda_stream
        with gpu.cuda.Device(device.index), gpu.cuda.ExternalStream(stream):
            yield Gpu()
        return
    if isinstance(x, gpu.ndarray):
        with x.device:
            yield Gpu()
        return
    yield Gpu()
