"""The tensors of .npy, .npz and .safetensors files, one at a time.

Tensors are listed from the headers of a file alone. Numbers are read on demand, so that a file may
be larger than the memory.
"""

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

_BF16 = np.dtype(ml_dtypes.bfloat16)
_NAMES = {
    np.dtype(np.float64): "f64",
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    _BF16: "bf16",
}
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
_SAFETENSORS_NAMES = {"F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16"}
_SAFETENSORS_KINDS = {
    "B": "booleans",
    "C": "complex numbers",
    "F": "floats of so few bits that they are quantized already",
    "I": "integers",
    "U": "integers",
}
_UNREADABLE = (
    EOFError,
    LZMAError,
    OSError,
    RuntimeError,  # of zipfile: encrypted, or an unknown compression
    SafetensorError,
    TokenError,
    TypeError,  # of NumPy, which sorts the keys of a header
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of floats in a file; `load` reads it.

    `dtype` is "f64", "f32", "f16" or "bf16".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], NDArray[Any]]


@dataclass(frozen=True)
class SkippedTensor:
    """A tensor of a file that is not analyzed; `dtype` is the one of the file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    reason: str


def tensors_in(file: str) -> Iterator[StoredTensor | SkippedTensor]:
    """Yield the tensors of a file.

    A .npy file has one tensor, with the name of the file. A .npz or .safetensors file names its
    tensors. A .safetensors file has no order; here, layer 2 comes before layer 10.
    """
    path = Path(file)
    lister = _LISTERS.get(path.suffix.lower())
    known = ", ".join(_LISTERS)
    if not file:
        raise ValueError(f"FILE is ''; give a file that ends in one of {known}")
    if path.is_dir():
        raise IsADirectoryError(f"{file} is a directory; name the files in it")
    if lister is None:
        raise ValueError(f"{file} ends in {path.suffix!r}; give a file that ends in one of {known}")
    if not path.is_file():
        raise FileNotFoundError(f"{file} is not there; give a file that ends in one of {known}")
    if not path.stat().st_size:
        raise ValueError(f"{file} is empty; save or download it again")
    yield from lister(file)


def arrays_in(files: Iterable[str]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the tensors of floats of files, by name; refuse files without any."""
    is_without = True
    for file in files:
        for tensor in tensors_in(file):
            if isinstance(tensor, StoredTensor):
                is_without = False
                yield tensor.name, tensor.load()
    if is_without:
        raise ValueError("the files have no tensor of floats; give a file that has one")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Name the file in an error of reading it."""
    try:
        yield
    except _UNREADABLE as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(
            f"{path} cannot be read as a {path.suffix.lower()} file ({reason}); "
            "save or download it again"
        ) from error


def _skipped_kind(dtype: np.dtype[Any]) -> str:
    return f"it holds {_KINDS.get(dtype.kind, 'no numbers')}"


# ---------------------------------------------------------------------- .npy and .npz


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
        return self.numbers in _NAMES

    @property
    def numbers(self) -> np.dtype[Any]:
        """The dtype of the numbers, in the byte order of the machine."""
        return _BF16 if self.dtype == _SAVED_BF16 else self.dtype.newbyteorder("=")

    def plain(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array in row-major order, without a copy if it is already."""
        if self.numbers == _BF16:
            array = array.view(_BF16)
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
        raise ValueError(f"shape {shape} of {dtype} takes {wanted} bytes, and {there} are there")
    return _Header(shape, dtype)


def _refuse_objects(where: str, header: _Header) -> None:
    if header.holds_objects:
        raise ValueError(
            f"{where} holds Python objects, which are never unpickled here; save its numbers as an "
            "array of floats"
        )


def _npy(file: str) -> Iterator[StoredTensor | SkippedTensor]:
    path = Path(file)
    with _reading(path), path.open("rb") as stream:
        header = _header(stream, path.stat().st_size)
    _refuse_objects(file, header)

    def load() -> NDArray[Any]:
        with _reading(path):
            return header.plain(np.load(path, mmap_mode="r", allow_pickle=False))

    if header.is_taken:
        yield StoredTensor(file, header.shape, _NAMES[header.numbers], load)
    else:
        reason = _skipped_kind(header.dtype)
        yield SkippedTensor(file, header.shape, str(header.dtype), reason)


def _npz(file: str) -> Iterator[StoredTensor | SkippedTensor]:
    path = Path(file)
    with _reading(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for member in members:
        yield _npz_member(path, member)


def _npz_member(path: Path, member: zipfile.ZipInfo) -> StoredTensor | SkippedTensor:
    name = member.filename.removesuffix(".npy")
    if name == member.filename:
        return SkippedTensor(name, (), "-", "it is not a .npy file")
    with _reading(path), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        header = _header(stream, member.file_size)
    _refuse_objects(f"{name} in {path}", header)
    if not header.is_taken:
        return SkippedTensor(name, header.shape, str(header.dtype), _skipped_kind(header.dtype))

    def load() -> NDArray[Any]:
        with _reading(path), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            return header.plain(np.lib.format.read_array(stream, allow_pickle=False))

    return StoredTensor(name, header.shape, _NAMES[header.numbers], load)


# ---------------------------------------------------------------------- .safetensors


def _safetensors(file: str) -> Iterator[StoredTensor | SkippedTensor]:
    path = Path(file)
    with _reading(path), safe_open(path, framework="numpy") as opened:
        names = sorted(opened.keys(), key=_numbers_as_such)
        parts = [opened.get_slice(name) for name in names]
        found = [
            (name, tuple(part.get_shape()), part.get_dtype())
            for name, part in zip(names, parts, strict=True)
        ]
    for name, shape, dtype in found:
        if dtype in _SAFETENSORS_NAMES:
            yield StoredTensor(name, shape, _SAFETENSORS_NAMES[dtype], _loader(path, name))
        else:
            kind = _SAFETENSORS_KINDS.get(dtype[:1], "no numbers")
            yield SkippedTensor(name, shape, dtype, f"it holds {kind}")


def _loader(path: Path, name: str) -> Callable[[], NDArray[Any]]:
    def load() -> NDArray[Any]:
        # It returns bfloat16 because the import of ml_dtypes registers the name in NumPy.
        with _reading(path), safe_open(path, framework="numpy") as file:
            return np.asarray(file.get_tensor(name))

    return load


def _numbers_as_such(name: str) -> list[str | int]:
    """Return a key for sorting, in which text and numbers alternate."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)]


_LISTERS: dict[str, Callable[[str], Iterator[StoredTensor | SkippedTensor]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".safetensors": _safetensors,
}
