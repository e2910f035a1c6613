"""Arrays in files that are read part by part, as they may be larger than the memory.

A mapped array says where its numbers are. Nobody computes on it: if another process cuts the file,
a look at a page that is gone ends this process. `in_memory` reads the numbers of any part.
"""

import errno
import os
import weakref
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

_IN_PIPE = 1 << 16  # bytes


class FileState(NamedTuple):
    """Which file it is, how long it is, and when it was written to."""

    device: int
    number: int
    size: int
    written: int


class ChangedFileError(ValueError):
    """A file that was written to while it was read: its path, and what has become of it."""

    def __init__(self, path: Path, change: str) -> None:
        super().__init__(path, change)

    def __str__(self) -> str:
        path, change = self.args
        return f"{path} {change} while it was read; give it again when nothing writes to it"


class _MappedArray(np.ndarray[Any, Any]):
    """The bytes of a part of a file, and how they are read.

    `stream` is the file, which stays open, as a file of the same name may be another one, and
    `offset` how many of its bytes come before. There is no stream if somebody else has mapped it.
    Arrays that are made of this one have no path.
    """

    path: Path | None = None
    state: FileState
    stream: BufferedReader | None
    offset: int


def state_of(file: Path | int) -> FileState:
    """Return the state of a file, by its path or its descriptor."""
    found = os.stat(file)  # noqa: PTH116 (a descriptor has no path)
    return FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def mapped(
    path: Path, dtype: np.dtype[Any], offset: int, shape: tuple[int, ...], state: FileState
) -> NDArray[Any]:
    """Return the array at a place of a file, which has numbers and was in this state before."""
    stream = path.open("rb")
    try:
        _check(path, state, stream)
        there = np.memmap(stream, dtype, "r", offset, shape).view(_MappedArray)
    except BaseException:
        stream.close()
        raise
    there.path, there.state, there.stream, there.offset = path, state, stream, offset
    weakref.finalize(there, stream.close)
    return np.asarray(there)


def mapped_by_others(path: Path, pages: NDArray[np.uint8], state: FileState) -> NDArray[np.uint8]:
    """Return bytes that a library has mapped from a file, wherever they are in it."""
    # Between two arrays of NumPy's own type, a view would not keep this one as its base.
    there = pages.view(np.memmap).view(_MappedArray)
    there.path, there.state, there.stream = path, state, None
    return np.asarray(there)


def in_memory(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of a part of a mapped array, read from the file; any other array as it is.

    If the file has changed, this is an error in a sentence.
    """
    whole: Any = array
    while isinstance(whole, np.ndarray) and getattr(whole, "path", None) is None:
        whole = whole.base
    if not isinstance(whole, _MappedArray) or whole.path is None:
        return array
    first, end = byte_bounds(array)
    start = first - whole.ctypes.data
    try:
        content = np.empty(end - first, np.uint8)
    except MemoryError as error:
        raise MemoryError(f"{whole.path}: {error}") from error
    if whole.stream is None:
        _copy_by_system(whole.path, whole.view(np.ndarray)[start : start + len(content)], content)
    else:
        whole.stream.seek(whole.offset + start)
        if whole.stream.readinto(content.data) < len(content):
            raise ChangedFileError(whole.path, "has become shorter")
    _check(whole.path, whole.state, whole.stream)
    place = array.ctypes.data - first
    return np.ndarray(array.shape, array.dtype, content.data, place, array.strides)


def _copy_by_system(path: Path, pages: NDArray[np.uint8], copy: NDArray[np.uint8]) -> None:
    """Let the system copy mapped bytes, through a pipe.

    A page that is gone is an error of a write then; to look at it would end this process.
    """
    source, target, done = pages.data, copy.data, 0
    first, last = os.pipe()
    with os.fdopen(first, "rb", 0) as received, os.fdopen(last, "wb", 0) as sent:
        os.set_blocking(last, False)
        while done < len(copy):
            try:
                end = done + (sent.write(source[done : done + _IN_PIPE]) or 0)
            except OSError as error:
                if error.errno != errno.EFAULT:
                    raise
                raise ChangedFileError(path, "has become shorter") from error
            while done < end:
                done += received.readinto(target[done:end])


def _check(path: Path, state: FileState, stream: BufferedReader | None) -> None:
    """Refuse a file that is in another state: the open one, or the one of the path."""
    now = state_of(path if stream is None else stream.fileno())
    if now.size < state.size and now.number == state.number:
        raise ChangedFileError(path, "has become shorter")
    if now != state:
        raise ChangedFileError(path, "has changed")
