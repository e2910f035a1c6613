"""The picture of a comparison: the bits and the errors of every tensor with every recipe."""

import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mor_ref.analysis.compare_files import Comparison
from mor_ref.analysis.plot_style import figure_class, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 11.0  # inches
_HEIGHT_OF_ROW, _HEIGHT_OF_REST = 0.42, 1.5
_DOTS_PER_INCH = 150
_WIDTHS = (1.0, 2.2, 2.2)  # of the panels
_MUCH = 4.0  # a factor between errors
_SMALLEST, _LARGEST = 8.0, 90.0  # areas of dots
_BEST, _OTHER = "#4c78a8", "#9a9a9a"  # colours: no other recipe beats it, or one does


def check_library() -> None:
    """Name a missing library for pictures."""
    figure_class()


def picture(found: Comparison) -> bytes:
    """Return the picture as PNG: a row for each recipe, a dot for each tensor."""
    rows = len(found.recipes)
    size = _WIDTH, _HEIGHT_OF_REST + _HEIGHT_OF_ROW * rows
    figure = figure_class()(figsize=size, dpi=_DOTS_PER_INCH, layout="constrained")
    bits, error, sqnr = figure.subplots(1, 3, sharey=True, width_ratios=_WIDTHS)
    colours = _colours(found)
    _draw_bits(bits, found, colours)
    names = [one.name for one in found.recipes]
    bits.set_yticks(range(rows), names)
    bits.set_ylim(rows - 0.5, -0.5)
    errors = [[100 * one.measures.error for one in each.under] for each in found.tensors]
    totals = [100 * one.measures.error for one in found.totals]
    _draw_dots(error, found, np.array(errors), np.array(totals), colours)
    _scale(error)
    error.set_xlabel("mean relative error (%)")
    ratios = [[one.measures.sqnr for one in each.under] for each in found.tensors]
    totals = [one.measures.sqnr for one in found.totals]
    _draw_dots(sqnr, found, np.array(ratios), np.array(totals), colours)
    sqnr.set_xlabel("SQNR (dB)")
    count = len(found.tensors)
    figure.suptitle(
        f"{count} tensor{'s' * (count != 1)}, {found.totals[0].measures.elements:,} numbers; "
        "bar: all numbers; dot: a tensor; blue: not beaten by another recipe",
        fontsize="medium",
    )
    written = io.BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()


def _scale(axes: "Axes") -> None:
    """Scale by powers if errors differ much, with plain numbers at the ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    lowest, highest = axes.get_xlim()
    lowest = max(lowest, axes.dataLim.minposx)
    if highest < _MUCH * lowest or not math.isfinite(lowest):
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: f"{at:g}"))


def _colours(found: Comparison) -> list[str]:
    best = {one.recipe for one in found.best}
    return [_BEST if recipe.name in best else _OTHER for recipe in found.recipes]


def _draw_bits(axes: "Axes", found: Comparison, colours: list[str]) -> None:
    bits = [0.0 if one.bits is None else one.bits_per_number for one in found.totals]
    axes.barh(range(len(bits)), bits, 0.6, color=colours)
    for row, (width, one) in enumerate(zip(bits, found.totals, strict=True)):
        shown = " not known" if one.bits is None else f" {width:.2f}"
        axes.text(width, row, shown, va="center", fontsize="small")
    axes.set_xlim(0, 1.3 * max(bits) or 1)
    axes.set_xlabel("bits a number,\nscales included")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_dots(
    axes: "Axes",
    found: Comparison,
    values: "np.ndarray[Any, Any]",
    totals: "np.ndarray[Any, Any]",
    colours: list[str],
) -> None:
    """Draw a dot for each tensor, as large as the tensor, and a bar for all numbers."""
    elements = np.array([math.prod(one.shape) for one in found.tensors])
    sizes = np.clip(_LARGEST * elements / elements.max(), _SMALLEST, None)
    for row, colour in enumerate(colours):
        column = values[:, row]
        drawn = np.isfinite(column) & (column != 0)
        places = np.full(drawn.sum(), row)
        look: dict[str, Any] = {"color": colour, "alpha": 0.45, "linewidths": 0}
        axes.scatter(column[drawn], places, s=sizes[drawn], **look)
        if math.isfinite(totals[row]) and totals[row]:
            axes.vlines(totals[row], row - 0.35, row + 0.35, color=ink(), linewidth=2)
    axes.grid(axis="x", which="both", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
