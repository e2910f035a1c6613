"""The order of the dimensions of integers (a part of the chapter on them)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.affine_blocks import extremes, number_of
from mor_ref.engine.dequantization import canonical
from mor_ref.engine.intrinsics import float_of
from mor_ref.engine.kernel import kernel

_U = np.uint32
_F = np.float32
_NAN = _U(0x7FFFFFFF)


@kernel
def fill_ranges(least, most, out):
    """AFF-010: the range of each dimension."""
    for k in range(least.size):
        low, high = number_of(least[k]), number_of(most[k])
        out[k] = canonical(_F(float_of(high) - float_of(low)))


def ranges(numbers: Numbers, columns: Partition, threads: int | None) -> NDArray[np.uint32]:
    """Return the range of each dimension, as binary32 bits (AFF-010)."""
    least, most = extremes(numbers, columns, threads)
    found = np.full(columns.columns, _NAN, _U)
    fill_ranges(least.reshape(-1), most.reshape(-1), found)
    return found


@kernel
def reorder(field, order, out):
    """AFF-010: the columns of each row, in another order."""
    for start in range(0, field.size, max(order.size, 1)):
        for i in range(order.size):
            out[start + i] = field[start + order[i]]


def in_order(field: NDArray[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    """Return the entries of a tensor with its columns in this order (AFF-010)."""
    out = np.empty_like(field)
    words = f"u{field.itemsize}"
    reorder(field.view(words), order, out.view(words))
    return out
