"""The tensors of .safetensors files."""

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open

from mor_ref.analysis.stored_tensors import (
    SMALL,
    SkippedTensor,
    StoredTensor,
    Tensors,
    mapped,
    numbers_as_such,
    reading,
)

_NAMES = {"F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16"}
_KINDS = {
    "B": "booleans",
    "C": "complex numbers",
    "F": SMALL,
    "I": "integers",
    "U": "integers",
}
_LENGTH = 8  # bytes of the length of the header


def safetensors(file: str) -> Tensors:
    """Yield the tensors of a file, in the order of their names: layer 2 before layer 10."""
    path = Path(file)
    with reading(path), safe_open(path, framework="numpy") as opened:  # checks all of the header
        names = sorted(opened.keys(), key=numbers_as_such)
        start, header = _header(path)
    for name in names:
        one = header[name]
        shape, dtype = tuple(one["shape"]), one["dtype"]
        if dtype in _NAMES:
            known = _NAMES[dtype]
            load = mapped(path, known, start + one["data_offsets"][0], shape)
            yield StoredTensor(name, shape, known, load)
        else:
            kind = _KINDS.get(dtype[:1], "no numbers")
            yield SkippedTensor(name, shape, dtype, f"it holds {kind}")


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """Return where the numbers begin, and the places of the tensors from there on."""
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH), "little")
        return _LENGTH + length, json.loads(stream.read(length))
