"""Pictures of levels, shared exponents and sums of ranks, computed when the pages are built."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

import mor_ref
from mor_docs.shown.markup import data, picture
from mor_docs.shown.plots import Axes, Point, key
from mor_ref import fp8lm

if TYPE_CHECKING:
    from numpy.typing import NDArray

_W = np.arange(-1.25, 1.25, 2**-7).astype(np.float32)
_ALPHAS = {"lsq3": 1 / 3, "seq2": 1.0, "seq1.58": 1.0, "elastic1": 0.5}
_X = np.arange(0, 1.0, 2**-8).astype(np.float32)
_NEIGHBOURS = {"next to 1": 1.0, "next to 1/4": 0.25}
_RANKS = (1, 2, 4, 8, 16, 32, 64)
_SIZE = 2048


def levels() -> str:
    """Draw y against w for a row whose largest weight is 1 and whose mean is 1/2."""
    axes = Axes(60, 20, 620, 260, (-1.25, 1.25), (-1, 1))
    curves = {kind: _of_levels(kind) for kind in _ALPHAS}
    said = (
        "The level of a weight, in a row whose largest magnitude is 1 and whose mean magnitude is "
        "1/2. lsq3 and seq1.58 have a level at 0. seq2 has none, and its levels end at 3/4. "
        "elastic1 has the mean, with both signs."
    )
    grid = [*axes.grid((-1, -0.5, 0, 0.5, 1), (-1, -0.5, 0, 0.5, 1))]
    head = ("kind", "w", "y")
    return _drawn("levels", "Levels of ParetoQ", axes, grid, curves, said, head)


def _of_levels(kind: str) -> list[Point]:
    alpha = np.array([_ALPHAS[kind]], np.float32)
    y = mor_ref.quantize_levels(_W[np.newaxis], kind, alpha=alpha).y[0]
    return list(zip(_W.tolist(), y.tolist(), strict=True))


def shared() -> str:
    """Draw y against x in MX4, in a block whose largest number is 1."""
    axes = Axes(60, 20, 620, 260, (0, 1), (0, 1))
    curves = {name: _next_to(other) for name, other in _NEIGHBOURS.items()}
    said = (
        "The number that MX4 stores, against the given number, in a block whose largest number is "
        "1. Below 1, a pair without that number has half the unit, because its shift is 1."
    )
    grid = [*axes.grid((0, 0.25, 0.5, 0.75, 1), (0, 0.25, 0.5, 0.75, 1))]
    return _drawn("shared", "MX4 in pairs", axes, grid, curves, said, ("pair", "x", "y"))


def _next_to(other: float) -> list[Point]:
    """Return x and y of blocks with 1 in the last pair, and x next to a number in the first."""
    blocks = np.zeros((_X.size, 16), np.float32)
    blocks[:, 0], blocks[:, 1], blocks[:, 15] = _X, other, 1
    y = mor_ref.quantize_shared(blocks, "mx4").y[:, 0]
    return list(zip(_X.tolist(), y.tolist(), strict=True))


def ranks() -> str:
    """Draw the SQNR of the mean of ranks under both sums."""
    found = {
        sums: [(math.log2(n), _ratio(n, sums)) for n in _RANKS] for sums in ("exact", "by_rank")
    }
    axes = Axes(70, 20, 600, 260, (0, 6), (0, 40))
    said = (
        "The SQNR of the mean of normal gradients in e4m3, for 1 to 64 ranks: the axis has "
        "the logarithm to the base 2. "
        "An exact sum is rounded once; if each rank rounds, the error is larger. Sums above the "
        "largest number of e4m3 saturate, so the ratio falls with more ranks."
    )
    grid = [*axes.grid(range(7), range(0, 41, 10), " dB")]
    head = ("sums", "log2 of ranks", "SQNR dB")
    return _drawn("ranks", "Sums of FP8 over ranks", axes, grid, found, said, head)


def _ratio(count: int, sums: str) -> float:
    tensors = np.random.default_rng(count).standard_normal((count, _SIZE)).astype(np.float32)
    mean = tensors.astype(np.float64).mean(axis=0)
    y: NDArray[np.float32] = fp8lm.shared_scale(list(tensors), sums=sums).y
    return float(10 * np.log10(np.square(mean).sum() / np.square(mean - y).sum()))


def _drawn(
    name: str,
    title: str,
    axes: Axes,
    grid: Iterable[str],
    curves: Mapping[str, list[Point]],
    said: str,
    head: tuple[str, ...],
) -> str:
    """Return a picture of curves with its numbers."""
    shapes = [*grid, *(axes.curve(points, i) for i, points in enumerate(curves.values()))]
    shapes += key(axes.left + 20, axes.top + axes.height + 50, list(curves))
    height = axes.top + axes.height + 60 + 18 * len(curves)
    rows = [[of, *point] for of, points in curves.items() for point in points]
    return picture(700, height, title, shapes, said) + data(name, head, rows)
