"""Arrays of users on a GPU, turned into contiguous bit patterns, or refused with a reason."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from mor_ref.arrays import dequantized_dtype
from mor_ref.cuda.device import USING_MEMORY, Gpu, cupy, errors_of_torch, explained, in_order
from mor_ref.cuda.launching import WORDS, Array, Bits, Target
from mor_ref.cuda.streams import Moment, after, current, now
from mor_ref.cuda.unavailable import CudaError
from mor_ref.definitions.blocks import rows_and_columns

_SOURCES = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}
_TAKEN = (
    "a CuPy array, a CUDA tensor of torch, or another array on a GPU with "
    "__cuda_array_interface__ or DLPack"
)


class Numbers(NamedTuple):
    """The bit patterns of numbers, as rows and columns, and their dtype and shape."""

    bits: Bits
    dtype: str
    shape: tuple[int, ...]


class GivenArray(NamedTuple):
    """An argument as a CuPy array of the same memory, and its type in its library.

    `stream` is the stream of its library. A library other than CuPy and torch only lends the
    memory: once nobody holds the argument, the library may reuse it, even if a stream still reads
    it.
    """

    array: Array
    dtype: str
    argument: str
    stream: Any
    is_lent: bool


@contextmanager
def on_gpu_of(x: GivenArray, *others: GivenArray) -> Iterator[Gpu]:
    """Make the GPU and the stream of an argument current, to read it and others."""
    for argument in others:
        places = argument.array.device.id, x.array.device.id
        if places[0] != places[1]:
            raise ValueError(
                f"{argument.argument} lies on GPU {places[0]}, but {x.argument} on GPU "
                f"{places[1]}; give both on one"
            )
    with x.array.device, current(x.stream), ExitStack() as after_others:
        for argument in others:
            after_others.enter_context(after(now(argument.stream)))
        try:
            yield Gpu()
        finally:
            if any(lent.is_lent for lent in (x, *others)):
                with explained(*USING_MEMORY):
                    x.stream.synchronize()


@contextmanager
def on_gpu_after(ready: Moment, array: Array) -> Iterator[Gpu]:
    """Make the GPU of a result current; its current stream waits for the result."""
    with array.device, after(ready):
        yield Gpu()


def numbers_from(x: GivenArray) -> Numbers:
    """Return the bit patterns of numbers, copied only if they are not in C order."""
    if x.dtype not in _SOURCES:
        raise TypeError(
            f"{x.argument} has dtype {x.dtype}; convert it yourself and give "
            f"{' or '.join(map(str, _SOURCES))}: mor_ref does not round silently"
        )
    source = _SOURCES[x.dtype]
    shape = tuple(x.array.shape)  # of a contiguous array it is never ()
    words = in_order(x.array, x.argument).view(WORDS[source])
    return Numbers(Bits(words.reshape(rows_and_columns(shape)), source), x.dtype, shape)


def target_of(dtype: object) -> tuple[np.dtype[Any], Target]:
    """Return the dtype that codes are dequantized to, and its name to kernels."""
    wanted = dequantized_dtype(dtype)
    return wanted, "f32" if wanted == np.float32 else "bf16"


def codes_from(codes: GivenArray, dtype: Any) -> Array:
    """Return an array of codes, or refuse an array of a dtype other than `dtype`."""
    if codes.dtype != np.dtype(dtype).name:
        raise TypeError(f"{codes.argument} has dtype {codes.dtype}; give {np.dtype(dtype).name}")
    return in_order(codes.array, codes.argument).reshape(codes.array.shape)


def given(x: object, argument: str) -> GivenArray:
    """Return an argument as an array on its GPU, or refuse it."""
    if isinstance(x, np.ndarray | np.generic | list | tuple | int | float):
        raise TypeError(
            f"{argument} is a {type(x).__name__}, which lies on the host; give {_TAKEN}, such as "
            f"cupy.asarray({argument}), or call mor_ref itself"
        )
    if _is_torch_tensor(x):
        _check_torch(x, argument)
    cupy()
    try:
        return _from_torch(x, argument) if _is_torch_tensor(x) else _from_another(x, argument)
    except CudaError:
        raise
    except (TypeError, ValueError, AttributeError, BufferError, RuntimeError) as error:
        raise TypeError(
            f"{argument} is a {type(x).__name__}, not an array on a GPU ({error}); give {_TAKEN}"
        ) from error


def arrays_among(**arguments: Any) -> dict[str, GivenArray]:
    """Return those arguments that are arrays on a GPU."""
    return {
        name: given(value, name)
        for name, value in arguments.items()
        if value is not None and not isinstance(value, float | int)
    }


def words_of(array: GivenArray, dtype: str, count: int, places: str) -> Array:
    """Return an array with an entry for each of `count` blocks or rows, as words."""
    if array.dtype != dtype or array.array.size != count:
        raise ValueError(
            f"{array.argument} has {array.array.size} numbers of {array.dtype}; give one of {dtype}"
            f" for each of the {count} {places}"
        )
    kind = np.uint32 if dtype == "float32" else np.int32
    return in_order(array.array, array.argument).view(kind).reshape(-1)


def _is_torch_tensor(x: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _check_torch(x: Any, argument: str) -> None:
    if x.device.type != "cuda" or x.layout != sys.modules["torch"].strided:
        raise TypeError(
            f"{argument} is a torch tensor of layout {x.layout} on {x.device}; give a dense one "
            f"on a GPU, such as {argument}.to_dense().cuda(), or call mor_ref itself"
        )


def _from_torch(x: Any, argument: str) -> GivenArray:
    """Return the tensor's memory and its dtype, for CuPy need not know bfloat16."""
    torch, cuda = sys.modules["torch"], cupy().cuda
    stream = cuda.Stream.from_external(torch.cuda.current_stream(x.device))
    gpu_errors = (cuda.runtime.CUDARuntimeError, *errors_of_torch("AcceleratorError"))
    with cuda.Device(x.device.index), current(stream), explained(*USING_MEMORY, gpu_errors):
        plain = x.detach().resolve_neg().contiguous()
        if plain.dtype == torch.bfloat16:
            plain = plain.view(torch.int16)
        array = cupy().from_dlpack(plain)
    return GivenArray(array, str(x.dtype).removeprefix("torch."), argument, stream, is_lent=False)


def _from_another(x: Any, argument: str) -> GivenArray:
    gpu = cupy()
    with explained(*USING_MEMORY, (gpu.cuda.runtime.CUDARuntimeError,)):
        array = gpu.asarray(x) if hasattr(x, "__cuda_array_interface__") else gpu.from_dlpack(x)
    with array.device:
        stream = gpu.cuda.get_current_stream()
    is_lent = not isinstance(x, gpu.ndarray)
    return GivenArray(array, str(array.dtype), argument, stream, is_lent)
