"""Bit patterns in files: arrays that are named TENSOR/FIELD, or the one of a .npy file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipInfo

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.numpy_files import (
    Header,
    header_of_member,
    npy_array,
    npz_members,
    opened_member,
)
from mor_ref.analysis.piped_files import as_file
from mor_ref.analysis.safetensors_files import entries_of
from mor_ref.analysis.stored_tensors import numbers_as_such, read_from
from mor_ref.mapped_files import in_memory

ENDINGS = (".safetensors", ".npz", ".npy")
# The bytes of the dtypes of .safetensors files, and the formats that they are.
_DTYPES = {
    **{f"{sign}{8 * size}": (size, None) for sign in "UI" for size in (1, 2, 4, 8)},
    "F32": (4, "f32"),
    "F16": (2, "f16"),
    "BF16": (2, "bf16"),
    "F8_E4M3": (1, "e4m3"),
    "F8_E5M2": (1, "e5m2"),
    "F8_E8M0": (1, "e8m0"),
    "F8_E4M3FNUZ": (1, "e4m3fnuz"),
    "F8_E5M2FNUZ": (1, "e5m2fnuz"),
}
_RAW = 2  # most bytes of an element that NumPy saves as raw bytes: one of ml_dtypes


@dataclass(frozen=True)
class StoredBits:
    """An array in a file; `load` reads its bit patterns.

    `dtype` is the one of the file, and `format` the format that it is; None if it is of integers,
    or of raw bytes, as NumPy saves the small floats of ml_dtypes. If it is of neither, `itemsize`
    is 0, `format` is the dtype, and nothing reads it.
    """

    shape: tuple[int, ...]
    dtype: str
    itemsize: int
    format: str | None
    load: Callable[[], NDArray[np.unsignedinteger[Any]]]

    def is_of(self, fmt: str, size: int) -> bool:
        """Return whether these can be codes of a format, which have so many bytes."""
        is_raw = self.dtype.startswith("void")
        return self.format in (None, fmt) and (not is_raw or self.itemsize == size)


def bits_in(file: str) -> Iterator[tuple[str, Mapping[str, StoredBits]]]:
    """Yield the fields of each tensor of a file; the field of an array without one is ""."""
    path = as_file(file)
    if path.suffix not in ENDINGS:
        raise ValueError(f"FILE is {file!r}; give a file that ends in one of {', '.join(ENDINGS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{file} is not there; give a file that mor-ref quantize wrote")
    lister = {".safetensors": _safetensors, ".npz": _npz, ".npy": _npy}[path.suffix]
    found: dict[str, dict[str, StoredBits]] = {}
    for name, stored in lister(path):
        tensor, slash, field = name.rpartition("/")
        found.setdefault(tensor if slash else name, {})[field if slash else ""] = stored
    for tensor in sorted(found, key=numbers_as_such):
        yield tensor, found[tensor]


def _safetensors(path: Path) -> Iterator[tuple[str, StoredBits]]:
    for name, one in entries_of(path):
        size, fmt = _DTYPES.get(one.dtype, (0, one.dtype))
        dtype = np.dtype(f"u{size}" if size else "V")
        read = read_from(path, dtype, one.offset, one.shape, one.state)
        yield name, StoredBits(one.shape, one.dtype, size, fmt, partial(_whole, read))


def _npz(path: Path) -> Iterator[tuple[str, StoredBits]]:
    for member in npz_members(path):
        header = header_of_member(path, member)
        read = partial(_bits_of_member, path, member)
        yield member.filename.removesuffix(".npy"), _of_numpy(header, read)


def _bits_of_member(path: Path, member: ZipInfo) -> NDArray[np.unsignedinteger[Any]]:
    with opened_member(path, member) as stream:
        return _bits(np.lib.format.read_array(stream, allow_pickle=False))


def _npy(path: Path) -> Iterator[tuple[str, StoredBits]]:
    header, read = npy_array(path)
    yield path.stem, _of_numpy(header, lambda: _bits(_whole(read)))


def _whole(read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    return in_memory(read())


def _of_numpy(header: Header, load: Callable[[], NDArray[np.unsignedinteger[Any]]]) -> StoredBits:
    dtype, fmt = header.dtype, {"float16": "f16", "float32": "f32"}.get(header.dtype.name)
    is_raw = dtype.kind == "V" and dtype.names is None and dtype.itemsize <= _RAW
    if fmt is None and not is_raw and dtype.kind not in "ui":
        return StoredBits(header.shape, dtype.name, 0, dtype.name, load)
    return StoredBits(header.shape, dtype.name, dtype.itemsize, fmt, load)


def _bits(array: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the bit patterns of an array, in the byte order of the machine."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return plain.view(f"u{plain.itemsize}")
