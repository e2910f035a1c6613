"""Between bit patterns in arrays and the Python numbers of the exact model."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref import exact
from mor_ref.arrays import code_dtype
from mor_ref.catalogue import formats
from mor_ref.conventions import SpecialCases
from mor_ref.format import Format

Unsigned = NDArray[np.unsignedinteger[Any]]
_F32 = formats["f32"]
_IEEE = SpecialCases(overflow="ieee")
_LETTERS = {"f64": "<Qd", "f32": "<If", "f16": "<He"}


def numbers_of(bits: Unsigned, source: str) -> list[float]:
    """The numbers of these bit patterns; each is a Python float exactly."""
    flat = bits.ravel().tolist()
    if source == "bf16":
        flat, source = [word << 16 for word in flat], "f32"
    integer, real = _LETTERS[source][1], _LETTERS[source][2]
    count = len(flat)
    return list(struct.unpack(f"<{count}{real}", struct.pack(f"<{count}{integer}", *flat)))


def f32_bits(number: float) -> int:
    """The bits of a binary32 number; every NaN is the canonical one."""
    return exact.encode(number, _F32, "rne", _IEEE)


def f32_array(numbers: Iterable[float]) -> NDArray[np.uint32]:
    """The bits of binary32 numbers."""
    return np.array([f32_bits(number) for number in numbers], np.uint32)


def codes_array(codes: Sequence[int], fmt: Format) -> Unsigned:
    """Codes in the smallest unsigned dtype that holds them."""
    return np.array(codes, code_dtype(fmt))
