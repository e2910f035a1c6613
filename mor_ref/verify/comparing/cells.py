"""Pictures of mismatches: how many entries differ in each cell of a coarse grid over a field."""

import numpy as np
from numpy.typing import NDArray

_MOST = (24, 64)  # rows and columns
Picture = tuple[tuple[int, ...], ...]


def picture_of_marks(wrong: NDArray[np.bool_], first: int, whole: tuple[int, ...]) -> Picture:
    """Count the marked entries in each cell of a field of the shape `whole`.

    The marks begin in the row `first` of the field.

    >>> picture_of_marks(np.array([[True, False], [True, True]]), 1, (4, 2))
    ((0, 0), (1, 0), (1, 1), (0, 0))
    """
    if len(whole) == 1:
        row = np.zeros((1, *whole), np.bool_)
        row[0, first : first + len(wrong)] = wrong
        return picture_of_marks(row, 0, row.shape)
    marks = wrong.reshape(-1, wrong.shape[-1])
    rows = int(np.prod(whole[:-1]))
    edges = [
        np.unique(np.linspace(0, side, min(side, most) + 1).astype(int))[:-1]
        for side, most in zip((rows, whole[-1]), _MOST, strict=True)
    ]
    ends = [*edges[0][1:], rows]
    by_rows = [
        marks[max(i - first, 0) : max(j - first, 0)].sum(axis=0)
        for i, j in zip(edges[0], ends, strict=True)
    ]
    counts = np.add.reduceat(by_rows, edges[1], axis=1)
    return tuple(tuple(row) for row in counts.tolist())


def added(one: Picture, other: Picture) -> Picture:
    """Return the counts of two parts of a field."""
    return tuple(
        tuple(a + b for a, b in zip(*rows, strict=True)) for rows in zip(one, other, strict=True)
    )
