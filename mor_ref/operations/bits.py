"""Between bit patterns in arrays and the Python numbers of the exact model."""

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import code_dtype
from mor_ref.definitions.format import Format
from mor_ref.exact.decoding import nan_bits

Unsigned = NDArray[np.unsignedinteger[Any]]
_LETTERS = {"f64": ("Q", "d"), "f32": ("I", "f"), "f16": ("H", "e")}
_DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
_MANTISSA_BITS = {"f64": 52, "f32": 23, "f16": 10}


def numbers_of(bits: Unsigned, source: str) -> list[float]:
    """Return the numbers of these bit patterns as Python floats; a NaN keeps its payload."""
    words = bits.ravel().tolist()
    if source == "bf16":
        words, source = [word << 16 for word in words], "f32"
    integer, real = _LETTERS[source]
    count = len(words)
    numbers = list(struct.unpack(f"<{count}{real}", struct.pack(f"<{count}{integer}", *words)))
    width, mantissa_bits = struct.calcsize(integer) * 8, _MANTISSA_BITS[source]
    for place in [place for place, number in enumerate(numbers) if math.isnan(number)]:
        word = words[place]
        numbers[place] = _nan(word >> width - 1, word << 52 - mantissa_bits)
    return numbers


def _nan(sign: int, payload: int) -> float:
    """Return a NaN of binary64 with a payload; a conversion by the machine would make it quiet."""
    word = sign << 63 | 0x7FF << 52 | payload & (1 << 52) - 1
    (number,) = struct.unpack("<d", struct.pack("<Q", word))
    return float(number)


def f32_bits(number: float) -> int:
    """Return the bits of a binary32 number; every NaN is the canonical one (ART-003)."""
    if math.isnan(number):
        return nan_bits(number)
    return int.from_bytes(struct.pack("<f", number), "little")


def f32_array(numbers: Iterable[float]) -> NDArray[np.uint32]:
    """Return the bits of binary32 numbers."""
    values = list(numbers)
    wide = np.array(values, np.float64)
    with np.errstate(invalid="ignore"):  # of NaNs
        bits = wide.astype(np.float32).view(np.uint32)
    for (place,) in np.argwhere(np.isnan(wide)):
        bits[place] = nan_bits(values[place])
    return bits


def codes_array(codes: Sequence[int], fmt: Format) -> Unsigned:
    """Return codes in the smallest unsigned dtype that holds them."""
    return np.array(codes, code_dtype(fmt))


def tensor_of(bits: Unsigned, source: str) -> NDArray[Any]:
    """Return these bit patterns as an array of numbers."""
    return bits.view(_DTYPES[source])


def bits32(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the bits of an array of binary32 numbers; every NaN is the canonical one (ART-003)."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32).copy()
    bits[np.isnan(numbers)] = 0x7FFFFFFF
    return bits
