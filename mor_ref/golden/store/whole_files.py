"""Files inside of a directory: read and written whole or not at all, and never outside of it."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import load

LARGEST_FILE = 1 << 31  # bytes of a file of arrays
_RANDOM, _UNFINISHED = 8, ".unfinished"  # letters that mkstemp makes, and the ending after them
_DTYPES = {
    **{f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"F{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    "BOOL": "?",
}
_SHOWN = 120  # characters of another library's message


def is_inside(directory: Path, path: Path) -> bool:
    """Return whether a path, links followed, leads into a directory, which may be a link."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))


def read_inside(directory: Path, name: str, most: int = LARGEST_FILE) -> bytes:
    """Read a file of a directory, or raise an OSError whose `strerror` says why not."""
    path = directory / name
    if not is_inside(directory, path):
        raise OSError(errno.EPERM, f"it leads out of {directory}")
    # A pipe that nobody writes to would be waited for at open, and a device has no end.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, and at most {most:,} go")
        return file.read(most)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody sees a part of it, even after an interruption."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write; nobody sees a part of it, even after an interruption."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(_UNFINISHED, f".{path.name}.", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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


def load_readable(content: bytes) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, str]]:
    """Return the arrays of a safetensors file, and the dtypes of those that NumPy has no dtype for.

    A ValueError says why it is not such a file.
    """
    arrays, others = {}, {}
    try:
        for name, entry in deserialize(content):  # type: ignore[no-untyped-call]
            dtype = _DTYPES.get(entry["dtype"])
            if dtype is None:
                others[name] = str(entry["dtype"])
            else:
                array = np.frombuffer(bytes(entry["data"]), dtype)
                arrays[name] = array.reshape(entry["shape"])
    except (SafetensorError, ValueError, TypeError, OverflowError) as error:
        raise ValueError(_in_a_line(error)) from error
    return arrays, others


def _in_a_line(error: Exception) -> str:
    """Return the message of another library in printable ASCII, as it may quote the file."""
    text = " ".join(str(error).split()).encode("ascii", "backslashreplace").decode("ascii")
    printable = "".join(letter if letter.isprintable() else "?" for letter in text)
    return printable if len(printable) <= _SHOWN else printable[:_SHOWN] + ".."
