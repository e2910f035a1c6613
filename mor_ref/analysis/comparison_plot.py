"""The picture of a comparison: the bits and the errors of every tensor with every recipe."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from mor_ref.analysis.compare_files import Comparison
from mor_ref.analysis.layer_inputs import InputMeasures
from mor_ref.analysis.plot_style import figure_class, ink, short, written
from mor_ref.analysis.summary import Summary, summaries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 11.0  # inches
_HEIGHT_OF_ROW, _HEIGHT_OF_REST = 0.42, 1.5
_DOTS_PER_INCH = 150
_SIDES = (7.2, 4.2)  # inches
_HEIGHT_OF_NAME, _WIDTH_OF_NAMES = 0.16, 0.5
_NEAR = 0.05  # of the picture: such marks have their numbers together
_WIDTHS = (1.0, 2.2, 2.2)  # of the panels
_MUCH = 4.0  # a factor between errors
_SMALLEST, _LARGEST = 8.0, 90.0  # areas of dots
_BEST, _OTHER = "#4c78a8", "#9a9a9a"  # colours: no other recipe beats it, or one does


def check_library() -> None:
    """Name a missing library for pictures."""
    figure_class()


def picture(found: Comparison, kind: str = "png") -> bytes:
    """Return a picture as PNG, SVG or PDF: a row for each recipe, a dot for each tensor."""
    rows = len(found.recipes)
    panels = _on_inputs(found)
    widths = (*_WIDTHS, *(_WIDTHS[-1] for _ in panels))
    size = _WIDTH * sum(widths) / sum(_WIDTHS), _HEIGHT_OF_REST + _HEIGHT_OF_ROW * rows
    figure = figure_class()(figsize=size, dpi=_DOTS_PER_INCH, layout="constrained")
    bits, error, sqnr, *others = figure.subplots(1, len(widths), sharey=True, width_ratios=widths)
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
    for axes, (label, measure) in zip(others, panels.items(), strict=True):
        errors = [[100 * measure(one.on_inputs) for one in each.under] for each in found.tensors]
        totals = [100 * measure(one.on_inputs) for one in found.totals]
        _draw_dots(axes, found, np.array(errors), np.array(totals), colours)
        _scale(axes)
        axes.set_xlabel(label)
    count = len(found.tensors)
    figure.suptitle(
        f"{count} tensor{'s' * (count != 1)}, {found.totals[0].measures.elements:,} numbers; "
        "bar: all numbers; dot: a tensor; blue: not beaten by another recipe",
        fontsize="medium",
    )
    return written(figure, kind)


def _on_inputs(found: Comparison) -> dict[str, Callable[[InputMeasures], float]]:
    """Return the labels of errors under inputs, and the errors, if a tensor has some."""
    if not found.with_inputs:
        return {}
    return {
        "error weighted by inputs (%)": lambda one: one.weighted_error,
        "error of the output (%)": lambda one: one.output_error,
    }


def bits_and_sqnr(found: Comparison, kind: str = "png") -> bytes:
    """Return a picture of the bits of a number and of SQNR, with the line of what none beats.

    A mark is a recipe on all numbers, with its number in the list of names. Its bar is the 95 %
    interval of the mean over tensors.
    """
    known = (one for one in summaries(found) if one.total.bits is not None)
    drawn = sorted((one for one in known if math.isfinite(_point(one)[1])), key=_point)
    height = max(_SIDES[1], _HEIGHT_OF_NAME * (len(drawn) + 2))
    figure = figure_class()(figsize=(_SIDES[0], height), dpi=_DOTS_PER_INCH, layout="constrained")
    axes, names = figure.subplots(1, 2, width_ratios=(1, _WIDTH_OF_NAMES))
    front = _front(drawn)
    if front:
        axes.step(*zip(*map(_point, front), strict=True), where="post", color=_BEST, linewidth=1)
    names.set_axis_off()
    names.set_ylim(max(len(drawn), _SIDES[1] / _HEIGHT_OF_NAME) - 0.5, -0.5)
    for place, one in enumerate(drawn):
        colour = _BEST if one in front else _OTHER
        bits, sqnr = _point(one)
        if one.sqnr.has_interval:
            axes.vlines(bits, *one.sqnr.interval, color=colour, linewidth=1, alpha=0.5)
        axes.plot(bits, sqnr, "o", color=colour, markersize=5, zorder=2 + (one in front))
        look: dict[str, Any] = {"va": "center", "fontsize": "small"}
        names.text(0.12, place, f"{place + 1}", ha="right", color=colour, **look)
        names.text(0.18, place, short(one.recipe), color=ink(), **look)
    axes.set_xlabel("bits a number, scales included")
    axes.set_ylabel("SQNR (dB)")
    axes.margins(0.08)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    _number(axes, drawn)
    return written(figure, kind)


def _front(drawn: list[Summary]) -> list[Summary]:
    """Return the recipes that no other beats in bits and SQNR, from the fewest bits on."""
    front: list[Summary] = []
    for one in sorted(drawn, key=lambda one: (_point(one)[0], -_point(one)[1])):
        if not front or _point(one)[1] > _point(front[-1])[1]:
            front.append(one)
    return front


def _number(axes: "Axes", drawn: list[Summary]) -> None:
    """Write the numbers of recipes next to their marks, those of neighbours together."""
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    groups: list[list[int]] = []
    for place, one in enumerate(drawn):
        bits, sqnr = _point(one)
        near = (
            group
            for group in groups
            if abs(bits - _point(drawn[group[0]])[0]) < _NEAR * (right - left)
            and abs(sqnr - _point(drawn[group[0]])[1]) < _NEAR * (high - low)
        )
        group = next(near, None)
        if group is None:
            groups.append([place])
        else:
            group.append(place)
    for group in groups:
        numbers = ", ".join(f"{place + 1}" for place in group)
        axes.annotate(
            numbers, _point(drawn[group[0]]), xytext=(-4, 4), textcoords="offset points",
            ha="right", fontsize="small", color=ink(),
        )  # fmt: skip


def _point(one: Summary) -> tuple[float, float]:
    return one.total.bits_per_number, one.total.measures.sqnr


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
