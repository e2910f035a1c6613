"""Outliers: the columns of a tensor with a magnitude of at least a limit, by bits of numbers."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.engine.intrinsics import use_full_vectors
from mor_ref.engine.kernel import kernel, step

_U = np.uint32
_B = np.uint8
_MAGNITUDE, _INFINITY = _U(0x7FFFFFFF), _U(0x7F800000)


@step
def mark_outliers(words, least, outliers):
    """BLF-013: mark the columns of a row that are outliers; a NaN is not one."""
    use_full_vectors()
    for i in range(words.size):
        magnitude = _U(words[i] & _MAGNITUDE)
        outliers[i] |= _B(magnitude >= least) & _B(magnitude <= _INFINITY)


@kernel
def find_columns(words, columns, least, outliers):
    """BLF-013: mark the columns with an outlier."""
    for start in range(0, words.size, columns):
        mark_outliers(words[start : start + columns], least, outliers)


def outlier_columns(words: NDArray[np.uint32], limit: float) -> NDArray[np.bool_]:
    """Return which columns have an outlier (BLF-013)."""
    outliers = np.zeros(words.shape[1], _B)
    if words.size:
        least = np.float32(limit).view(_U)
        find_columns(words.reshape(-1), words.shape[1], least, outliers)
    return outliers.view(np.bool_)
