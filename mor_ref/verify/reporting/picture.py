"""Where in a tensor the mismatches lie: a grid of squares, as SVG."""

import math

import numpy as np

from mor_ref.verify.comparing.compare import Difference
from mor_ref.verify.reporting.markup import Html, code, element, joined

_CELL = 10
_SIZES = (4, 6, 8, 10)  # of the squares; more mismatches are a larger square in a stronger colour

Level = tuple[int, int]


def figure(difference: Difference) -> Html:
    """A picture with its axes, what the squares mean, and the same in words."""
    counts = difference.picture
    rows, columns = math.prod(difference.shape[:-1]), (difference.shape or (1,))[-1]
    levels = levels_of(counts)
    # A field with one axis has an entry in each row; it is drawn lying, where there is more room.
    is_lying = len(difference.shape) < 2
    along = "row" if is_lying else "column"
    down = "" if is_lying else f"{_span('row', counts, rows)} and "
    place = f"They lie in {down}{_span(along, _turned(counts), columns)}."
    plot = element(
        "div",
        _axis("column" if is_lying else "row", rows, len(counts), "rows"),
        _svg(counts, levels, f"{difference.count:,} of {difference.of:,} differ. {place}"),
        _axis(along, columns, len(counts[0]), "columns"),
        class_="plot",
    )
    caption = element(
        "figcaption",
        joined("case ", code(difference.case), ", field ", code(difference.field)),
        f": {difference.count:,} of {difference.of:,} differ. {place} Shape {_shape(difference)}.",
    )
    return element("figure", caption, plot, _legend(levels, rows, columns, counts))


def levels_of(counts: tuple[tuple[int, ...], ...]) -> list[Level]:
    """The first and last count of each size of square: at most four, each some times the last."""
    there = sorted({count for row in counts for count in row if count})
    if len(there) <= len(_SIZES):
        return [(count, count) for count in there]
    ends = [round(there[-1] ** (k / len(_SIZES))) for k in range(1, len(_SIZES))]
    ends = sorted({max(end, there[0]) for end in ends} | {there[-1]})
    return list(zip([there[0], *(end + 1 for end in ends[:-1])], ends, strict=True))


def _turned(counts: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(zip(*counts, strict=True))


def _span(name: str, counts: tuple[tuple[int, ...], ...], side: int) -> str:
    """From which row to which there are mismatches, to the resolution of the picture."""
    hit = [k for k, line in enumerate(counts) if any(line)]
    edges = np.linspace(0, side, len(counts) + 1).astype(int).tolist()
    first, last = edges[hit[0]], edges[hit[-1] + 1] - 1
    return f"{name} {first:,}" if first == last else f"{name}s {first:,} to {last:,}"


def _shape(difference: Difference) -> str:
    sides = " x ".join(f"{side:,}" for side in difference.shape) or "1"
    leading = len(difference.shape) - 1
    return f"{sides}; a row is the last axis" if leading > 1 else sides


def _axis(name: str, side: int, cells: int, class_: str) -> Html:
    """The numbers at the two ends, or side by side where the picture is too small for that."""
    if side == 1:
        ends = [f"{name} 0"]
    elif cells < (3 if class_ == "rows" else 12):
        ends = [f"{name}s 0 to {side - 1:,}"]
    else:
        ends = [f"{name} 0", f"{name} {side - 1:,}"]
    return element("div", *(element("span", end) for end in ends), class_=f"axis {class_}")


def _svg(counts: tuple[tuple[int, ...], ...], levels: list[Level], words: str) -> Html:
    height, width = len(counts) * _CELL, len(counts[0]) * _CELL
    lines = [f"M{x} 0V{height}" for x in range(_CELL, width, _CELL)]
    lines += [f"M0 {y}H{width}" for y in range(_CELL, height, _CELL)]
    sizes = _SIZES[-len(levels) :]
    squares = [
        element("path", d=Html(_squares(counts, level, size)), class_=f"level{_SIZES.index(size)}")
        for level, size in zip(levels, sizes, strict=True)
    ]
    pixels = max(10, min(20, 320 // len(counts[0])))
    return element(
        "svg",
        element("path", d=Html("".join(lines)), class_="grid"),
        *squares,
        viewBox=f"0 0 {width} {height}",
        width=len(counts[0]) * pixels,
        height=len(counts) * pixels,
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
    )


def _squares(counts: tuple[tuple[int, ...], ...], level: Level, size: int) -> str:
    margin = (_CELL - size) // 2
    return "".join(
        f"M{x * _CELL + margin} {y * _CELL + margin}h{size}v{size}h-{size}z"
        for y, row in enumerate(counts)
        for x, count in enumerate(row)
        if level[0] <= count <= level[1]
    )


def _legend(
    levels: list[Level], rows: int, columns: int, counts: tuple[tuple[int, ...], ...]
) -> Html:
    tall, wide = math.ceil(rows / len(counts)), math.ceil(columns / len(counts[0]))
    if tall == wide == 1:
        return element("p", "A square is an entry that differs.", class_="legend muted")
    keys = [
        element("span", _key(size), f" {low:,}" if low == high else f" {low:,} to {high:,}")
        for size, (low, high) in zip(_SIZES[-len(levels) :], levels, strict=True)
    ]
    cell = f"entries differ in a cell of up to {tall:,} x {wide:,}"
    return element("p", *keys, element("span", cell), class_="legend muted")


def _key(size: int) -> Html:
    margin = (_CELL - size) // 2
    path = element(
        "path",
        d=f"M{margin} {margin}h{size}v{size}h-{size}z",
        class_=f"level{_SIZES.index(size)}",
    )
    box = f"0 0 {_CELL} {_CELL}"
    return element("svg", path, viewBox=box, width=14, height=14, aria_hidden="true")
