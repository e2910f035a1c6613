"""A picture of the table: for each peer, how many times its time is ours.

It is narrow, so that it can be read on a small screen as well. It has a ground of its own: its
colours can be read on any page, light or dark.
"""

import math
from html import escape
from typing import NamedTuple

from benchmarks.rows import Measured
from benchmarks.table import Line, Results

_WIDTH, _SHOWN_WIDTH, _EDGE = 480, 540, 10
_LEFT = _EDGE + 20  # of the axis; a bar may go to the edge
_SIZE, _CHARACTER = 14, 7.8  # of the font, and how wide a character is at most on average
_NAME, _BAR, _GAP, _TOP, _BOTTOM = 20, 19, 12, 40, 30


class Shades(NamedTuple):
    """The colours of the picture on a light or on a dark page; `bars` are those of contenders."""

    ground: str
    text: str
    lines: str
    bars: tuple[str, ...]


LIGHT = Shades(
    "#ffffff",
    "#3a3a3a",
    "#d4d4d4",
    ("#1d5fa8", "#a34a00", "#22703a", "#8a3a8a", "#b02a1f", "#5147b8", "#5f5f00", "#0f6b6b"),
)
DARK = Shades(
    "#131416",
    "#d0d0d0",
    "#45484d",
    ("#6fb1f0", "#f0a050", "#6fc487", "#d991d9", "#f08a80", "#a8a4f5", "#c2c25a", "#5fc4c4"),
)


def as_svg(results: Results) -> str:
    """Return bars on a logarithmic scale, one operation after the other."""
    lines = [line for line in results.lines if line.peers]
    names = list(dict.fromkeys(m.contender for line in lines for m in line.peers))
    kinds = {name: f"bar{i % len(LIGHT.bars)}" for i, name in enumerate(names)}
    decade = min(_decade(line, m) for line in lines for m in line.peers)
    parts: list[str] = []
    y = float(_TOP)
    for line in lines:
        parts.append(_operation(line, y, decade, kinds))
        y += _NAME + len(line.peers) * _BAR + _GAP
    height = y + _BOTTOM
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" '
        f'width="{_SHOWN_WIDTH}" font-family="sans-serif" font-size="{_SIZE}" role="img">'
    )
    title = "<title>How many times longer other libraries take than mor_ref, on one thread</title>"
    ground = '<rect class="ground" width="100%" height="100%"/>'
    return "\n".join([head, title, style(), ground, *_grid(decade, y), *parts, "</svg>", ""])


def style() -> str:
    """Return the colours; a browser says whether the page of the picture is light or dark."""
    dark = f"@media (prefers-color-scheme: dark) {{\n{_rules(DARK)}\n}}"
    return f"<style>\n{_rules(LIGHT)}\n{dark}\n</style>"


def _rules(shades: Shades) -> str:
    around = f"stroke: {shades.ground}; stroke-width: 4px; paint-order: stroke"
    bars = (f".bar{i} {{ fill: {colour} }}" for i, colour in enumerate(shades.bars))
    text, lines = f"text {{ fill: {shades.text}; {around} }}", f"line {{ stroke: {shades.lines} }}"
    return "\n".join((f".ground {{ fill: {shades.ground} }}", text, lines, *bars))


def _label(line: Line, measured: Measured) -> str:
    return f"{measured.contender} {line.ratio(measured):.3g} x"


def _decade(line: Line, measured: Measured) -> float:
    """Return the longest factor of ten with which the bar and its words fit."""
    room = _WIDTH - _EDGE - _LEFT - 6 - len(_label(line, measured)) * _CHARACTER
    return room / max(math.log10(line.ratio(measured)), 0.1)


def _grid(decade: float, bottom: float) -> list[str]:
    """Return the powers of ten that have room, above the bars and below."""
    count = int((_WIDTH - _EDGE - _LEFT - 3 * _CHARACTER) / decade) + 1
    return [_tick(_LEFT + power * decade, 10**power, bottom) for power in range(count)]


def _tick(x: float, ratio: int, bottom: float) -> str:
    places = (_TOP - 14, bottom + 16)
    said = (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{ratio:,} x</text>' for y in places
    )
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{bottom:.1f}"/>'
    return "".join((line, *said))


def _operation(line: Line, top: float, decade: float, kinds: dict[str, str]) -> str:
    """Return the name above its bars; a bar of a faster library lies left of the axis."""
    name = escape(line.row.operation)
    parts = [f'<text x="{_LEFT}" y="{top + _NAME - 6:.1f}" font-weight="bold">{name}</text>']
    for i, measured in enumerate(line.peers):
        end = max(_EDGE, _LEFT + decade * math.log10(line.ratio(measured)))
        y = top + _NAME + i * _BAR
        parts.append(
            f'<rect class="{kinds[measured.contender]}" x="{min(_LEFT, end):.1f}" y="{y:.1f}" '
            f'width="{abs(end - _LEFT):.1f}" height="{_BAR - 4}"/>'
            f'<text x="{max(_LEFT, end) + 6:.1f}" y="{y + 12:.1f}">'
            f"{escape(_label(line, measured))}</text>"
        )
    return "".join(parts)
