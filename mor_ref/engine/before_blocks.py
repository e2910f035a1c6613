"""Steps before the blocks of a block format, on arrays of binary32 numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import BF16, Bits
from mor_ref.definitions.before_blocks import Hadamard, Step
from mor_ref.definitions.formats import formats
from mor_ref.engine.decoding import decode
from mor_ref.processor_modes import check_processor

_AT_ONCE = 1 << 17  # numbers: so many stay in the cache of a processor
_NAN = np.uint32(0x7FFFFFFF)
Tensor = NDArray[np.float32]  # rows and columns


def transformed(x: Tensor, step: Hadamard) -> Tensor:
    """Multiply runs along the rows by a Hadamard matrix, and round as the step says (BLF-012)."""
    z = _in_runs(x, step.size, step.signs, 0)
    if step.fmt == formats["f32"]:
        return z
    with np.errstate(all="ignore"):
        rounded: Tensor = z.astype(BF16).astype(np.float32)
    return rounded


def transformed_back(y: Tensor, step: Hadamard) -> Tensor:
    """Multiply runs by the transpose of that matrix (BLF-012); a NaN is the canonical one."""
    back = _in_runs(y, step.size, 0, step.signs)
    back.view(np.uint32)[np.isnan(back)] = _NAN
    return back


def undone(
    y: Tensor, before: Sequence[Step], columns: NDArray[Any] | None, codes: Bits | None
) -> Tensor:
    """Return y of a tensor, given that of its blocks: the way back, from the last step (BLF-011).

    If a step keeps columns, their places and codes are given.
    """
    back = y
    for step in reversed(before):
        if isinstance(step, Hadamard):
            back = transformed_back(back, step)
        elif columns is not None and codes is not None:
            back = back.copy()
            back[:, columns] = decode(codes.reshape(-1), step.fmt).reshape(codes.shape)
    return back


def _in_runs(x: Tensor, size: int, before: int, after: int) -> Tensor:
    """Transform whole runs of each row; what is left of a row stays as it is (BLF-012)."""
    check_processor()
    z = x.copy()
    rows, columns = z.shape
    count = columns // size
    if columns == count * size:  # the rows are one long row
        rows, columns, count = 1, z.size, z.size // size
    runs = z.reshape(rows, columns)[:, : count * size]
    high, wide = max(1, _AT_ONCE // max(count * size, 1)), max(1, _AT_ONCE // size)
    with np.errstate(all="ignore"):
        for top in range(0, rows, high):
            for left in range(0, count, wide):
                some = runs[top : top + high, left * size : (left + wide) * size]
                places = np.ascontiguousarray(some.reshape(-1, size).T)
                _negate(places, before)
                add_and_subtract(places.reshape(1, size, -1))
                places *= factor_of(size)
                _negate(places, after)
                some[...] = places.T.reshape(some.shape)
    return z


def _negate(places: Tensor, signs: int) -> None:
    """Negate the rows whose bit is 1 (BLF-012)."""
    for i in range(len(places)) if signs else ():
        if signs >> i & 1:
            np.negative(places[i], out=places[i])


def factor_of(size: int) -> np.float32:
    """Return RN32(1 / sqrt(n)) (BLF-012)."""
    return np.float32(math.sqrt(1 / size))


def add_and_subtract(z: Any) -> None:
    """Replace runs of a power of two of numbers by their sums and differences (BLF-012, TRN-009).

    A run lies along the second of three axes of an array, or of a tensor of torch, in order.
    """
    runs, size, width = z.shape
    distance = 1
    while distance < size:
        pairs = z.reshape(runs, size // (2 * distance), 2, distance, width)
        a, b = pairs[:, :, 0], pairs[:, :, 1]
        differences = a - b
        a += b
        b[...] = differences
        distance *= 2
