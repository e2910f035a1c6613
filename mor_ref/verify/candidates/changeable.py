"""Inputs that a function may change without changing those of anybody else."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGE = 1 << 28  # bytes of numbers that are not copied


def to_be_changed(x: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that a function may change: a copy, or pages of a file that are copied then.

    A large part of a file is mapped once more, so that numbers that are read only have no copy.
    """
    base: Any = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    file = base.filename if isinstance(base, np.memmap) else None
    if x.nbytes < _LARGE or file is None or not x.flags.c_contiguous:
        return x.copy()
    start = x.ctypes.data - base.ctypes.data + base.offset
    return np.asarray(np.memmap(file, x.dtype, "c", start, x.shape))
