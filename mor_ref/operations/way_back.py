"""The way of tensors from codes and scales to numbers, and from numbers with scales to codes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import code_dtype
from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Arrays, Parameters

Words = NDArray[np.uint32]


def restored(
    code: Unsigned,
    fmt: ElementFormat,
    tile: tuple[int, int],
    encode: Words | None,
    decode: Words | None,
) -> Words:
    """Return the bits of y of codes: multiplied by a decode scale, or divided by an encode scale.

    There is a scale for each tile, as bits of binary32.
    """
    from mor_ref.engine.blocks import Sides
    from mor_ref.engine.dequantization import dequantize
    from mor_ref.engine.strips import TileScales

    plain = (
        None if scale is None else np.ascontiguousarray(scale, np.uint32)
        for scale in (encode, decode)
    )
    scales = TileScales(Sides(*tile), *plain)
    words = np.ascontiguousarray(code, code_dtype(fmt)).reshape(-1)
    rows, columns = code.shape
    y = np.empty(code.shape, np.uint32)
    dequantize(words, fmt, scales, (rows, columns), y.reshape(-1))
    return y


def coded_with(
    x: NDArray[Any],
    elements: ElementRule,
    encode: Words | None,
    decode: Words | None,
) -> NDArray[np.uint8]:
    """Return the codes of numbers, each with a scale of its own, as bits of binary32."""
    from mor_ref.arrays import numbers_from
    from mor_ref.definitions.blocks import partition
    from mor_ref.engine.blocks import Sides
    from mor_ref.engine.quantization import quantize
    from mor_ref.engine.strips import TileScales

    plain = (
        None if scale is None else np.ascontiguousarray(scale, np.uint32).reshape(1, -1)
        for scale in (encode, decode)
    )
    numbers, scales = numbers_from(x.reshape(1, -1), "x"), TileScales(Sides(1, 1), *plain)
    cut = partition(numbers.shape, (1, 1))
    codes, _ = quantize(numbers, elements, scales, cut, None, 1)
    return codes.reshape(x.shape)


def chosen_entries(_: Parameters, arrays: Arrays) -> Unsigned:
    """Return a field of numbers that have a choice each, and one array for each choice."""
    every = {name: array for name, array in arrays.items() if name.isdigit()}
    chosen = np.zeros_like(every["0"])
    for name, array in every.items():
        np.copyto(chosen, array, where=arrays["choice"] == int(name))
    return chosen


def rounded_to(source: str, y: Words) -> Words:
    """Return numbers of binary32 rounded to the format of the tensor that was quantized."""
    from mor_ref import decode, encode  # imports Numba

    if source == "f32":
        return y
    codes = encode(y.view(np.float32), source, overflow="ieee")
    return decode(codes, source).view(np.uint32)


def is_outside(code: NDArray[Any], codes: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which codes are not from the lowest to the highest of an operation.

    If the lowest is negative, codes are words of 32 bits in two's complement.
    """
    lowest, highest = codes
    integers = code.astype(np.int64)
    if lowest < 0:
        integers = integers.astype(np.uint32).view(np.int32)
    outside: NDArray[np.bool_] = (integers < lowest) | (integers > highest)
    return outside


def signed(code: np.integer[Any]) -> int:
    """Return a code as an integer with a sign, if it is a word in two's complement."""
    return int(code.astype(np.int64).astype(np.int32))


def check_codes(code: NDArray[Any], codes: tuple[int, int]) -> None:
    """Refuse codes that are not from the lowest to the highest of an operation."""
    lowest, highest = codes
    wrong = code[is_outside(code, codes)]
    if wrong.size:
        first = signed(wrong[0])
        raise ValueError(
            f"code has {first}; codes of this recipe are {lowest} to {highest}; "
            "give the recipe that made them"
        )


def unpacked(packed: Unsigned) -> Unsigned:
    """Return the two codes of each byte, side by side (NVF-011)."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), -1)
