"""Another amax, and other blocks."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from mor_ref.catalogue import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import IN_SCALES, NVFP4
from mor_ref.exact.arithmetic import FLT_MAX, rn32
from mor_ref.exact.quantization import cells, in_rows, to_bf16
from mor_ref.exact.scaling import amax

Reference = Callable[..., Any]


@deviation(amax, rules=("SCL-001",), domain=IN_SCALES)
def amax_without_magnitude(_: Reference, numbers: Iterable[float]) -> float:
    """The largest number, not the largest magnitude."""
    return max((x for x in numbers if math.isfinite(x) and x > 0), default=0.0)


@deviation(amax, rules=("SCL-001",), domain=("quantize_blocks", "quantize"))
def amax_stops_at_infinity(_: Reference, numbers: Iterable[float]) -> float:
    """An infinite element counts, as the largest binary32 number."""
    return min(max((abs(x) for x in numbers if not math.isnan(x)), default=0.0), FLT_MAX)


@deviation(amax, rules=("SCL-001",), domain=("quantize_blocks", "quantize"))
def nan_blanks_amax(reference: Reference, numbers: Iterable[float]) -> float:
    """A block with a NaN has no amax: it is scaled as one of zeros."""
    found = list(numbers)
    return 0.0 if any(math.isnan(x) for x in found) else float(reference(found))


@deviation(amax, rules=("SCL-001",), domain=IN_SCALES)
def amax_has_a_floor(reference: Reference, numbers: Iterable[float]) -> float:
    """Amax is at least 1e-12, against a division by zero."""
    return max(float(reference(numbers)), rn32(Fraction(1, 10**12)))


@deviation(amax, rules=("SCL-001",), domain=IN_SCALES)
def amax_in_bf16(reference: Reference, numbers: Iterable[float]) -> float:
    """Amax is rounded to bfloat16."""
    found = formats["bf16"].value(to_bf16(float(reference(numbers))))
    return min(found, formats["bf16"].largest)


@deviation(amax, rules=("SCL-001",), domain=IN_SCALES)
def subnormal_amax_is_zero(reference: Reference, numbers: Iterable[float]) -> float:
    """A subnormal amax is flushed to zero."""
    found = float(reference(numbers))
    return found if found >= 2.0**-126 else 0.0


@deviation(cells, rules=("BLK-002",), domain=("quantize",))
def tail_not_masked(
    reference: Reference, rows: int, columns: int, sides: tuple[int, int]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The last block of a row reads on into the next row."""
    found = reference(rows, columns, sides)
    width = min(sides[1], columns)
    for (i, j), places in found.items():
        beyond = (j + 1) * width - columns
        first = i * sides[0] + sides[0]
        if 0 < beyond < columns and first < rows:
            found[i, j] = [*places, *((first, k) for k in range(beyond))]
    return dict(found)


@deviation(cells, rules=("BLK-002",), domain=("quantize",))
def edge_blocks_dropped(
    reference: Reference, rows: int, columns: int, sides: tuple[int, int]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Blocks that are not whole are left alone."""
    whole = min(sides[0], rows) * min(sides[1], columns)
    found = reference(rows, columns, sides)
    return {key: places if len(places) == whole else [] for key, places in found.items()}


@deviation(in_rows, rules=("BLK-001",), domain=("quantize", "policies", *NVFP4, "mx"))
def read_by_columns(
    _: Reference, numbers: list[float], rows: int, columns: int
) -> list[list[float]]:
    """The tensor is read as if it lay in memory column by column."""
    return [[numbers[j * rows + i] for j in range(columns)] for i in range(rows)]


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
