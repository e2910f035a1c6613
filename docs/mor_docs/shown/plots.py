"""Axes, curves and cells of pictures with numbers, as shapes of SVG."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mor_docs.shown.markup import box, line, path, text

KINDS = 6  # of curves, in site.css
Point = tuple[float, float]


@dataclass(frozen=True)
class Axes:
    """A rectangle of a picture, and the numbers of its edges."""

    left: float
    top: float
    width: float
    height: float
    x: Point
    y: Point

    def at(self, x: float, y: float) -> Point:
        """Return where a point is; what lies outside is on the edge."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        across, up = (min(max(share, 0.0), 1.0) for share in (across, up))
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def grid(self, x: Iterable[float], y: Iterable[float], unit: str = "") -> Iterator[str]:
        """Yield lines at some numbers, with the numbers below, and with a unit to the left."""
        bottom, right = self.top + self.height, self.left + self.width
        for tick in x:
            across, _ = self.at(tick, self.y[0])
            yield line(across, self.top, across, bottom, "grid")
            yield text(across, bottom + 18, f"{tick:g}")
        for tick in y:
            _, up = self.at(self.x[0], tick)
            yield line(self.left, up, right, up, "grid")
            yield text(self.left - 6, up + 4, f"{tick:g}{unit}", anchor="end")

    def mark(self, x: float, said: str) -> Iterator[str]:
        """Yield an upright line at a number, with words above."""
        across, _ = self.at(x, self.y[0])
        yield line(across, self.top, across, self.top + self.height, "candidate")
        yield text(across, self.top - 6, said)

    def curve(self, points: Sequence[Point], number: int) -> str:
        """Return a line through points, in the look of its number."""
        return path((self.at(*point) for point in points), f"series{number % KINDS}")


def key(left: float, top: float, names: Sequence[str]) -> Iterator[str]:
    """Yield what each look of a curve stands for."""
    for number, name in enumerate(names):
        y = top + 18 * number
        yield path([(left, y), (left + 28, y)], f"series{number % KINDS}")
        yield text(left + 34, y + 4, name, anchor="start")


def cell(x: float, y: float, width: float, height: float, share: float, hint: str) -> str:
    """Return a cell that is the darker the larger a share of one is."""
    drawn = box(x, y, width, height, "heat", hint)
    return drawn.replace("<rect ", f'<rect fill-opacity="{0.85 * share:.3f}" ', 1)


def dot(x: float, y: float) -> str:
    """Return a small circle."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="pair"/>'


def round_numbers(low: float, high: float) -> list[float]:
    """Return about six round numbers between two."""
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(step * part for part in (0.2, 0.5, 1, 2) if (high - low) / (step * part) < 8)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(i * step, 6) for i in range(first, last + 1)]
