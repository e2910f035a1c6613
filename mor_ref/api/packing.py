"""Codes of a few bits each as bytes."""

import numpy as np
from numpy.typing import NDArray


def bit_by_bit(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Return the lowest bits of each code along the last axis as bytes, from the lowest bit up.

    >>> bit_by_bit(np.array([1, 2, 3], np.uint8), 3).tolist()
    [209, 0]
    """
    each = codes[..., None] >> np.arange(bits, dtype=np.uint8) & np.uint8(1)
    flat = each.reshape(*codes.shape[:-1], codes.shape[-1] * bits)
    return np.packbits(flat, axis=-1, bitorder="little")
