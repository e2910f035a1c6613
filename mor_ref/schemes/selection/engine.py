"""Selections by rank and by column, on the bits of numbers."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.engine.outliers import outlier_columns

Words = NDArray[np.uint32]
Selected = NDArray[np.bool_]
_U = np.uint32
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


def by_column(words: Words, limit: float) -> Selected:
    """Return which numbers are in a column with an outlier (SEL-002)."""
    return np.broadcast_to(outlier_columns(words, limit), words.shape).copy()
