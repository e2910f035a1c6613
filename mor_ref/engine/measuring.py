"""Error sums of x and a given y, for representations without a fused loop (ERR-002)."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.engine.blocks import Gathered, Part, Sides, for_each_part, row_bounds, words_of
from mor_ref.engine.errors import add_strip, error_of_any
from mor_ref.engine.intrinsics import use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP
from mor_ref.engine.widening import widen

_U = np.uint32


@step
def measure_row(x, y, sums, counts):
    """ERR-001 to ERR-003 for one row of a strip."""
    use_full_vectors()
    for i in range(x.size):
        u, count = error_of_any(_U(widen(x[i], _U)), _U(y[i]))
        sums[i] = _U(sums[i] + u)
        counts[i] = _U(counts[i] + count)


@kernel
def measure_part(x, place, y, part, bounds, columns, block, errors):
    """ERR-004: the error sums of the blocks of a part; `y` is the whole tensor's."""
    use_full_vectors()
    sums, counts = np.empty(STRIP, _U), np.empty(STRIP, _U)
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        width = right - left
        for k in range(bounds.size - 1):
            sums[:width] = 0
            counts[:width] = 0
            for row in range(bounds[k], bounds[k + 1]):
                start = (row - place.top) * place.stride + left - place.left
                y_start = row * columns + left
                measure_row(x[start : start + width], y[y_start : y_start + width], sums, counts)
            block_errors = errors[bounds[k] // block.rows - part.top // block.rows]
            add_strip(sums, counts, block_errors, part, left, right, block)


def measure(
    numbers: Numbers, y: Numbers, partition: Partition, threads: int | None
) -> NDArray[np.uint64]:
    """Return sum, nonzero and nonfinite of each block, given y as binary32 numbers."""
    columns, block = partition.columns, Sides(*partition.block)
    errors = Gathered(partition, np.uint64, 0, np.add, 3)
    values: Bits = y.bits

    def measure_one(part: Part) -> None:
        words = words_of(numbers, columns, part)
        bounds, errors_of_part = row_bounds(part, block.rows), errors.room_for(part)
        measure_part(*words, values, part, bounds, columns, block, errors_of_part)
        errors.add(part, errors_of_part)

    for_each_part(measure_one, partition.rows, columns, threads)
    return errors.blocks
