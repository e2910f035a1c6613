"""The chapter on training: how many elements saturated with a format (TRN-011)."""

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.engine.blocks import Part, for_each_part, words_of
from mor_ref.engine.intrinsics import float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.quantization import scaled_by
from mor_ref.engine.strips import TileScales, over_units, units_in
from mor_ref.engine.widening import widen

_U = np.uint32
_F = np.float32
_MAGNITUDE = _U(0x7FFFFFFF)


@step
def saturated_in_row(x, encode, decode, limit, _):
    """TRN-011 for one row of a strip: the finite elements beyond the limit, counted."""
    use_full_vectors()
    count = _U(0)
    for i in range(x.size):
        xs = scaled_by(float_of(_U(widen(x[i], _U) & _MAGNITUDE)), encode, decode, i)
        count = _U(count + _U((xs > limit) & (xs < _F(np.inf))))
    return count


_saturated_in_rows = over_units(saturated_in_row)


@kernel
def count_part(x, place, part, bounds, units, limit):
    """Return how many elements of a part saturated, in the units that took a rung."""
    return _saturated_in_rows(x, place, x, place, part, bounds, units, limit)


def count_saturated(
    numbers: Numbers,
    fmt: ElementFormat,
    scales: TileScales,
    partition: Partition,
    choice: NDArray[np.uint8],
    rung: int,
    threads: int | None = None,
) -> int:
    """Return how many elements saturated with a format, in the units that took it."""
    limit, columns = _limit(fmt), partition.columns
    counts: list[int] = []

    def count_one(part: Part) -> None:
        units, bounds = units_in(part, partition, choice, rung, scales)
        words = words_of(numbers, columns, part)
        counts.append(count_part(*words, part, bounds, units, limit))

    for_each_part(count_one, partition.rows, partition.columns, threads)
    return sum(counts)


def _limit(fmt: ElementFormat) -> np.float32:
    """Return the number beyond which rounding alone does not give the largest."""
    code_below = fmt.order[-2] if isinstance(fmt, TableFormat) else fmt.largest_code - 1
    below = float(fmt.value(code_below))
    return _F(fmt.largest + (fmt.largest - below) / 2)
