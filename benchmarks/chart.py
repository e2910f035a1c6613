"""A picture of the table: for each peer, how many times its time is ours."""

import math
from html import escape

from benchmarks.table import Line, Results

_WIDTH, _LEFT, _RIGHT = 860, 330, 70
_BAR, _GAP, _TOP, _BOTTOM = 13, 9, 34, 22
# Greys and colours that can be read on white and on black, as a page may be either.
_TEXT, _LINE = "#7a7a7a", "#9a9a9a55"
_COLOURS = ("#3b82c4", "#d9822b", "#4b9f62", "#b05fb0", "#c2564b", "#7d7ad1", "#8a8a2f", "#4aa3a3")


def as_svg(results: Results) -> str:
    """Bars on a logarithmic scale, an operation after the other."""
    lines = [line for line in results.lines if line.peers]
    names = list(dict.fromkeys(m.contender for line in lines for m in line.peers))
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    largest = max(line.ratio(m) for line in lines for m in line.peers)
    decades = math.ceil(math.log10(largest))
    parts: list[str] = []
    y = float(_TOP)
    for line in lines:
        parts.append(_operation(line, y, decades, colours))
        y += len(line.peers) * _BAR + _GAP
    height = y + _BOTTOM
    grid = [_tick(decade, decades, y) for decade in range(decades + 1)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'font-family="sans-serif" font-size="11" fill="{_TEXT}" role="img">'
    )
    title = "<title>How many times longer other libraries take than mor_ref, on one thread</title>"
    return "\n".join([head, title, *grid, *parts, "</svg>", ""])


def _x(ratio: float, decades: int) -> float:
    """Where a ratio lies; what is faster than ours lies left of the axis, but not in the names."""
    span = _WIDTH - _LEFT - _RIGHT
    return _LEFT + span * max(math.log10(ratio), -0.1) / decades


def _tick(decade: int, decades: int, bottom: float) -> str:
    x = _x(10.0**decade, decades)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{bottom:.1f}" stroke="{_LINE}"/>'
        f'<text x="{x:.1f}" y="{_TOP - 12}" text-anchor="middle">{10**decade:,} x</text>'
    )


def _operation(line: Line, top: float, decades: int, colours: dict[str, str]) -> str:
    middle = top + len(line.peers) * _BAR / 2 + 4
    place = f'x="{_LEFT - 12}" y="{middle:.1f}" text-anchor="end"'
    parts = [f"<text {place}>{escape(line.row.operation)}</text>"]
    for i, measured in enumerate(line.peers):
        ratio = line.ratio(measured)
        axis, end = _x(1, decades), _x(ratio, decades)
        y = top + i * _BAR
        parts.append(
            f'<rect x="{min(axis, end):.1f}" y="{y:.1f}" width="{abs(end - axis):.1f}" '
            f'height="{_BAR - 3}" fill="{colours[measured.contender]}"/>'
            f'<text x="{max(axis, end) + 5:.1f}" y="{y + 9:.1f}">'
            f"{escape(measured.contender)} {ratio:.3g}</text>"
        )
    return "".join(parts)
