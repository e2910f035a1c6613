"""Amaxes of blocks that are taken from several blocks, from halves of them, or from some lines."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.bits import Unsigned
from mor_ref.operations.shapes import spread_to_numbers

_POWERS = (2, 4, 8, 16, 32, 64, 128)

# A function from the magnitudes of a case, with axes (row of blocks, row, block, column), to the
# bits of the amax of each block.
Amaxes = Callable[[Unsigned], Unsigned]


def of_more(rows: int, columns: int) -> Iterator[tuple[str, Amaxes]]:
    """Yield amaxes over several blocks; rows and columns are 0 if block sizes differ."""
    yield "its whole row of blocks", over((1, 2, 3))
    yield "its whole column of blocks", over((0, 1, 3))
    yield "the whole tensor", over((0, 1, 2, 3))
    for m in _POWERS:
        for down, right in ((1, m), (m, 1), (m, m)):
            size = f": of {down * rows}x{right * columns} numbers" if rows else ""
            yield f"{down}x{right} blocks{size}", grouped(down, right)
    yield "its block and all before it in the row", _running(1)
    yield "its block and all above it", _running(0)
    yield "its block and all before it, row by row", _running(None)


def of_halves(noun: str) -> Iterator[tuple[str, Amaxes]]:
    """Yield amaxes of half a block, which is named by the noun."""
    for axis, name in ((3, "column"), (1, "row")):
        half = f"half of the {name}s of {noun}"
        yield f"the first {half}", _of_lines(axis, lambda k: 2 * k < len(k))
        yield f"the last {half}", _of_lines(axis, lambda k: 2 * k >= len(k))


def of_lanes(noun: str) -> Iterator[tuple[str, Amaxes]]:
    """Yield amaxes of the lines of a block whose number has a bit that is 0, or 1."""
    for axis, name in ((3, "column"), (1, "row")):
        for m in (1, *_POWERS[:-1]):
            where = f"the {name}s of {noun} with {name} & {m}"
            yield f"{where} = 0", _of_lines(axis, lambda k, m=m: k & m == 0)
            yield f"{where} = {m}", _of_lines(axis, lambda k, m=m: k & m > 0)


def by_blocks(numbers: Unsigned, sides: Sequence[int]) -> Unsigned:
    """Return numbers with the axes (row of blocks, row, block, column), padded with zeros."""
    ends = [(0, -size % side) for size, side in zip(numbers.shape, sides, strict=True)]
    padded = np.pad(numbers, ends)
    down, right = (size // side for size, side in zip(padded.shape, sides, strict=True))
    return padded.reshape(down, sides[0], right, sides[1])


def blocks_of(magnitudes: Unsigned) -> Unsigned:
    """Return the amax of each block."""
    found: Unsigned = magnitudes.max(axis=(1, 3))
    return found


def over(axes: tuple[int, ...]) -> Amaxes:
    """Return the amax along axes of the magnitudes of a case."""
    return lambda m: np.broadcast_to(
        m.max(axis=axes, keepdims=True), (m.shape[0], 1, m.shape[2], 1)
    )[:, 0, :, 0]


def grouped(down: int, right: int) -> Amaxes:
    """Return the amax of groups of blocks; the last groups may be smaller."""

    def amaxes(magnitudes: Unsigned) -> Unsigned:
        own = blocks_of(magnitudes)
        tops, lefts = (
            np.arange(0, size, m) for size, m in zip(own.shape, (down, right), strict=True)
        )
        found = np.maximum.reduceat(np.maximum.reduceat(own, tops, axis=0), lefts, axis=1)
        return spread_to_numbers(found, (down, right), own.shape)

    return amaxes


def _running(axis: int | None) -> Amaxes:
    """Return the largest amax so far, along an axis or row by row."""

    def amaxes(magnitudes: Unsigned) -> Unsigned:
        own = blocks_of(magnitudes)
        so_far = np.maximum.accumulate(own.ravel() if axis is None else own, axis=axis or 0)
        return so_far.reshape(own.shape)

    return amaxes


def _of_lines(axis: int, chosen: Callable[..., NDArray[np.bool_]]) -> Amaxes:
    """Return the amax of chosen rows or columns of each block, or of all if none is chosen."""

    def amaxes(magnitudes: Unsigned) -> Unsigned:
        which = chosen(np.arange(magnitudes.shape[axis]))
        return blocks_of(np.compress(which | ~which.any(), magnitudes, axis=axis))

    return amaxes
