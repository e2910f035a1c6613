"""Tensors in files, and the words for those that are not read."""

import errno
import math
import os
import re
import struct
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {
    np.dtype(np.float64): "f64",
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    BF16: "bf16",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
COPIED = 1 << 24  # bytes of a tensor that is not mapped
_SHOWN = 300  # characters of the reason of an error
_NO_MEMORY = os.strerror(errno.ENOMEM)  # in the errors of libraries, whatever their types
SMALL = "floats of so few bits that they are quantized already"
_UNREADABLE = (
    AttributeError,  # of torch, as are the next three
    IndexError,
    KeyError,
    AssertionError,
    EOFError,
    LZMAError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,  # of zipfile: encrypted, or an unknown version or compression
    SafetensorError,
    SyntaxError,
    TokenError,
    TypeError,  # of NumPy, which sorts the keys of a header
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of floats in a file; `load` reads it.

    `dtype` is "f64", "f32", "f16" or "bf16". It `is_of_optimizer` if the state of an optimizer has
    it: such as a mean of gradients, and not a weight.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], NDArray[Any]]
    is_of_optimizer: bool = False


@dataclass(frozen=True)
class SkippedTensor:
    """A tensor that is not taken; `dtype` is the one of the file.

    >>> print(SkippedTensor("position_ids", (1, 512), "I64", "it holds integers"))
    position_ids (1x512 I64): it holds integers
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    reason: str

    def __str__(self) -> str:
        return self.said()

    def said(self, where: str = "") -> str:
        """Say which tensor it is, `where` it is, and why it is skipped."""
        sides = "x".join(map(str, self.shape)) or "scalar"
        return f"{name_shown(self.name)}{where} ({sides} {self.dtype}): {self.reason}"


Tensors = Iterator[StoredTensor | SkippedTensor]


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in an error of reading it; the file may be whole if memory is lacking."""
    try:
        yield
    except _UNREADABLE as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        reason = " ".join(str(said).split())[:_SHOWN] or type(error).__name__
        if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            raise MemoryError(f"{path}: {reason}") from error
        raise ValueError(
            f"{path} cannot be read as a {path.suffix.lower()} file ({reason}); "
            "save or download it again"
        ) from error


def mapped(
    path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...]
) -> Callable[[], NDArray[Any]]:
    """Return a reader of numbers at a place of a file.

    Those of a large tensor are read when they are looked at, or by `read_again`. Others are copied:
    a file that gets shorter while it is mapped would end the process.
    """
    size = math.prod(shape)

    def load() -> NDArray[Any]:
        with reading(path):
            if not size:
                return np.empty(shape, dtype)
            if size * dtype.itemsize <= COPIED:
                return _copied(path, dtype, offset, size).reshape(shape)
            there = readable_again(np.memmap(path, dtype, "r", offset, size), path)
            return np.asarray(there).reshape(shape)

    return load


class _MappedFile(np.memmap[Any, Any]):
    """A mapped file, which stays open: a file that is opened by its name may be another one."""

    stream: BufferedReader | None = None  # none in arrays that are made of this one


def readable_again(there: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return a mapped file whose parts `read_again` reads."""
    mapped_file = there.view(_MappedFile)
    mapped_file.stream = path.open("rb")
    weakref.finalize(mapped_file, mapped_file.stream.close)
    return mapped_file


def read_again(part: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a part of a mapped file, in order; other arrays as they are.

    If the file has become shorter, this is an error in a sentence. To look at the part itself would
    end the process.
    """
    whole: Any = part
    while isinstance(whole, np.ndarray) and getattr(whole, "stream", None) is None:
        whole = whole.base
    if not isinstance(whole, _MappedFile) or whole.stream is None or not part.flags.c_contiguous:
        return part
    with reading(Path(whole.stream.name)):
        offset = whole.offset + part.ctypes.data - whole.ctypes.data
        content = _content(whole.stream, offset, part.nbytes)
    return content.view(part.dtype).reshape(part.shape)


def _copied(path: Path, dtype: np.dtype[Any], offset: int, size: int) -> NDArray[Any]:
    with path.open("rb") as stream:
        return _content(stream, offset, size * dtype.itemsize).view(dtype)


def _content(stream: BufferedReader, offset: int, size: int) -> NDArray[np.uint8]:
    stream.seek(offset)
    content = np.empty(size, np.uint8)
    if stream.readinto(content.data) < size:
        raise ValueError("it has become shorter")
    return content


def name_shown(name: str) -> str:
    """Return a name; quote it if it has control characters or is empty."""
    return name if name and name.isprintable() else repr(name)


def numbers_as_such(name: str) -> list[str | int]:
    """Return a key for sorting, in which text and numbers alternate."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)]
