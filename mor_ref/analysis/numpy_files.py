"""The tensors of .npy and .npz files."""

import math
import zipfile
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
class _Header:
    """The header of a .npy file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def holds_objects(self) -> bool:
        return self.dtype.hasobject

    @property
    def is_taken(self) -> bool:
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


def _header(stream: IO[bytes], size: int) -> _Header:
    """Read the header of a .npy file of this size, which the numbers must fill."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:  # 3.0 is for the names of structured arrays
        raise ValueError(f"it is of version {version[0]}.{version[1]}")
    there, wanted = size - stream.tell(), math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and there != wanted:
        raise ValueError(
            f"shape {shape} of {dtype} takes {wanted} bytes, but {there} follow the header"
        )
    return _Header(shape, dtype)


def _refuse_objects(where: str, header: _Header) -> None:
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
            return header.plain(np.load(path, mmap_mode="r", allow_pickle=False))

    if header.is_taken:
        yield StoredTensor(file, header.shape, NAMES[header.numbers], load)
    else:
        reason = _skipped_kind(header.dtype)
        yield SkippedTensor(file, header.shape, str(header.dtype), reason)


def npz(file: str) -> Tensors:
    """Yield the tensors of a .npz file."""
    path = Path(file)
    with reading(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for member in members:
        yield _npz_member(path, member)


def _npz_member(path: Path, member: zipfile.ZipInfo) -> StoredTensor | SkippedTensor:
    name = member.filename.removesuffix(".npy")
    if name == member.filename:
        return SkippedTensor(name, (), "-", "it is not a .npy file")
    with reading(path), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        header = _header(stream, member.file_size)
    _refuse_objects(f"{name} in {path}", header)
    if not header.is_taken:
        return SkippedTensor(name, header.shape, str(header.dtype), _skipped_kind(header.dtype))

    def load() -> NDArray[Any]:
        with reading(path), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            return header.plain(np.lib.format.read_array(stream, allow_pickle=False))

    return StoredTensor(name, header.shape, NAMES[header.numbers], load)


def _skipped_kind(dtype: np.dtype[Any]) -> str:
    return f"it holds {_KINDS.get(dtype.kind, 'no numbers')}"
