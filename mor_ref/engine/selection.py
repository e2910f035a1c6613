"""Selections by rank and by column, on the bits of numbers."""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Selected = NDArray[np.bool_]
_MAGNITUDE, _INFINITY = np.uint32(0x7FFFFFFF), np.uint32(0x7F800000)


def by_rank(words: Words, share: float) -> Selected:
    """Return the numbers above the threshold (SEL-001): bits are in the order of magnitudes."""
    magnitudes = words & _MAGNITUDE
    if not magnitudes.size:
        return np.zeros(words.shape, np.bool_)
    place = min(int(words.size * share), words.size - 1)
    threshold = np.partition(magnitudes.reshape(-1), place)[place]
    if threshold > _INFINITY:
        return np.ones(words.shape, np.bool_)
    found: Selected = magnitudes > threshold
    return found


def by_column(words: Words, limit: float) -> Selected:
    """Return the columns with an outlier (SEL-002)."""
    magnitudes = words & _MAGNITUDE
    least = np.float32(limit).view(np.uint32)
    outliers = (magnitudes >= least) & (magnitudes <= _INFINITY)
    return np.broadcast_to(outliers.any(axis=0), words.shape).copy()
