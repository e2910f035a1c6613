"""The tensors of .npy and .npz files."""

import functools
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.stored_tensors import (
    BF16,
    NAMES,
    SkippedTensor,
    StoredTensor,
    Tensors,
    read_from,
    reading,
)
from mor_ref.mapped_files import in_memory, state_of

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
    """The header of a .npy file: of its array, and how many bytes come before the numbers.

    The numbers of some arrays are in column-major order.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int
    is_by_columns: bool

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
        if array.dtype == self.numbers and array.flags.c_contiguous:
            return array
        return np.asarray(in_memory(array), self.numbers, order="C")


def _header(stream: IO[bytes], size: int) -> Header:
    """Read the header of a .npy file of this size, which the numbers must fill."""
    version = np.lib.format.read_magic(stream)
    try:
        if version == (1, 0):
            shape, is_by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, is_by_columns, dtype = np.lib.format.read_array_header_2_0(stream)
        else:  # 3.0 is for the names of structured arrays
            raise ValueError(f"it is of version {version[0]}.{version[1]}")
    except MemoryError as error:  # of Python's parser, however much memory there is
        raise ValueError("its header is nested too deeply") from error
    start, wanted = stream.tell(), math.prod(shape) * dtype.itemsize
    there = size - start
    if not dtype.hasobject and there != wanted:
        raise ValueError(
            f"shape {shape} of {dtype} takes {wanted} bytes, but {there} follow the header"
        )
    return Header(shape, dtype, start, is_by_columns)


def _refuse_objects(where: str, header: Header) -> None:
    if header.holds_objects:
        raise ValueError(
            f"{where} holds Python objects, which are never unpickled here; save its numbers as an "
            "array of floats"
        )


def npy_array(path: Path) -> tuple[Header, Callable[[], NDArray[Any]]]:
    """Return the header of a .npy file, and a reader of its array; refuse Python objects."""
    with reading(path), path.open("rb") as stream:
        state = state_of(stream.fileno())
        header = _header(stream, state.size)
    _refuse_objects(str(path), header)
    shape = header.shape[::-1] if header.is_by_columns else header.shape
    load = read_from(path, header.dtype, header.start, shape, state)
    return header, (lambda: load().T) if header.is_by_columns else load


def npy(file: str) -> Tensors:
    """Yield the tensor of a .npy file, which has the name of the file."""
    header, read = npy_array(Path(file))

    def load() -> NDArray[Any]:
        return header.plain(read())

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
