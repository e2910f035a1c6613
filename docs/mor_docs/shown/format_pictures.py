"""All formats on one axis, and their errors against the magnitude of a number."""

import math
from collections.abc import Iterable

from mor_docs.shown.markup import box, data, number, picture, text
from mor_docs.shown.plots import Axes, key
from mor_ref import exact, formats
from mor_ref.definitions.format import Format

_LEFT, _WIDTH, _ROW = 100, 580, 22
Place = tuple[float, float]


def ranges() -> str:
    """Draw from which to which number every format goes, on one axis."""
    axes = Axes(_LEFT, 20, _WIDTH, _ROW * len(formats), (-152, 130), (0, 1))
    shapes, rows = list(axes.grid(range(-150, 131, 25), ())), []
    for i, fmt in enumerate(formats.values()):
        y = 20 + _ROW * i
        low, normal, high = _ends(fmt)
        shapes.append(text(_LEFT - 8, y + 15, fmt.name, "name", "end"))
        for start, end, kind in ((low, normal, "subnormals"), (normal, high, "range")):
            left, right = (axes.at(math.log2(v), 0)[0] for v in (start, end))
            if end > start:
                hint = f"{fmt.name}: {number(start)} to {number(end)}"
                shapes.append(box(left, y + 4, max(right - left, 1), 13, kind, hint))
        rows.append([fmt.name, low, normal, high])
    said = (
        "The positive numbers of every format, by their binary logarithm: normal numbers in "
        "colour, subnormal numbers in grey."
    )
    drawn = picture(_LEFT + _WIDTH + 20, 60 + _ROW * len(formats), "Ranges", shapes, said)
    return drawn + data("ranges", ["format", "smallest", "smallest normal", "largest"], rows)


def _ends(fmt: Format) -> tuple[float, float, float]:
    """Return the smallest number, the smallest normal one, and the largest."""
    low = min(v for v in (fmt.value(code) for code in (0, 1)) if v > 0)
    normal = fmt.smallest_normal
    return low, low if normal is None else float(normal), float(fmt.largest)


def numbers(*names: str) -> str:
    """Draw each positive number of formats on one axis."""
    axes = Axes(_LEFT, 16, _WIDTH, 30 * len(names), (-17, 16.2), (0, 1))
    shapes, rows = list(axes.grid(range(-16, 17, 4), ())), []
    for i, name in enumerate(names):
        fmt, y = formats[name], 40 + 30 * i
        values = [fmt.value(code) for code in range(1, fmt.largest_code + 1)]
        low = fmt.smallest_normal or 0
        shapes.append(text(_LEFT - 8, y, name, "name", "end"))
        shapes.append(_ticks(axes, (v for v in values if v >= low), y, ""))
        shapes.append(_ticks(axes, (v for v in values if v < low), y, "soft"))
        rows += [[name, f"0x{code:02X}", v] for code, v in enumerate(values, 1)]
    said = (
        "Every positive number of each format, by its binary logarithm; subnormal numbers in grey. "
        "In a binade all numbers have the same distance."
    )
    drawn = picture(_LEFT + _WIDTH + 20, 60 + 30 * len(names), "Numbers", shapes, said)
    return drawn + data("numbers", ["format", "code", "number"], rows)


def _ticks(axes: Axes, values: Iterable[float], y: float, kind: str) -> str:
    places = (axes.at(math.log2(v), 0)[0] for v in values)
    return f'<path class="{kind}" d="{"".join(f"M{x:.1f} {y}v-18" for x in places)}"/>'


def errors(*names: str) -> str:
    """Draw the mean relative error of rounding to nearest against the magnitude of a number."""
    axes = Axes(60, 26, 620, 260, (-20, 18), (0, 100))
    curves = {name: _curve(formats[name]) for name in names}
    shapes = [*axes.grid(range(-20, 19, 4), range(0, 101, 20), " %")]
    shapes += [axes.curve(points, i) for i, points in enumerate(curves.values())]
    shapes += key(80, 334, names)  # below, where a narrow screen shows it
    said = (
        "The relative error of rounding to nearest, without a scale, against the binary logarithm "
        "of the number: the mean over a quarter of a binade. To the left numbers become 0, to the "
        "right they saturate; a scale moves the numbers of a block into the valley."
    )
    rows = [[name, *point] for name, points in curves.items() for point in points]
    drawn = picture(700, 336 + 18 * len(names), "Error against magnitude", shapes, said)
    return drawn + data("errors", ["format", "log2 of x", "mean error in %"], rows)


def _curve(fmt: Format) -> list[Place]:
    points = []
    for quarter in range(-80, 72):
        total = 0.0
        for step in range(16):
            x = 2.0 ** ((quarter + (step + 0.5) / 16) / 4)
            total += min(abs(fmt.value(exact.encode(x, fmt)) - x) / x, 1.0)
        points.append(((quarter + 0.5) / 4, round(100 * total / 16, 3)))
    return points
