"""Steps before the blocks of a block format: what they make of a tensor, and the way back."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.encoding import encode
from mor_ref.arrays import Numbers
from mor_ref.definitions.before_blocks import Hadamard, KeptColumns, Step, kept_by
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.tables import FrozenTable

Kept = Mapping[str, NDArray[Any]]
NOTHING_KEPT: Kept = FrozenTable({})
COLUMNS, CODES = "columns", "codes"  # of what is kept


class Stepped(NamedTuple):
    """The numbers that blocks are made of, in rows and columns, and the columns that are kept.

    `kept` has the places of these columns and their codes; it is empty if no step keeps columns.
    """

    z: NDArray[np.float32]
    kept: Kept


def stepped(numbers: Numbers, before: Sequence[Step], threads: int | None) -> Stepped:
    """Apply steps to a tensor, one after the other (BLF-011)."""
    from mor_ref.engine.before_blocks import transformed
    from mor_ref.engine.blocks import binary32_words  # imports Numba

    z = binary32_words(numbers).view(np.float32).reshape(rows_and_columns(numbers.shape))
    kept = NOTHING_KEPT
    for step in before:
        if isinstance(step, Hadamard):
            z = transformed(z, step, threads)
        else:
            z, kept = _kept_aside(z, step, threads)
    return Stepped(z, kept)


def undone(
    y: NDArray[np.float32], before: Sequence[Step], kept: Kept, threads: int | None
) -> NDArray[np.float32]:
    """Return y of a tensor, given that of its blocks, and the columns that are kept (BLF-011)."""
    from mor_ref.engine import before_blocks  # imports Numba

    aside = kept.get(COLUMNS), kept.get(CODES)
    rows = y.reshape(rows_and_columns(y.shape))
    return before_blocks.undone(rows, before, *aside, threads).reshape(y.shape)


def _kept_aside(x: NDArray[np.float32], step: KeptColumns, threads: int | None) -> Stepped:
    """Keep the columns with a large magnitude, and leave zeros in their place (BLF-013)."""
    from mor_ref.engine.outliers import outlier_columns

    columns = np.flatnonzero(outlier_columns(x.view(np.uint32), step.limit)).astype(np.uint32)
    codes = encode(x[:, columns], step.fmt, overflow="ieee", threads=threads)
    z = x.copy()
    z[:, columns] = 0
    return Stepped(z, {COLUMNS: columns, CODES: codes})


def check_kept(shape: tuple[int, ...], before: Sequence[Step], kept: Kept) -> None:
    """Refuse kept columns that do not go with codes of this shape, such as those of a file."""
    step = kept_by(before)
    if step is None or not kept:
        if step is not None or kept:
            raise ValueError("kept columns and the steps of the block format do not go together")
        return
    rows, columns = rows_and_columns(shape)
    places, codes = kept[COLUMNS], kept[CODES]
    if places.dtype != np.uint32 or codes.shape != (rows, places.size):
        raise ValueError(f"kept codes have the shape {codes.shape}, not {(rows, places.size)}")
    if places.size and (np.any(np.diff(places.astype(np.int64)) <= 0) or places[-1] >= columns):
        raise ValueError(f"places of kept columns are not ascending below {columns}")
