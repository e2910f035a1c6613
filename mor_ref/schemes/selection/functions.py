"""Selections of numbers: the public function."""

from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.arrays import Numbers, numbers_from
from mor_ref.definitions.before_blocks import OUTLIER
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.schemes.affine.functions import quantize_affine
from mor_ref.schemes.levels.functions import quantize_levels
from mor_ref.schemes.selection.definition import By, Selection, check_limit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@public
def select(x: "ArrayLike", by: By = "column", limit: SupportsFloat = OUTLIER) -> NDArray[np.bool_]:
    """Return which numbers of `x` keep more bits than the others.

    With `by="column"` these are all numbers of the columns with a magnitude of at least `limit`,
    as in LLM.int8. With `by="rank"`, the numbers with the smallest magnitudes, a share of `limit`,
    are not selected, as in PB-LLM.

    >>> import mor_ref, numpy as np
    >>> x = np.array([[0.5, -6.0, 1.0, 2.0], [0.25, 1.0, -3.0, 0.0]], np.float32)
    >>> mor_ref.select(x).tolist()
    [[False, True, False, False], [False, True, False, False]]
    >>> mor_ref.select(x, "rank", 0.75).tolist()
    [[False, True, False, False], [False, False, False, False]]
    """
    from mor_ref.engine.blocks import binary32_words
    from mor_ref.schemes.selection import engine as selection

    value = check_limit(by, limit)
    numbers = numbers_from(x, "x")
    words = binary32_words(numbers).reshape(rows_and_columns(numbers.shape))
    selected = (selection.by_rank if by == "rank" else selection.by_column)(words, value)
    return selected.reshape(numbers.shape)


def values_of(numbers: Numbers, selection: Selection, threads: int | None) -> NDArray[np.float32]:
    """Return y of a tensor with a selection; its numbers count as binary32 (SEL-005)."""
    x, high = _selected(numbers, selection)
    return (_pb_llm if selection.by == "rank" else _llm_int8)(x, high, selection.limit, threads)


def count_selected(numbers: Numbers, selection: Selection) -> tuple[int, int, int]:
    """Return how many numbers a selection selects, and the rows and columns of the tensor."""
    x, high = _selected(numbers, selection)
    return (int(high.sum()), *x.shape)


def _selected(
    numbers: Numbers, selection: Selection
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the rows of a tensor in binary32, and which of the numbers a selection selects."""
    from mor_ref.engine.blocks import binary32_words  # imports Numba

    x = binary32_words(numbers).view(np.float32).reshape(rows_and_columns(numbers.shape))
    return x, select(x, selection.by, selection.limit)


def _pb_llm(
    w: NDArray[np.float32], high: NDArray[np.bool_], limit: float, threads: int | None
) -> NDArray[np.float32]:
    """Return y of weights, given which are selected (SEL-003)."""
    del limit
    options: dict[str, Any] = {"profile": "onnxruntime", "symmetric": False, "block": "row"}
    y = quantize_affine(w, "uint8", **options, threads=threads).y
    if not high.all():
        y[~high] = quantize_levels(w[~high], "elastic1", threads=threads).y
    return y


def _llm_int8(
    x: NDArray[np.float32], high: NDArray[np.bool_], limit: float, threads: int | None
) -> NDArray[np.float32]:
    """Return y of activations, given which are in selected columns (SEL-004)."""
    rest = np.where(np.abs(x) >= np.float32(limit), np.float32(0), x)
    integers = quantize_affine(rest, profile="bnb_int8_row", block="row", threads=threads)
    return np.where(high, x, integers.y)
