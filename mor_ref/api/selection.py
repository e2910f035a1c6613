"""Selections of numbers: the public function."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.tracing import untraced
from mor_ref.arrays import numbers_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.selection import OUTLIER, check_limit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@untraced
def select(x: "ArrayLike", by: str = "column", limit: float = OUTLIER) -> NDArray[np.bool_]:
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
    from mor_ref.engine import selection  # imports Numba
    from mor_ref.engine.blocks import binary32_words

    value = check_limit(by, limit)
    numbers = numbers_from(x, "x")
    words = binary32_words(numbers).reshape(rows_and_columns(numbers.shape))
    found = (selection.by_rank if by == "rank" else selection.by_column)(words, value)
    return found.reshape(numbers.shape)
