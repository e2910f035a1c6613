"""Selection on a GPU: the public function."""

from typing import Any

import numpy as np

from mor_ref.cuda.arrays import given, numbers_from, on_gpu_of
from mor_ref.cuda.launching import Array
from mor_ref.definitions.before_blocks import OUTLIER
from mor_ref.schemes.selection import cuda as selection
from mor_ref.schemes.selection.definition import check_limit


def select(x: Any, by: str = "column", limit: float = OUTLIER) -> Array:
    """Return which numbers of `x` keep more bits, as `mor_ref.select` does."""
    value, argument = check_limit(by, limit), given(x, "x")
    with on_gpu_of(argument) as gpu:
        numbers = numbers_from(argument)
        chosen = selection.by_rank if by == "rank" else selection.by_column
        return chosen(gpu, numbers.bits, value).view(np.bool_).reshape(numbers.shape)
