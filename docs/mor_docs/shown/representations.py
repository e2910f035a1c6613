"""All representations on the same tensors: error, SQNR and bits, computed with the page."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mor_docs.shown.markup import box, data, line, picture, table, text
from mor_docs.shown.plots import Axes, round_numbers
from mor_ref.analysis import Compared, compare
from mor_ref.analysis.recipes import OF_ALL_REPRESENTATIONS

_SIDE = 256
_WIDTH, _ROW = 720, 20.0
_LEFT = 356  # of the axes: room for the longest recipe
_LOOKS = ("mantissa", "exponent", "sign")


@cache
def tensors() -> dict[str, NDArray[np.float32]]:
    """Return the tensors of the page: weights, weights with tails, and activations."""
    random = np.random.default_rng(0)
    weights = random.standard_normal((_SIDE, _SIDE)) / 16
    tails = weights * np.exp(random.standard_normal((_SIDE, _SIDE)))
    outliers = np.where(np.arange(_SIDE) % 64 == 7, 30, 1)
    activations = random.standard_normal((_SIDE, _SIDE)) * outliers
    found = {"weights": weights, "weights with tails": tails, "activations": activations}
    return {name: x.astype(np.float32) for name, x in found.items()}


@cache
def compared() -> dict[str, dict[str, Compared]]:
    """Return the measures of each tensor with each recipe."""
    return {name: compare(x, OF_ALL_REPRESENTATIONS) for name, x in tensors().items()}


def results() -> str:
    """Return the bits of each recipe, and its error and SQNR on each tensor."""
    head = ["recipe", "bits", *(f"{name}: error %, SQNR dB" for name in tensors())]
    rows: list[list[object]] = []
    first = next(iter(compared().values()))
    for recipe in sorted(OF_ALL_REPRESENTATIONS, key=lambda one: -first[one].bits_per_number):
        cells = [
            f"{100 * found[recipe].measures.error:.3g}, {found[recipe].measures.sqnr:.1f}"
            for found in compared().values()
        ]
        bits = [f"{found[recipe].bits_per_number:.2f}" for found in compared().values()]
        shown = (
            bits[0] if len(set(bits)) == 1 else f"{min(bits, key=float)} to {max(bits, key=float)}"
        )
        rows.append([f"`{recipe}`", shown, *cells])
    return table(head, rows)


def best() -> str:
    """Return the recipes that no other beats in bits and in SQNR, for each tensor."""
    lines = []
    for name, found in compared().items():
        chosen = ", ".join(f"`{recipe}`" for recipe in _unbeaten(found))
        lines.append(f"* {name}: {chosen}\n")
    return "".join(lines)


def _unbeaten(found: dict[str, Compared]) -> list[str]:
    """Return recipes from the fewest bits on, each with a higher SQNR than those before."""
    kept, highest = [], -math.inf
    for recipe, one in sorted(found.items(), key=lambda pair: _place(pair[1])):
        if one.measures.sqnr > highest:
            kept.append(recipe)
            highest = one.measures.sqnr
    return kept


def _place(one: Compared) -> tuple[float, float]:
    return one.bits_per_number, -one.measures.sqnr


def ratios() -> str:
    """Draw the SQNR of every recipe on each tensor: a row for each recipe, by its bits."""
    first = next(iter(compared().values()))
    order = sorted(OF_ALL_REPRESENTATIONS, key=lambda one: (-first[one].bits_per_number, one))
    all_ratios = [one.measures.sqnr for found in compared().values() for one in found.values()]
    low, high = 5 * math.floor(min(all_ratios) / 5), 5 * math.ceil(max(all_ratios) / 5)
    axes = Axes(_LEFT, 44, _WIDTH - _LEFT - 20, _ROW * len(order), (low, high), (len(order), 0))
    shapes = [*axes.grid(round_numbers(low, high), ()), *_key(axes)]
    shapes.append(text(axes.left - 12, 36, "bits", anchor="end"))
    shapes.append(text(axes.left + axes.width / 2, axes.top + axes.height + 36, "SQNR in dB"))
    for row, recipe in enumerate(order):
        _, y = axes.at(0, row + 0.5)
        shapes.append(line(axes.left, y, axes.left + axes.width, y, "grid"))
        shapes.append(text(axes.left - 60, y + 4, recipe, "name", "end"))
        bits = f"{first[recipe].bits_per_number:.2f}"
        shapes.append(text(axes.left - 12, y + 4, bits, anchor="end"))
        for (name, found), look in zip(compared().items(), _LOOKS, strict=True):
            x, _ = axes.at(found[recipe].measures.sqnr, row)
            hint = f"{recipe} on {name}: {found[recipe].measures.sqnr:.1f} dB"
            shapes.append(box(x - 4, y - 4, 8, 8, look, hint))
    caption = "The bits are those on the weights. To the right is more exact."
    height = axes.top + axes.height + 44
    drawn = picture(_WIDTH, height, "SQNR of all representations", shapes, caption)
    head = ("recipe", "tensor", "bits", "SQNR dB", "error")
    rows = [
        [recipe, name, one.bits_per_number, one.measures.sqnr, one.measures.error]
        for name, found in compared().items()
        for recipe, one in found.items()
    ]
    return drawn + "\n" + data("representations", head, rows)


def _key(axes: Axes) -> Iterator[str]:
    """Yield what each look of a mark stands for."""
    for place, (name, look) in enumerate(zip(tensors(), _LOOKS, strict=True)):
        left = axes.left + 132 * place
        yield box(left, 8, 8, 8, look)
        yield text(left + 14, 16, name, anchor="start")
