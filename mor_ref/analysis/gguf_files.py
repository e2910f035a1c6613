"""The tensors of GGUF files that are not quantized yet."""

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from mor_ref.analysis.stored_tensors import (
    DTYPES,
    SkippedTensor,
    StoredTensor,
    Tensors,
    read_from,
    reading,
)
from mor_ref.mapped_files import state_of

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_MOST_SIDES = 8
_ALIGNMENT = 32  # bytes, if the file does not say
_FLOATS = {0: "f32", 1: "f16", 28: "f64", 30: "bf16"}
_INTEGERS = {24: "I8", 25: "I16", 26: "I32", 27: "I64"}
_QUANTIZED = {
    2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
    19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 34: "TQ1_0",
    35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
# The kinds of values of metadata, as the module struct has them; a text and a list are apart.
_VALUES = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


class _Described(NamedTuple):
    """The description of a tensor: its type as a number, and its place after all of them."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def gguf(file: str) -> Tensors:
    """Yield the tensors of a file; those that are quantized already are skipped."""
    path = Path(file)
    with reading(path), path.open("rb") as stream:
        state = state_of(stream.fileno())
        start, described = _header(_Reader(stream, state.size))
        for one in described:
            _check_end(one, start, state.size)
    for one in described:
        if one.kind in _FLOATS:
            dtype = _FLOATS[one.kind]
            load = read_from(path, DTYPES[dtype], start + one.offset, one.shape, state)
            yield StoredTensor(one.name, one.shape, dtype, load)
        elif one.kind in _INTEGERS:
            yield SkippedTensor(one.name, one.shape, _INTEGERS[one.kind], "it holds integers")
        else:
            kind = _QUANTIZED.get(one.kind, f"type {one.kind}")
            reason = f"it is quantized already, as {kind}; give the model before it was quantized"
            yield SkippedTensor(one.name, one.shape, kind, reason)


def _check_end(one: _Described, start: int, size: int) -> None:
    if one.kind in _FLOATS:
        end = start + one.offset + math.prod(one.shape) * DTYPES[_FLOATS[one.kind]].itemsize
        if end > size:
            raise ValueError(
                f"tensor {one.name} ends at byte {end:,}, but the file has {size:,} bytes"
            )


class _Reader:
    """A file that is read from its beginning, and refuses to be read beyond its end."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._size = stream, size

    @property
    def place(self) -> int:
        """The number of bytes before the next one."""
        return self._stream.tell()

    def take(self, count: int) -> bytes:
        """Return so many bytes."""
        if count > self._size - self.place:
            raise ValueError(f"it ends at byte {self._size:,}, before its header does")
        return self._stream.read(count)

    def number(self, code: str) -> Any:
        """Return a number of a kind of the module struct."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def text(self) -> str:
        """Return a text."""
        return self.take(self.number("Q")).decode()

    def value(self, kind: int) -> Any:
        """Return a number or a text of metadata; None for a list, as no caller needs one."""
        if kind in _VALUES:
            return self.number(_VALUES[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            raise ValueError(f"it has a value of kind {kind}, which is not known")
        inner, count = self.number("I"), self.number("Q")
        if inner in _VALUES:
            self.take(count * struct.calcsize(f"<{_VALUES[inner]}"))
        else:
            for _ in range(count):
                self.value(inner)
        return None


def _header(reader: _Reader) -> tuple[int, list[_Described]]:
    """Return where the numbers begin, and the descriptions of the tensors."""
    if reader.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin with GGUF")
    version = reader.number("I")
    if version not in _VERSIONS:
        raise ValueError(f"it is of version {version}; 2 and 3 are known")
    tensors, values = reader.number("Q"), reader.number("Q")
    metadata = {reader.text(): reader.value(reader.number("I")) for _ in range(values)}
    described = list(_described(reader, tensors))
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"its alignment is {alignment!r}")
    return -(-reader.place // alignment) * alignment, described


def _described(reader: _Reader, count: int) -> Iterator[_Described]:
    for _ in range(count):
        name, sides = reader.text(), reader.number("I")
        if sides > _MOST_SIDES:
            raise ValueError(f"tensor {name} has {sides} sides")
        shape = tuple(reader.number("Q") for _ in range(sides))[::-1]  # the shortest stride first
        yield _Described(name, shape, reader.number("I"), reader.number("Q"))
