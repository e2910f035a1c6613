"""Selections by rank and by column, on the bits of numbers."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.engine.intrinsics import use_full_vectors
from mor_ref.engine.kernel import kernel, step

Words = NDArray[np.uint32]
Selected = NDArray[np.bool_]
_U = np.uint32
_B = np.uint8
_MAGNITUDE, _INFINITY = _U(0x7FFFFFFF), _U(0x7F800000)


def by_rank(words: Words, share: float) -> Selected:
    """Return the numbers above the threshold (SEL-001): bits are in the order of magnitudes."""
    magnitudes = words & _MAGNITUDE
    if not magnitudes.size:
        return np.zeros(words.shape, np.bool_)
    place = min(int(words.size * share), words.size - 1)
    threshold = np.partition(magnitudes.reshape(-1), place)[place]
    if threshold > _INFINITY:
        return np.ones(words.shape, np.bool_)
    selected: Selected = magnitudes > threshold
    return selected


@step
def mark_outliers(words, least, outliers):
    """SEL-002: mark the columns of a row that are outliers; a NaN is not one."""
    use_full_vectors()
    for i in range(words.size):
        magnitude = _U(words[i] & _MAGNITUDE)
        outliers[i] |= _B(magnitude >= least) & _B(magnitude <= _INFINITY)


@kernel
def find_columns(words, columns, least, outliers):
    """SEL-002: mark the columns with an outlier."""
    for start in range(0, words.size, columns):
        mark_outliers(words[start : start + columns], least, outliers)


def by_column(words: Words, limit: float) -> Selected:
    """Return which numbers are in a column with an outlier (SEL-002)."""
    return np.broadcast_to(outlier_columns(words, limit), words.shape).copy()


def outlier_columns(words: Words, limit: float) -> Selected:
    """Return which columns have an outlier (SEL-002)."""
    outliers = np.zeros(words.shape[1], _B)
    if words.size:
        least = np.float32(limit).view(_U)
        find_columns(words.reshape(-1), words.shape[1], least, outliers)
    return outliers.view(np.bool_)
