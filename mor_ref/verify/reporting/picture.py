"""Where in a tensor the mismatches lie: a grid of squares, as SVG."""

import math
from typing import Any

import numpy as np

from mor_ref.verify.comparing.difference import Difference

_CELL = 10
_SIZES = (4, 6, 8, 10)  # of the squares; more mismatches are a larger square in a stronger colour

Level = tuple[int, int]


def picture_of(difference: Difference) -> dict[str, Any]:
    """Return a picture for its template: axes, squares, and their meaning in words."""
    counts = difference.picture
    rows, columns = math.prod(difference.shape[:-1]), (difference.shape or (1,))[-1]
    # A field with one axis has an entry in each row; it is drawn lying, where there is more room.
    is_lying = len(difference.shape) < 2
    along = "row" if is_lying else "column"
    down = "" if is_lying else f"{_span('row', counts, rows)} and "
    place = f"They lie in {down}{_span(along, _turned(counts), columns)}."
    height, width = len(counts), len(counts[0])
    pixels = max(10, min(14, 320 // width))
    levels = levels_of(counts)
    drawn = list(zip(range(len(_SIZES))[-len(levels) :], levels, strict=True))
    tall, wide = math.ceil(rows / height), math.ceil(columns / width)
    return {
        "case": difference.case,
        "field": difference.field,
        "words": (
            f"{difference.count:,} of {difference.of:,} differ{difference.of_padding}. {place}"
        ),
        "shape": _shape(difference),
        "rows": _axis("column" if is_lying else "row", rows, is_long=height >= 3),
        "columns": _axis(along, columns, is_long=width >= 12),
        "width": width * _CELL,
        "height": height * _CELL,
        "shown_width": width * pixels,
        "shown_height": height * pixels,
        "grid": _grid(height * _CELL, width * _CELL),
        "squares": [(k, _squares(counts, level, k)) for k, level in drawn],
        **_legend(drawn, tall, wide),
    }


def levels_of(counts: tuple[tuple[int, ...], ...]) -> list[Level]:
    """Return the first and last count of each size of square: at most four, in equal ratios."""
    there = sorted({count for row in counts for count in row if count})
    if len(there) <= len(_SIZES):
        return [(count, count) for count in there]
    ends = [round(there[-1] ** (k / len(_SIZES))) for k in range(1, len(_SIZES))]
    ends = sorted({max(end, there[0]) for end in ends} | {there[-1]})
    return list(zip([there[0], *(end + 1 for end in ends[:-1])], ends, strict=True))


def _turned(counts: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(zip(*counts, strict=True))


def _span(name: str, counts: tuple[tuple[int, ...], ...], side: int) -> str:
    """Return from which row to which entries differ, to the resolution of the picture."""
    hit = [k for k, line in enumerate(counts) if any(line)]
    edges = np.linspace(0, side, len(counts) + 1).astype(int).tolist()
    first, last = edges[hit[0]], edges[hit[-1] + 1] - 1
    return f"{name} {first:,}" if first == last else f"{name}s {first:,} to {last:,}"


def _shape(difference: Difference) -> str:
    sides = " x ".join(f"{side:,}" for side in difference.shape) or "1"
    leading = len(difference.shape) - 1
    return f"{sides}; a row is the last axis" if leading > 1 else sides


def _axis(name: str, side: int, *, is_long: bool) -> list[str]:
    """Return the numbers at the two ends, or side by side if the picture is too small for that."""
    if side == 1:
        return [f"{name} 0"]
    return [f"{name} 0", f"{name} {side - 1:,}"] if is_long else [f"{name}s 0 to {side - 1:,}"]


def _grid(height: int, width: int) -> str:
    lines = [f"M{x} 0V{height}" for x in range(_CELL, width, _CELL)]
    return "".join([*lines, *(f"M0 {y}H{width}" for y in range(_CELL, height, _CELL))])


def _squares(counts: tuple[tuple[int, ...], ...], level: Level, k: int) -> str:
    return "".join(
        _square(x, y, k)
        for y, row in enumerate(counts)
        for x, count in enumerate(row)
        if level[0] <= count <= level[1]
    )


def _square(x: int, y: int, k: int) -> str:
    """Return the path of a square of the k-th size in the middle of a cell."""
    size = _SIZES[k]
    margin = (_CELL - size) // 2
    return f"M{x * _CELL + margin} {y * _CELL + margin}h{size}v{size}h-{size}z"


def _legend(drawn: list[tuple[int, Level]], tall: int, wide: int) -> dict[str, Any]:
    """Return the meaning of each size of square, in cells of so many rows and columns."""
    if tall == wide == 1:
        return {"sizes": [], "legend": "A square is an entry that differs."}
    sizes = [
        (k, _square(0, 0, k), f"{low:,}" if low == high else f"{low:,} to {high:,}")
        for k, (low, high) in drawn
    ]
    return {"sizes": sizes, "legend": f"entries differ in a cell of up to {tall:,} x {wide:,}"}
