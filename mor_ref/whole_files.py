"""Files inside of a directory: read and written whole or not at all, and never outside of it."""

import errno
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from mor_ref.mapped_files import mapped, state_of

LARGEST_FILE = 1 << 31  # bytes of a file of arrays
_RANDOM, _UNFINISHED = 8, ".unfinished"  # letters that mkstemp makes, and the ending after them
DTYPES = {
    **{f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    "BOOL": "?",
}
_LENGTH, _LONGEST_HEADER = 8, 100_000_000  # bytes, as the library safetensors has them
_SHOWN = 120  # characters of another library's message


def is_inside(directory: Path, path: Path) -> bool:
    """Return whether a path, links followed, leads into a directory, which may be a link."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))


def read_inside(directory: Path, name: str, most: int = LARGEST_FILE) -> bytes:
    """Read a file of a directory, or raise an OSError whose `strerror` says why not."""
    with _opened_inside(directory, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, and at most {most:,} go")
        # Python reserves as many bytes as a read asks for.
        return file.read(size + 1)[:most]


@contextmanager
def _opened_inside(directory: Path, name: str) -> Iterator[IO[bytes]]:
    path = directory / name
    if not is_inside(directory, path):
        raise OSError(errno.EPERM, f"it leads out of {directory}")
    # A pipe that nobody writes to would be waited for at open, and a device has no end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield file


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody sees a part of it, even after an interruption."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write; nobody sees a part of it, even after an interruption.

    An OSError of writing has the path in its message, and its `strerror` says why.
    """
    name = ""
    try:
        with _naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = _unfinished(path)
        with os.fdopen(handle, "wb") as file:
            yield file
        with _naming(path):
            Path(name).chmod(0o644)
            Path(name).replace(path)
    except OSError as error:
        if error.filename is not None or isinstance(error, UnwritableError):
            raise  # of another file, which is read at the same time
        raise UnwritableError(path, error) from error
    finally:  # after a rename, nothing of this name is there
        if name:
            Path(name).unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableError(path, error) from error


class UnwritableError(OSError):
    """A file that cannot be written: its path, and why not."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self._path = path

    def __str__(self) -> str:
        return (
            f"{self._path} cannot be written ({self.strerror}); make room for it, or give another "
            "file"
        )


def check_writable(path: Path) -> None:
    """Raise an OSError if `whole_file` could not write a file of this path now."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    handle, name = _unfinished(path)
    os.close(handle)
    Path(name).unlink()


def _unfinished(path: Path) -> tuple[int, str]:
    """Open a new file next to a path, where a rename makes it the file of that path."""
    return tempfile.mkstemp(_UNFINISHED, f".{path.name}.", path.parent)


def remove_unfinished(directory: Path, files: str) -> None:
    """Remove the temporary files of a `write_whole` that was killed, in a directory.

    `files` is a pattern of the names of the finished files. No other file is removed.
    """
    where = (directory / files).parent
    hidden = f".{(directory / files).name}.{'?' * _RANDOM}{_UNFINISHED}"
    for path in where.glob(hidden) if is_inside(directory, where) else ():
        if path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def write_inside(directory: Path, name: str, content: bytes) -> None:
    """Write a file of a directory, whole, unless links or the name lead to another place.

    A link at the place of the file itself is replaced, and its target is left as it is.
    """
    path = directory / name
    if path.name in ("", "..") or not is_inside(directory, path.parent):
        raise ValueError(f"{path} leads out of {directory}; take the link away, or name its target")
    try:
        write_whole(path, content)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}); make room for it, or give another "
            "directory"
        ) from error


def load_arrays(content: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a safetensors file, or raise a ValueError that says why not."""
    try:
        return load(content)
    except KeyError as error:  # small floats, which NumPy has not
        raise ValueError(f"it has an array of the dtype {_in_a_line(error)}") from error
    except (SafetensorError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(_in_a_line(error)) from error


def arrays_inside(
    directory: Path, name: str
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """Return the arrays of a safetensors file of a directory, and the other dtypes that it has.

    Numbers are read by `in_memory`. An OSError says why the file cannot be read, and a
    ValueError why it is not such a file.
    """
    arrays, others = {}, {}
    with _opened_inside(directory, name) as file:
        state = state_of(file.fileno())
        start, header = _header(file, state.size)
        whole = mapped(Path(directory / name), np.dtype(np.uint8), 0, (state.size,), state)
        for key, dtype, shape, (begin, end) in header:
            known = np.dtype(DTYPES.get(dtype, "V0"))
            if known.itemsize == 0:
                others[key] = dtype
                continue
            is_inside = 0 <= begin <= end <= state.size - start
            if not is_inside or end - begin != _bytes_of(known, shape):
                raise ValueError(f"its header has {ascii(key)[1:-1][:_SHOWN]} at wrong places")
            arrays[key] = whole[start + begin : start + end].view(known).reshape(shape)
    return arrays, others


def _bytes_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    return math.prod(shape) * dtype.itemsize


_Described = tuple[str, str, tuple[int, ...], tuple[int, int]]  # name, dtype, shape, begin and end


def _header(file: IO[bytes], size: int) -> tuple[int, list[_Described]]:
    """Return where the numbers of a safetensors file begin, and its arrays."""
    length = int.from_bytes(file.read(_LENGTH), "little")
    if size < _LENGTH or length > min(size - _LENGTH, _LONGEST_HEADER):
        raise ValueError("it has no whole header")
    try:
        read = json.loads(file.read(length))
        entries = {name: entry for name, entry in read.items() if name != "__metadata__"}
        found = [_described(name, entry) for name, entry in entries.items()]
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"its header cannot be read: {_in_a_line(error)}") from error
    return _LENGTH + length, found


def _described(name: str, entry: Any) -> _Described:
    begin, end = entry["data_offsets"]
    sides = (*entry["shape"], begin, end)
    if not all(type(side) is int and 0 <= side < 1 << 62 for side in sides):
        raise ValueError("a side or a place is not a whole number")
    return name, str(entry["dtype"]), tuple(entry["shape"]), (begin, end)


def _in_a_line(error: Exception) -> str:
    """Return the message of another library in printable ASCII, as it may quote the file."""
    text = " ".join(str(error).split()).encode("ascii", "backslashreplace").decode("ascii")
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= _SHOWN else printable[:_SHOWN] + ".."
