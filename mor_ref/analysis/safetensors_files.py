"""The tensors of .safetensors files."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import safe_open

from mor_ref.analysis.stored_tensors import (
    DTYPES,
    SMALL,
    SkippedTensor,
    StoredTensor,
    Tensors,
    numbers_as_such,
    read_from,
    reading,
)
from mor_ref.mapped_files import FileState, state_of

_NAMES = {"F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16"}
_KINDS = {
    "B": "booleans",
    "C": "complex numbers",
    "F": SMALL,
    "I": "integers",
    "U": "integers",
}
_LENGTH = 8  # bytes of the length of the header


class HeaderEntry(NamedTuple):
    """A tensor of a file: its dtype and its shape, the bytes before its numbers, and the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    state: FileState


def safetensors(file: str) -> Tensors:
    """Yield the tensors of a file, in the order of their names: layer 2 before layer 10."""
    path = Path(file)
    for name, (dtype, shape, offset, state) in entries_of(path):
        if dtype in _NAMES:
            known = _NAMES[dtype]
            load = read_from(path, DTYPES[known], offset, shape, state)
            yield StoredTensor(name, shape, known, load)
        else:
            kind = _KINDS.get(dtype[:1], "no numbers")
            yield SkippedTensor(name, shape, dtype, f"it holds {kind}")


def entries_of(path: Path) -> list[tuple[str, HeaderEntry]]:
    """Return the tensors of a file by name, layer 2 before layer 10."""
    with reading(path):
        path.open("rb").close()  # the library says of any file that it cannot open: it is not there
        state = state_of(path)
    with reading(path), safe_open(path, framework="numpy") as opened:  # checks all of the header
        names = sorted(opened.keys(), key=numbers_as_such)
        start, header = _header(path)
    found = ((name, header[name]) for name in names)
    return [
        (
            name,
            HeaderEntry(one["dtype"], tuple(one["shape"]), start + one["data_offsets"][0], state),
        )
        for name, one in found
    ]


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """Return where the numbers begin, and the places of the tensors from there on."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH), "little")
        return _LENGTH + length, json.loads(stream.read(length))
