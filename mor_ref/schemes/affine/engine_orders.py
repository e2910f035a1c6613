"""The order of dimensions by their ranges, for groups of integers (AFF-010).

Numbers stay where they are: each dimension has the scale of its group.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.engine.dequantization import canonical
from mor_ref.engine.intrinsics import float_of
from mor_ref.engine.kernel import kernel
from mor_ref.schemes.affine.engine_blocks import LEAST, MOST, extremes, number_of

_U = np.uint32
_F = np.float32
_NAN = _U(0x7FFFFFFF)


class Dimensions(NamedTuple):
    """The columns of a tensor, as blocks, and the order of their ranges.

    `least` and `most` are the keys of the extremes of each dimension.
    """

    columns: Partition
    least: NDArray[np.int32]
    most: NDArray[np.int32]
    ranges: NDArray[np.float32]
    order: NDArray[np.intp]

    def ends_of(self, groups: Partition) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the keys of the extremes of each group."""
        least, most = (self._by_group(keys, groups) for keys in (self.least, self.most))
        return least.min(axis=2, initial=MOST), most.max(axis=2, initial=LEAST)

    def sums_of(self, sums: NDArray[np.uint64], groups: Partition) -> NDArray[np.uint64]:
        """Return the error sums of each group, from those of each dimension."""
        group_sums: NDArray[np.uint64] = self._by_group(sums, groups).sum(axis=2)
        return group_sums

    def per_dimension(self, field: NDArray[Any], groups: Partition) -> NDArray[Any]:
        """Return for each dimension the entry of its group."""
        spread = np.empty(self.columns.grid, field.dtype)
        spread[:, self.order] = np.repeat(field, groups.block[1], axis=1)
        return spread

    def _by_group(self, field: NDArray[Any], groups: Partition) -> NDArray[Any]:
        """Return the entries of the dimensions of each group, along an axis of their own."""
        entry = field.shape[2:]
        return field[:, self.order].reshape(*groups.grid, groups.block[1], *entry)


@kernel
def fill_ranges(least, most, out):
    """AFF-010: the range of each dimension."""
    for k in range(least.size):
        low, high = number_of(least[k]), number_of(most[k])
        out[k] = canonical(_F(float_of(high) - float_of(low)))


def dimensions(numbers: Numbers, cut: Partition, threads: int | None) -> Dimensions:
    """Return the dimensions in the order of their ranges; ties by index, NaN last (AFF-010)."""
    columns = partition((cut.rows, cut.columns), "column")
    least, most = extremes(numbers, columns, threads)
    words = np.full(cut.columns, _NAN, _U)
    fill_ranges(least.reshape(-1), most.reshape(-1), words)
    ranges = words.view(_F)
    return Dimensions(columns, least, most, ranges, np.argsort(ranges, kind="stable"))
