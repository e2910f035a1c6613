"""The standard input and pipes as files: a copy, whose ending follows from the first bytes."""

import atexit
import functools
import os
import shutil
import stat
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_STDIN = ("-", "/dev/stdin")
_BEGINNINGS = {b"\x93NUMPY": ".npy", b"GGUF": ".gguf", b"\x80": ".pt"}
_ZIP = b"PK"
_LENGTH = 8  # bytes before the header of a .safetensors file, which begins with a brace


def name_of(file: str) -> str:
    """Return the name of a file, and stdin for the standard input."""
    return "stdin" if file in _STDIN else file


def as_file(file: str) -> Path:
    """Return the path of a file that can be read again: the one that is given, or a copy of a pipe.

    - is the standard input. If that is a file, the path of this file is returned.
    """
    path = Path("/dev/stdin" if file in _STDIN else file)
    try:
        there = path.stat()
    except OSError:
        return path  # whoever opens it says what is wrong
    if stat.S_ISREG(there.st_mode) and not str(path).startswith("/dev/"):
        return path
    if stat.S_ISREG(there.st_mode):
        path = path.resolve()
        return path if path.suffix else _copy(file, there.st_dev, there.st_ino)
    if stat.S_ISFIFO(there.st_mode) or stat.S_ISSOCK(there.st_mode):
        return _copy(file, there.st_dev, there.st_ino)
    if stat.S_ISDIR(there.st_mode):
        return path
    raise ValueError(f"{file} is a terminal or a device; give a file or a pipe")


@functools.cache
def _copy(file: str, *_of_this_file: int) -> Path:
    """Return the path of a copy; what is in a pipe can be read only once."""
    place = _directory() / f"{len([*_directory().iterdir()])}"
    place.mkdir()
    copy = place / Path(name_of(file)).name
    with _opened(file) as stream, copy.open("wb") as written:
        shutil.copyfileobj(stream, written)
    return copy.rename(copy.with_suffix(_ending(file, copy)))


@contextmanager
def _opened(file: str) -> "Iterator[IO[bytes]]":
    """Open a pipe; the standard input may be a socket, which has no name to open it by."""
    with os.fdopen(os.dup(0), "rb") if file in _STDIN else Path(file).open("rb") as stream:
        yield stream


@functools.cache
def _directory() -> Path:
    """Return a directory that is there until the program ends."""
    directory = tempfile.mkdtemp(prefix="mor_ref-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _ending(file: str, copy: Path) -> str:
    """Return the ending of the kind of file that begins so."""
    with copy.open("rb") as stream:
        first = stream.read(_LENGTH + 1)
    if not first:
        raise ValueError(f"{file} is empty; give a file or a pipe with tensors")
    for beginning, ending in _BEGINNINGS.items():
        if first.startswith(beginning):
            return ending
    if first.startswith(_ZIP) and zipfile.is_zipfile(copy):
        with zipfile.ZipFile(copy) as archive:
            is_numpy = all(name.endswith(".npy") for name in archive.namelist())
        return ".npz" if is_numpy else ".pt"
    if first[_LENGTH:] == b"{":
        return ".safetensors"
    raise ValueError(
        f"{file} begins with {first!r}, as no .npy, .npz, .safetensors, .gguf or .pt file does; "
        "give one of these"
    )
