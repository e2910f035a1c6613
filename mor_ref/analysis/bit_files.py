"""Bit patterns in files: arrays that are named TENSOR/FIELD, or the one of a .npy file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from mor_ref.analysis.stored_tensors import numbers_as_such, reading

ENDINGS = (".safetensors", ".npz", ".npy")
_KINDS = ("uint8", "uint16", "uint32", "uint64", "float32")  # binary32 is taken by its bits


@dataclass(frozen=True)
class StoredBits:
    """An array of bit patterns in a file; `load` reads it."""

    shape: tuple[int, ...]
    itemsize: int
    load: Callable[[], NDArray[np.unsignedinteger[Any]]]


def bits_in(file: str) -> Iterator[tuple[str, Mapping[str, StoredBits]]]:
    """Yield the fields of each tensor of a file; the field of an array without one is "".

    Arrays of other numbers than unsigned integers and float32 are left out.
    """
    path = Path(file)
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
    with reading(path), safe_open(path, framework="numpy") as opened:
        parts = [(name, opened.get_slice(name)) for name in opened.keys()]  # noqa: SIM118 (no dict)
        found = [(name, tuple(part.get_shape()), part.get_dtype()) for name, part in parts]
    dtypes = {"U8": 1, "U16": 2, "U32": 4, "U64": 8, "F32": 4}
    for name, shape, dtype in found:
        if dtype in dtypes:
            yield name, StoredBits(shape, dtypes[dtype], _loader(path, name))


def _loader(path: Path, name: str) -> Callable[[], NDArray[np.unsignedinteger[Any]]]:
    def load() -> NDArray[np.unsignedinteger[Any]]:
        with reading(path), safe_open(path, framework="numpy") as file:
            return _bits(file.get_tensor(name))

    return load


def _npz(path: Path) -> Iterator[tuple[str, StoredBits]]:
    with reading(path), np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            array = archive[name]
            if array.dtype.name in _KINDS:
                yield name, StoredBits(array.shape, array.itemsize, _member(path, name))


def _member(path: Path, name: str) -> Callable[[], NDArray[np.unsignedinteger[Any]]]:
    def load() -> NDArray[np.unsignedinteger[Any]]:
        with reading(path), np.load(path, allow_pickle=False) as archive:
            return _bits(archive[name])

    return load


def _npy(path: Path) -> Iterator[tuple[str, StoredBits]]:
    with reading(path):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.dtype.name in _KINDS:
        yield path.stem, StoredBits(array.shape, array.itemsize, lambda: _bits(array))


def _bits(array: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Return the bit patterns of an array, in the byte order of the machine."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    return plain.view(np.uint32) if plain.dtype == np.float32 else plain
