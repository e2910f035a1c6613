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

from mor_ref.mapped_files import ChangedFileError, FileState, in_memory, mapped

BF16 = np.dtype(ml_dtypes.bfloat16)
NAMES = {
    np.dtype(np.float64): "f64",
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    BF16: "bf16",
}
DTYPES = {name: dtype for dtype, name in NAMES.items()}
COPIED = 1 << 24  # bytes of a tensor that is read whole
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
    except ChangedFileError:
        raise
    except _UNREADABLE as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        reason = " ".join(str(said).split())[:_SHOWN] or type(error).__name__
        if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            raise MemoryError(f"{path}: {reason}") from error
        raise ValueError(
            f"{path} cannot be read as a {path.suffix.lower()} file ({reason}); "
            "save or download it again"
        ) from error


def read_from(
    path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], state: FileState
) -> Callable[[], NDArray[Any]]:
    """Return a reader of the array at a place of a file, whose header was read in this state.

    The numbers of a large array stay in the file, and `in_memory` reads parts of it.
    """

    def load() -> NDArray[Any]:
        with reading(path):
            if not math.prod(shape):
                return np.empty(shape, dtype)
            return in_memory_if_small(mapped(path, dtype, offset, shape, state))

    return load


def in_memory_if_small(array: NDArray[Any]) -> NDArray[Any]:
    """Return a mapped array, which is read if it is small, or if its numbers are not aligned."""
    return array if array.nbytes > COPIED and array.flags.aligned else in_memory(array)


def name_shown(name: str) -> str:
    """Return a name; quote it if it has control characters or is empty."""
    return name if name and name.isprintable() else repr(name)


def numbers_as_such(name: str) -> list[str | int]:
    """Return a key for sorting, in which text and numbers alternate."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)]
