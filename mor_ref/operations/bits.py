"""Between bit patterns in arrays and the Python numbers of the exact model."""

import math
import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import code_dtype
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.exact.decoding import nan_bits

Unsigned = NDArray[np.unsignedinteger[Any]]
_LETTERS = {"f64": (8, "d"), "f32": (4, "f"), "f16": (2, "e")}  # bytes, and of struct
_DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
_MANTISSA_BITS = {"f64": 52, "f32": 23, "f16": 10}


def numbers_of(bits: Unsigned, source: str) -> list[float]:
    """Return the numbers of these bit patterns as Python floats; a NaN keeps its payload."""
    words = bits.ravel()
    if source == "bf16":
        words, source = words.astype(np.uint32) << np.uint32(16), "f32"
    bytes_each, real = _LETTERS[source]
    content = words.astype(f"<u{bytes_each}").tobytes()
    numbers = list(struct.unpack(f"<{words.size}{real}", content))
    width, mantissa_bits = 8 * bytes_each, _MANTISSA_BITS[source]
    infinity, magnitude = (1 << width - 1) - (1 << mantissa_bits), (1 << width - 1) - 1
    for place in np.flatnonzero(words & words.dtype.type(magnitude) > infinity).tolist():
        word = int(words[place])
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
    values = numbers if isinstance(numbers, array) else list(numbers)
    wide = np.array(values, np.float32 if isinstance(values, array) else np.float64)
    with np.errstate(invalid="ignore"):  # of NaNs
        bits = wide.astype(np.float32).view(np.uint32)
    for (place,) in np.argwhere(np.isnan(wide)):
        bits[place] = nan_bits(values[place])
    return bits


def codes_array(codes: Sequence[int], fmt: ElementFormat) -> Unsigned:
    """Return codes in the smallest unsigned dtype that holds them."""
    dtype = code_dtype(fmt)
    return np.array(bytearray(codes) if dtype == np.uint8 else codes, dtype)


def tensor_of(bits: Unsigned, source: str) -> NDArray[Any]:
    """Return these bit patterns as an array of numbers."""
    return bits.view(_DTYPES[source])


def bits32(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the bits of an array of binary32 numbers; every NaN is the canonical one (ART-003)."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32).copy()
    bits[np.isnan(numbers)] = 0x7FFFFFFF
    return bits
