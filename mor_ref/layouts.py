"""The layouts in which kernels write codes and scales, and the way back to plain arrays.

Each function takes a plain array of two axes, of unsigned integers or of a small float dtype of
NumPy, ml_dtypes or torch. It returns the bits. The specification has the rules (VEC-004 to
VEC-008, VEC-015 to VEC-019).
"""

from typing import Any

import numpy as np

from mor_ref.argument_checks import whole_number
from mor_ref.arrays import Bits, array_given, codes_in
from mor_ref.golden.model import views
from mor_ref.operations.bits import bits32
from mor_ref.processor_modes import in_usual_modes

__all__ = [
    "mn_major",
    "mn_major_packed",
    "packed",
    "padded_4",
    "plain",
    "reciprocal",
    "replicated",
    "shuffled_16x32",
    "shuffled_32x8",
    "swizzled_128x4",
    "transposed",
]

MOVING = (
    "transposed",
    "packed",
    "swizzled_128x4",
    "padded_4",
    "mn_major",
    "mn_major_packed",
    "shuffled_32x8",
    "shuffled_16x32",
)


def transposed(array: Any) -> Bits:
    """Return columns before rows (VEC-004)."""
    return views.transposed(_of_two_axes(array, "array"), {})


def packed(codes: Any) -> Bits:
    """Return two codes of 4 bits in a byte, the even one in the low nibble (VEC-005).

    >>> packed(np.array([[1, 2, 3]], np.uint8)).tolist()
    [[33, 3]]
    """
    array = _of_two_axes(codes, "codes")
    if array.size and int(array.max()) > 15:
        raise ValueError(f"codes holds {int(array.max())}, which does not fit 4 bits; give 0 to 15")
    return views.packed(array, {})


def swizzled_128x4(scale: Any) -> Bits:
    """Return scales flat, in tiles of 128x4, as tensor cores read them (VEC-008).

    >>> swizzled_128x4(np.arange(130, dtype=np.uint8).reshape(130, 1)).shape
    (1024,)
    """
    return views.swizzled_128x4(_of_two_axes(scale, "scale"), {})


def padded_4(scale: Any) -> Bits:
    """Return rows that end with zeros, so that their length is a multiple of 4 (VEC-015).

    >>> padded_4(np.array([[1, 2, 3, 4, 5]], np.uint8)).tolist()
    [[1, 2, 3, 4, 5, 0, 0, 0]]
    """
    return views.padded_4(_of_two_axes(scale, "scale"), {})


def mn_major(scale: Any) -> Bits:
    """Return columns before rows, each padded to a multiple of 4 entries (VEC-016).

    >>> mn_major(np.array([[1.0], [2.0], [3.0]], np.float32).view(np.uint32)).shape
    (1, 4)
    """
    return views.mn_major(_of_two_axes(scale, "scale"), {})


def mn_major_packed(scale: Any) -> Bits:
    """Return the bytes of words that have four columns of a row each (VEC-017).

    >>> mn_major_packed(np.array([[1, 2, 3, 4, 5]], np.uint8)).view("<u4").tolist()
    [[67305985, 0, 0, 0], [5, 0, 0, 0]]
    """
    return views.mn_major_packed(_of_bytes(scale, "scale"), {})


def shuffled_32x8(scale: Any) -> Bits:
    """Return scales in tiles of 32x8, as matrix cores of AMD read them (VEC-018).

    >>> shuffled_32x8(np.arange(130, dtype=np.uint8).reshape(130, 1)).shape
    (256, 8)
    """
    return views.shuffled_32x8(_of_bytes(scale, "scale"), {})


def shuffled_16x32(codes: Any) -> Bits:
    """Return bytes in tiles of 16x32, as matrix cores of AMD read them (VEC-019).

    >>> shuffled_16x32(np.arange(64, dtype=np.uint8).reshape(2, 32))[0, 15:18].tolist()
    [15, 32, 33]
    """
    return views.shuffled_16x32(_of_bytes(codes, "codes"), {})


def replicated(scale: Any, rows: int) -> Bits:
    """Return each scale once for every row of its tile of so many rows (VEC-007).

    >>> replicated(np.array([[1, 2], [3, 4]], np.uint8), 2).tolist()
    [[1, 2], [1, 2], [3, 4], [3, 4]]
    """
    count = whole_number("rows", rows, 1, 1 << 31)
    return views.replicated(_of_two_axes(scale, "scale"), {"tile": [count, 1]})


@in_usual_modes
def reciprocal(scale: Any) -> Any:
    """Return RN32(1 / scale) of float32 scales, as float32 (VEC-006).

    >>> reciprocal(np.array([[2.0, 3.0]], np.float32)).tolist()
    [[0.5, 0.3333333432674408]]
    """
    array = array_given("scale", scale, "an array of float32")
    if array.dtype != np.float32:
        raise TypeError(f"scale has dtype {array.dtype}; give float32")
    return views.reciprocal(bits32(array), {}).view(np.float32)


def plain(array: Any, layout: str, shape: tuple[int, int]) -> Bits:
    """Return the plain array of this shape that an array in a layout has; padding is dropped.

    `layout` is the name of a function here that only moves entries, or several names with @ between
    them, in the order in which they were applied.

    >>> scale = np.arange(6, dtype=np.uint8).reshape(2, 3)
    >>> plain(swizzled_128x4(scale), "swizzled_128x4", (2, 3)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    chain = layout_words(layout)
    places = views.sources(shape, chain, {})
    bits = _unsigned(array, "array")
    if bits.shape != places[0].shape:
        raise ValueError(
            f"array has shape {bits.shape}, and {places[0].shape} is the shape of {layout} for "
            f"{shape[0]}x{shape[1]} entries; give it whole, with its padding"
        )
    codes = np.zeros(shape[0] * shape[1], bits.dtype)
    for part, place in zip(parts_of(bits, chain), places, strict=True):
        codes[place[place > 0] - 1] = part[place > 0]
    return codes.reshape(shape)


def layout_words(layout: str) -> list[str]:
    """Return the layouts of a text, one after the other, or refuse the text."""
    chain = layout.split(views.SEPARATOR)
    if len(set(chain)) < len(chain) or not set(chain) <= set(MOVING):
        raise ValueError(
            f"layout is {layout!r}; give {', '.join(MOVING)}, or several of them with @ between"
        )
    return chain


def parts_of(bits: Bits, chain: list[str]) -> list[Bits]:
    """Return the entries of plain arrays in those of a layout: the two nibbles of packed bytes."""
    if "packed" not in chain:
        return [bits]
    low: Bits = bits & np.uint8(15)
    high: Bits = bits >> np.uint8(4)
    return [low, high]


def _of_two_axes(array: Any, argument: str) -> Bits:
    bits = _unsigned(array, argument)
    if bits.ndim != 2:
        raise ValueError(f"{argument} has shape {bits.shape}; give rows and columns")
    return bits


def _of_bytes(array: Any, argument: str) -> Bits:
    bits = _of_two_axes(array, argument)
    if bits.itemsize != 1:
        raise TypeError(f"{argument} has dtype {bits.dtype}; give codes of one byte, as uint8")
    return bits


def _unsigned(array: Any, argument: str) -> Bits:
    bits: Bits = array_given(argument, codes_in(array).bits, "an array of unsigned integers")
    if bits.dtype.kind != "u":
        raise TypeError(
            f"{argument} has dtype {bits.dtype}; give unsigned integers, or codes of a float dtype"
        )
    return bits
