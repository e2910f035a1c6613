"""Integers of kernels as the words of a field, which are unsigned."""

from typing import Any

import numpy as np

from mor_ref.operations.bits import Unsigned


def as_words(expected: Unsigned, given: Any) -> Any:
    """Return integers in the words of the field that is expected; anything else as it is.

    Signed integers keep their value: the codes of integers are words of 32 bits (VEC-012), which
    kernels write as int8. The bits of these, as uint8, are taken as int8 if negative numbers are
    expected, and all expected ones fit it.

    >>> expected = np.array([3, -4], np.int32).view(np.uint32)
    >>> given = np.array([3, -4], np.int8)
    >>> as_words(expected, given).tolist() == as_words(expected, given.view(np.uint8)).tolist()
    True
    """
    array, size = np.asarray(given), expected.itemsize
    if array.dtype.kind not in "ui" or array.itemsize > size or array.dtype == expected.dtype:
        return given
    if array.dtype.kind == "u" and not _are_negative(expected, array.itemsize):
        return given
    signed = array.view(array.dtype.str.replace("u", "i"))
    return signed.astype(f"i{size}").view(f"u{size}")


def _are_negative(expected: Unsigned, size: int) -> bool:
    """Return whether words are signed integers of so many bytes, and one is negative."""
    signed = expected.view(f"i{expected.itemsize}")
    least = -(1 << 8 * size - 1)
    return signed.size > 0 and least <= signed.min() < 0 and signed.max() < -least
