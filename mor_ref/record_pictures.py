"""Records in notebooks: what their text says, above a small picture of their numbers."""

import html
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.counts_in_words import counted

_ROWS, _COLUMNS = 16, 48  # squares, at most
_LARGEST = 1 << 24  # numbers of a picture; more would take longer than a cell of a notebook should
_SIDE = 8  # of a square, in pixels
_SHADES = ("#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
_NOTHING, _LOST = "#f7f7f7", "#d7301f"
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")


class Picture(NamedTuple):
    """The colour of each square, what colours mean, and a sentence about the squares."""

    squares: list[list[str]]
    legend: list[tuple[str, str]]
    words: str


def html_of(text: str, picture: Picture) -> str:
    """Return a text and a picture as HTML."""
    rows, columns = len(picture.squares), max(map(len, picture.squares), default=0)
    squares = "".join(
        f'<rect x="{_SIDE * column}" y="{_SIDE * row}" width="{_SIDE}" height="{_SIDE}" '
        f'fill="{colour}"/>'
        for row, colours in enumerate(picture.squares)
        for column, colour in enumerate(colours)
    )
    svg = (
        f'<svg role="img" aria-label="{html.escape(picture.words)}" width="{_SIDE * columns}" '
        f'height="{_SIDE * rows}" shape-rendering="crispEdges">{squares}</svg>'
        if squares
        else ""
    )
    legend = " ".join(
        f'<span style="color:{colour}">&#9632;</span> {html.escape(name)}'
        for colour, name in picture.legend
    )
    parts = (f"<code>{html.escape(text)}</code>", svg, legend, html.escape(picture.words))
    return "<div>" + "".join(f"<div>{part}</div>" for part in parts if part) + "</div>"


def picture_of_magnitudes(count: int, dequantize: Callable[[], NDArray[Any]]) -> Picture:
    """Return the largest magnitudes of rectangles of a tensor, as shades of powers of two."""
    if count == 0:
        return Picture([], [], "It has no elements.")
    if count > _LARGEST:
        return Picture([], [], f"{count:,} numbers are too many for a picture.")
    y = np.abs(dequantize())
    y = y.reshape(-1, y.shape[-1]) if y.ndim else y.reshape(1, 1)
    (height, width), largest = _pooled(y)
    exponents = np.frexp(largest)[1] - 1
    is_number = np.isfinite(largest)
    counts = exponents[is_number & (largest > 0)]
    low, high = (int(counts.min()), int(counts.max())) if counts.size else (0, 0)
    step = (high - low) // len(_SHADES) + 1

    def colour(value: float, exponent: int) -> str:
        if not np.isfinite(value):
            return _LOST
        return _SHADES[(exponent - low) // step] if value else _NOTHING

    squares = [
        [colour(float(value), int(exponent)) for value, exponent in zip(*row, strict=True)]
        for row in zip(largest, exponents, strict=True)
    ]
    legend = [
        (_SHADES[(first - low) // step], f"2^{first}" + (f" to 2^{last}" if step > 1 else ""))
        for first in range(low, high + 1, step)
        for last in [min(first + step - 1, high)]
    ]
    legend = legend if counts.size else [(_NOTHING, "0")]
    legend += [(_LOST, "not finite")] if not is_number.all() else []
    what = "a number" if height == width == 1 else f"the largest of {height}x{width} numbers"
    return Picture(squares, legend, f"Each square is the magnitude of {what}.")


def _pooled(y: NDArray[Any]) -> tuple[tuple[int, int], NDArray[Any]]:
    """Return the sides of rectangles, and the largest number of each; NaN is larger than all."""
    height, width = -(-y.shape[0] // _ROWS), -(-y.shape[1] // _COLUMNS)
    rows = np.maximum.reduceat(y, np.arange(0, y.shape[0], height), axis=0)
    return (height, width), np.maximum.reduceat(rows, np.arange(0, y.shape[1], width), axis=1)


def picture_of_choices(choice: NDArray[np.uint8], names: Sequence[str]) -> Picture:
    """Return which of some representations each unit of a tensor took."""
    if choice.size == 0:
        return Picture([], [], "It has no elements.")
    every = [-(-side // most) for side, most in zip(choice.shape, (_ROWS, _COLUMNS), strict=True)]
    shown = choice[:: every[0], :: every[1]]
    colours = [_COLOURS[index % len(_COLOURS)] for index in range(len(names))]
    squares = [[colours[index] for index in row] for row in shown.tolist()]
    legend = list(zip(colours, names, strict=True))
    some = "" if shown.size == choice.size else f" {shown.size:,} are shown."
    return Picture(squares, legend, f"Each square is one of {counted(choice.size, 'unit')}.{some}")
