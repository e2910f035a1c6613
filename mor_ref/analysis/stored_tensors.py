"""Tensors in files, and the words for those that are not read."""

import errno
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

    Those of a large tensor are read when they are looked at. Others are copied: a file that gets
    shorter while it is mapped would end the process.
    """
    size = math.prod(shape)

    def load() -> NDArray[Any]:
        with reading(path):
            if not size:
                return np.empty(shape, dtype)
            if size * dtype.itemsize <= COPIED:
                return _copied(path, dtype, offset, size).reshape(shape)
            there = np.memmap(path, dtype, "r", offset, size)
            return np.asarray(there).reshape(shape)

    return load


def _copied(path: Path, dtype: np.dtype[Any], offset: int, size: int) -> NDArray[Any]:
    with path.open("rb") as stream:
        stream.seek(offset)
        content = stream.read(size * dtype.itemsize)
    if len(content) < size * dtype.itemsize:
        raise ValueError("it has become shorter")
    return np.frombuffer(content, dtype)


def name_shown(name: str) -> str:
    """Return a name; quote it if it has control characters or is empty."""
    return name if name and name.isprintable() else repr(name)


def numbers_as_such(name: str) -> list[str | int]:
    """Return a key for sorting, in which text and numbers alternate."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)]
