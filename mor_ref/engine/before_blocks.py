"""Steps before the blocks of a block format, on arrays of binary32 numbers."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import BF16, Bits
from mor_ref.definitions.before_blocks import Hadamard, Step
from mor_ref.definitions.formats import formats
from mor_ref.engine.decoding import decode
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.processor_modes import check_processor

_AT_ONCE = 1 << 17  # numbers: so many stay in the cache of a processor
_NAN = np.uint32(0x7FFFFFFF)
Tensor = NDArray[np.float32]  # rows and columns


def transformed(x: Tensor, step: Hadamard, threads: int | None = None) -> Tensor:
    """Multiply runs along the rows by a Hadamard matrix, and round as the step says (BLF-012)."""

    def rounded(z: Tensor) -> None:
        if step.fmt != formats["f32"]:
            z[...] = z.astype(BF16)

    return _in_runs(x, step.size, threads, signs_before=step.signs, finish=rounded)


def transformed_back(y: Tensor, step: Hadamard, threads: int | None = None) -> Tensor:
    """Multiply runs by the transpose of that matrix (BLF-012); a NaN is the canonical one."""

    def with_one_nan(z: Tensor) -> None:
        z.view(np.uint32)[np.isnan(z)] = _NAN

    back = _in_runs(y, step.size, threads, signs_after=step.signs, finish=with_one_nan)
    with_one_nan(back[:, y.shape[1] // step.size * step.size :])
    return back


def undone(
    y: Tensor,
    before: Sequence[Step],
    columns: NDArray[Any] | None,
    codes: Bits | None,
    threads: int | None = None,
) -> Tensor:
    """Return y of a tensor, given that of its blocks: the way back, from the last step (BLF-011).

    If a step keeps columns, their places and codes are given.
    """
    back = y
    for step in reversed(before):
        if isinstance(step, Hadamard):
            back = transformed_back(back, step, threads)
        elif columns is not None and codes is not None:
            back = back.copy()
            back[:, columns] = decode(codes.reshape(-1), step.fmt).reshape(codes.shape)
    return back


def _in_runs(
    x: Tensor,
    size: int,
    threads: int | None,
    *,
    signs_before: int = 0,
    signs_after: int = 0,
    finish: Callable[[Tensor], None],
) -> Tensor:
    """Transform whole runs of each row; what is left of a row stays as it is (BLF-012).

    `finish` changes the results of runs in place.
    """
    check_processor()  # threads begin with the modes of this one
    z = np.empty(x.shape, np.float32)
    rows, columns = x.shape
    width = columns // size * size
    if columns == width:  # the rows are one long row
        rows, columns, width = 1, x.size, x.size
    source, target = x.reshape(rows, columns), z.reshape(rows, columns)
    high, wide = max(1, _AT_ONCE // max(width, 1)), max(1, _AT_ONCE // size) * size

    def transform(corner: tuple[int, int]) -> None:
        top, left = corner
        some = slice(top, top + high), slice(left, min(left + wide, width))
        runs = source[some]
        with np.errstate(all="ignore"):
            places = np.array(runs.reshape(-1, size).T, order="C")  # a copy also of a single run
            _negate(places, signs_before)
            add_and_subtract(places.reshape(1, size, -1))
            places *= factor_of(size)
            _negate(places, signs_after)
            finish(places)
        target[some] = places.T.reshape(runs.shape)

    corners = itertools.product(range(0, rows, high), range(0, width, wide))
    for_each(transform, corners, thread_count(threads, x.size))
    target[:, width:] = source[:, width:]
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
