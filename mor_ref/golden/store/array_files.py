"""Files of arrays that are written part by part: they may be larger than the memory.

A .safetensors file takes the rows of its arrays in any order. A .npz file takes whole arrays, and
keeps one until all of its rows are there. A .npy file has one array, without its name. The first
two can say something about their arrays, a .npz file in the comment of the archive.
"""

import json
import math
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mor_ref.whole_files import whole_file

ENDINGS = (".safetensors", ".npz", ".npy")
# In the order of the library, which writes the last ones first.
_DTYPES = {"uint8": "U8", "uint16": "U16", "uint32": "U32", "float32": "F32", "uint64": "U64"}
_RANKS = list(_DTYPES)
_ALIGNED = 8  # bytes


class ArrayEntry(NamedTuple):
    """An array of a file: its name, its dtype and its shape."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


class ArrayFile(Protocol):
    """A file that takes arrays."""

    def put(self, name: str, rows: NDArray[Any], first: int = 0) -> None:
        """Take rows of an array, from row number `first` on."""


def metadata_of(file: str) -> Mapping[str, str]:
    """Return what a file says about its arrays; nothing if it cannot be read."""
    if file.endswith(".safetensors"):
        with suppress(OSError, SafetensorError), safe_open(file, framework="numpy") as opened:
            return opened.metadata() or {}
    if file.endswith(".npz"):
        # RuntimeError is of a version or a compression that zipfile does not know.
        unreadable = OSError, ValueError, RuntimeError, zipfile.BadZipFile
        with suppress(*unreadable), zipfile.ZipFile(file) as archive:
            found = json.loads(archive.comment)
            if isinstance(found, dict) and all(isinstance(one, str) for one in found.values()):
                return found
    return {}


@contextmanager
def array_file(
    path: Path, entries: Iterable[ArrayEntry], metadata: Mapping[str, str] = MappingProxyType({})
) -> Iterator[ArrayFile]:
    """Open a file for these arrays; nobody sees it before all of them are there.

    A .npy file has no metadata, and a .npz file has those that are short enough together.
    """
    listed = list(entries)
    if path.suffix == ".npy" and len(listed) != 1:
        raise ValueError(
            f"out is {str(path)!r}, which holds one array, and there are {len(listed)}; give a"
            " file that ends in .safetensors or .npz"
        )
    with whole_file(path) as file:
        if path.suffix == ".npy":
            yield _Npy(file, listed)
        elif path.suffix == ".npz":
            with zipfile.ZipFile(file, "w") as archive:
                archive.comment = _comment(metadata)
                yield _Npz(archive, listed)
        else:
            yield _Safetensors(file, listed, metadata)


def _comment(metadata: Mapping[str, str]) -> bytes:
    """Return metadata as the comment of an archive, as far as they fit."""
    said: dict[str, str] = {}
    for name, text in metadata.items():
        if len(json.dumps(said | {name: text})) <= zipfile.ZIP_MAX_COMMENT:
            said[name] = text
    return json.dumps(said).encode() if said else b""


def _place(entry: ArrayEntry) -> tuple[int, str]:
    return -_RANKS.index(entry.dtype.name), entry.name


class _Safetensors:
    """The order of the arrays, and the header, are those of the library safetensors."""

    def __init__(
        self, file: IO[bytes], entries: list[ArrayEntry], metadata: Mapping[str, str]
    ) -> None:
        self._file = file
        self._entries: dict[str, tuple[ArrayEntry, int]] = {}
        header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
        end = 0
        for entry in sorted(entries, key=_place):
            self._entries[entry.name] = entry, end
            header[entry.name] = {
                "dtype": _DTYPES[entry.dtype.name],
                "shape": list(entry.shape),
                "data_offsets": [end, end := end + entry.size],
            }
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % _ALIGNED)
        file.write(len(text).to_bytes(8, "little") + text)
        self._start = file.tell()
        file.truncate(self._start + end)

    def put(self, name: str, rows: NDArray[Any], first: int = 0) -> None:
        """Write rows at their place."""
        entry, start = self._entries[name]
        row = math.prod(entry.shape[1:]) * entry.dtype.itemsize
        self._file.seek(self._start + start + first * row)
        self._file.write(np.ascontiguousarray(rows, entry.dtype.newbyteorder("<")).data)


class _WholeArrays(ABC):
    """An array is written when all of its rows are there."""

    def __init__(self, entries: list[ArrayEntry]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._waiting: dict[str, tuple[NDArray[Any], int]] = {}

    def put(self, name: str, rows: NDArray[Any], first: int = 0) -> None:
        """Write the array, or keep its rows until it is whole."""
        entry = self._entries[name]
        whole, count = self._waiting.pop(name, (rows, 0))
        if rows.shape != entry.shape:
            whole = np.empty(entry.shape, entry.dtype) if count == 0 else whole
            whole[first : first + len(rows)] = rows
            count += len(rows)
            if count < entry.shape[0]:
                self._waiting[name] = whole, count
                return
        with self._opened(name) as file:
            np.lib.format.write_array(file, np.asarray(whole, entry.dtype), allow_pickle=False)

    @abstractmethod
    def _opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Return the file of an array."""


class _Npz(_WholeArrays):
    def __init__(self, archive: zipfile.ZipFile, entries: list[ArrayEntry]) -> None:
        super().__init__(entries)
        self._archive = archive

    def _opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        return self._archive.open(f"{name}.npy", "w", force_zip64=True)


class _Npy(_WholeArrays):
    def __init__(self, file: IO[bytes], entries: list[ArrayEntry]) -> None:
        super().__init__(entries)
        self._file = file

    def _opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        del name
        return nullcontext(self._file)
