"""Codes of a few bits each as bytes."""

import numpy as np
from numpy.typing import NDArray

_CODES = 8  # of a word: they fill as many bytes as a code has bits


def bit_by_bit(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return the lowest bits of each code along the last axis as bytes, from the lowest bit up.

    >>> bit_by_bit(np.array([1, 2, 3], np.uint8), 3).tolist()
    [209, 0]
    """
    count = codes.shape[-1]
    words = -(-count // _CODES)
    padded = np.zeros((*codes.shape[:-1], words * _CODES), np.uint8)
    np.bitwise_and(codes, np.uint8((1 << bits) - 1), out=padded[..., :count])
    word = padded.view("<u8")
    for lane in (8, 16, 32):  # two lanes of a word become one: the upper moves next to the lower
        low = np.uint64(sum(((1 << lane) - 1) << place for place in range(0, 64, 2 * lane)))
        upper = word >> np.uint64(lane) & low
        np.bitwise_and(word, low, out=word)
        np.bitwise_or(word, upper << np.uint64(bits * lane // 8), out=word)
    taken = padded.reshape(*codes.shape[:-1], words, _CODES)[..., :bits]
    flat = taken.reshape(*codes.shape[:-1], words * bits)
    return np.ascontiguousarray(flat[..., : -(-count * bits // 8)])


def in_pairs(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return two codes of 4 bits in a byte: the even one of a row in the low nibble.

    >>> in_pairs(np.array([[1, 2, 3]], np.uint8)).tolist()
    [[33, 3]]
    """
    rows = np.atleast_1d(codes)
    low, high = rows[..., 0::2], rows[..., 1::2]
    packed = low.copy()
    packed[..., : high.shape[-1]] |= high << np.uint8(4)
    return packed


def in_digits(codes: NDArray[np.uint8], base: int, digits: int) -> NDArray[np.uint8]:
    """Pack `digits` codes along the last axis into one byte, the first as the lowest digit.

    >>> in_digits(np.array([1, 2, 0, 1], np.uint8), 3, 5).tolist()
    [34]
    """
    groups = -(-codes.shape[-1] // digits)
    room = np.zeros((*codes.shape[:-1], groups * digits), np.uint8)
    room[..., : codes.shape[-1]] = codes
    by_byte = room.reshape(*codes.shape[:-1], groups, digits)
    packed = by_byte[..., digits - 1].copy()
    for place in range(digits - 2, -1, -1):
        np.multiply(packed, np.uint8(base), out=packed)
        np.add(packed, by_byte[..., place], out=packed)
    return packed
