"""The tensors of .npy and .npz files."""

import functools
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.stored_tensors import (
    BF16,
    COPIED,
    NAMES,
    SkippedTensor,
    StoredTensor,
    Tensors,
    readable_again,
    reading,
)

# NumPy has no name for the dtypes of ml_dtypes, and saves them as raw bytes.
_SAVED_BF16 = np.dtype("V2")
_KINDS = {
    "b": "booleans",
    "i": "integers",
    "u": "integers",
    "c": "complex numbers",
    "f": "floats wider than f64",
    "V": "records or raw bytes, as NumPy saves the small floats of ml_dtypes",
}


@dataclass(frozen=True)
class Header:
    """The header of a .npy file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def holds_objects(self) -> bool:
        """Whether the entries are Python objects."""
        return self.dtype.hasobject

    @property
    def is_taken(self) -> bool:
        """Whether the numbers are floats that are read."""
        return self.numbers in NAMES

    @property
    def numbers(self) -> np.dtype[Any]:
        """The dtype of the numbers, in the byte order of the machine."""
        return BF16 if self.dtype == _SAVED_BF16 else self.dtype.newbyteorder("=")

    def plain(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array in row-major order, without a copy if it is already."""
        if self.numbers == BF16:
            array = array.view(BF16)
        return np.asarray(array, self.numbers, order="C")


def _header(stream: IO[bytes], size: int) -> Header:
    """Read the header of a .npy file of this size, which the numbers must fill."""
    version = np.lib.format.read_magic(stream)
    try:
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        else:  # 3.0 is for the names of structured arrays
            raise ValueError(f"it is of version {version[0]}.{version[1]}")
    except MemoryError as error:  # of Python's parser, however much memory there is
        raise ValueError("its header is nested too deeply") from error
    there, wanted = size - stream.tell(), math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and there != wanted:
        raise ValueError(
            f"shape {shape} of {dtype} takes {wanted} bytes, but {there} follow the header"
        )
    return Header(shape, dtype)


def _refuse_objects(where: str, header: Header) -> None:
    if header.holds_objects:
        raise ValueError(
            f"{where} holds Python objects, which are never unpickled here; save its numbers as an "
            "array of floats"
        )


def npy(file: str) -> Tensors:
    """Yield the tensor of a .npy file, which has the name of the file."""
    path = Path(file)
    with reading(path), path.open("rb") as stream:
        header = _header(stream, path.stat().st_size)
    _refuse_objects(file, header)

    def load() -> NDArray[Any]:
        with reading(path):
            size = math.prod(header.shape) * header.dtype.itemsize
            mode: Literal["r"] | None = "r" if size > COPIED else None
            array = np.load(path, mmap_mode=mode, allow_pickle=False)
            return header.plain(readable_again(array, path) if mode else array)

    if header.is_taken:
        yield StoredTensor(file, header.shape, NAMES[header.numbers], load)
    else:
        reason = _skipped_kind(header.dtype)
        yield SkippedTensor(file, header.shape, str(header.dtype), reason)


def npz(file: str) -> Tensors:
    """Yield the tensors of a .npz file."""
    path = Path(file)
    for member in npz_members(path):
        yield _npz_member(path, member)


def npz_members(path: Path) -> list[zipfile.ZipInfo]:
    """Return the members of a .npz file."""
    with reading(path):
        return _archive(path).infolist()


@contextmanager
def opened_member(path: Path, member: zipfile.ZipInfo) -> Iterator[IO[bytes]]:
    """Open a member of a .npz file."""
    with reading(path), _archive(path).open(member) as stream:
        yield stream


def header_of_member(path: Path, member: zipfile.ZipInfo) -> Header:
    """Return the header of an array of a .npz file; refuse Python objects."""
    with opened_member(path, member) as stream:
        header = _header(stream, member.file_size)
    _refuse_objects(f"{member.filename.removesuffix('.npy')} in {path}", header)
    return header


def _archive(path: Path) -> zipfile.ZipFile:
    """Open an archive; it stays open, as its list of members is read each time that it is opened.

    A file that was replaced is another one. Processes do not share the place in a file.
    """
    there = path.stat()
    return _kept_archive(path, there.st_ino, there.st_size, there.st_mtime_ns, os.getpid())


@functools.lru_cache(maxsize=4)
def _kept_archive(path: Path, *_of_this_file: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def _npz_member(path: Path, member: zipfile.ZipInfo) -> StoredTensor | SkippedTensor:
    name = member.filename.removesuffix(".npy")
    if name == member.filename:
        return SkippedTensor(name, (), "-", "it is not a .npy file")
    header = header_of_member(path, member)
    if not header.is_taken:
        return SkippedTensor(name, header.shape, str(header.dtype), _skipped_kind(header.dtype))

    def load() -> NDArray[Any]:
        with opened_member(path, member) as stream:
            return header.plain(np.lib.format.read_array(stream, allow_pickle=False))

    return StoredTensor(name, header.shape, NAMES[header.numbers], load)


def _skipped_kind(dtype: np.dtype[Any]) -> str:
    return f"it holds {_KINDS.get(dtype.kind, 'no numbers')}"
