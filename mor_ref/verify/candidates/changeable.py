"""Inputs that a function may change without changing those of anybody else."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_LARGE = 1 << 28  # bytes of numbers that are not copied


class PlaceInFile(NamedTuple):
    """Where a large part of a file is, which another process can map as well."""

    file: Path
    dtype: np.dtype[Any]
    start: int
    shape: tuple[int, ...]

    def mapped(self) -> NDArray[Any]:
        """Return its numbers; those that are changed are copied then, and the file stays."""
        return np.asarray(np.memmap(self.file, self.dtype, "c", self.start, self.shape))


def place_in_file(x: NDArray[Any]) -> PlaceInFile | None:
    """Return where numbers are in a file, if they are many and follow each other there."""
    base: Any = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    file = base.filename if isinstance(base, np.memmap) else None
    if x.nbytes < _LARGE or file is None or not x.flags.c_contiguous:
        return None
    start = x.ctypes.data - base.ctypes.data + base.offset
    return PlaceInFile(Path(file), x.dtype, start, x.shape)


def to_be_changed(x: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that a function may change: a copy, or pages of a file that are copied then.

    A large part of a file is mapped once more, so that numbers that are read only have no copy.
    """
    place = place_in_file(x)
    return x.copy() if place is None else place.mapped()
