"""The picture of an analysis: the errors of all tensors, and a map of the blocks of one."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.analyze_tensor import BlockMap, Settings, TensorReport
from mor_ref.analysis.block_map_plot import describe, draw_map, height_of_map
from mor_ref.analysis.plot_style import (
    COLOURS,
    OTHER,
    figure_class,
    ink,
    put_legend_right,
    short,
    written,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 40  # tensors whose names fit under the axis
_WIDTH = 10.0  # inches
_DOTS_PER_INCH = 150
_EVEN_UP_TO = 10.0  # percent, of errors
_MARKERS = {"nvfp4": "s", "e4m3": "o", "e5m2": "D", "bf16": "^"}


def check_path(path: str) -> None:
    """Refuse a path of another ending, and name a missing library for pictures."""
    if Path(path).suffix.lower() != ".png":
        raise ValueError(f"plot is {path!r}; give a file name that ends in .png")
    figure_class()


def picture(
    reports: Sequence[TensorReport],
    mapped: tuple[TensorReport, BlockMap],
    settings: Settings,
) -> bytes:
    """Return the picture as PNG; `mapped` is the tensor whose blocks are shown."""
    is_by_block = settings.policy.unit == "block"
    heights = [
        3.0 if len(reports) > 1 else 2.0,
        *([1.5] if is_by_block else []),
        height_of_map(mapped[1]),
    ]
    figure = figure_class()(
        figsize=(_WIDTH, sum(heights) + 1 + _height_of_names(reports)),
        dpi=_DOTS_PER_INCH,
        layout="constrained",
    )
    panels = figure.subplots(len(heights), 1, height_ratios=heights)
    _draw_errors(panels[0], reports, mapped[0], settings)
    _name_tensors(panels[0], reports, is_lowest=not is_by_block)
    if is_by_block:
        _draw_shares(panels[1], reports, settings)
        _name_tensors(panels[1], reports, is_lowest=True)
    panels[-1].set_title(describe(mapped[0], is_one_of_many=len(reports) > 1))
    draw_map(panels[-1], *mapped, settings)
    return written(figure, "png")


# ---------------------------------------------------------------------- all tensors


def _draw_errors(
    axes: "Axes", reports: Sequence[TensorReport], mapped: TensorReport, settings: Settings
) -> None:
    errors = np.array([100 * report.error for report in reports])
    places = np.arange(1, len(reports) + 1)
    size = 36 if len(reports) <= _MOST_NAMED else 14
    for label, name, chosen in _classes(reports, settings):
        colour, marker = COLOURS.get(name, OTHER), _MARKERS.get(name, "o")
        dots = places[chosen], errors[chosen], size, colour
        axes.scatter(*dots, marker=marker, label=label, clip_on=False, zorder=3)
    if len(reports) > 1:
        ring: dict[str, Any] = {
            "facecolors": "none",
            "edgecolors": ink(),
            "clip_on": False,
            "zorder": 4,
        }
        place = reports.index(mapped) + 1
        axes.scatter([place], [100 * mapped.error], 4 * size, label="shown below", **ring)
    highest = max(errors.max(), _mark_yardsticks(axes, reports, settings))
    threshold = 0.0
    for name, limit in settings.mean_thresholds.items():
        threshold = max(threshold, 100 * limit)
        is_first = name == settings.first
        label = f"threshold {'' if is_first else f'of {name} '}{100 * limit:.4g} %"
        colour = ink() if is_first else COLOURS.get(name, OTHER)
        axes.axhline(100 * limit, color=colour, linestyle="--", label=label)
    _scale(axes, max(highest, threshold), threshold)
    axes.set_ylabel(f"mean relative error\nin {settings.first} (%)")
    axes.set_title(f"{_describe(settings)}: {len(reports)} tensor{'s' * (len(reports) != 1)}")
    axes.grid(axis="y", alpha=0.3)
    put_legend_right(axes)


def _mark_yardsticks(axes: "Axes", reports: Sequence[TensorReport], settings: Settings) -> float:
    """Mark the errors in the other representations that were tried; return the largest.

    A rung that accepts by comparison has its threshold there.
    """
    others = dict.fromkeys(name for one in reports for name in one.errors)
    compared = {one.name for one in settings.policy.ladder[0].metric.yardsticks}
    highest = 0.0
    for name in others:
        if name != settings.first:
            errors = [100 * one.errors[name] for one in reports]
            look: dict[str, Any] = {"color": COLOURS.get(name, OTHER), "markersize": 9}
            places = range(1, len(reports) + 1)
            what = "threshold: " if name in compared else ""
            axes.plot(places, errors, "_", label=f"{what}error in {name}", **look)
            highest = max(highest, *errors)
    return highest


def _scale(axes: "Axes", highest: float, threshold: float) -> None:
    """Scale evenly up to twice the threshold or more; compress larger errors, and say so."""
    from matplotlib.ticker import MaxNLocator

    bend = max(_EVEN_UP_TO, 2 * threshold)
    if highest > bend:
        axes.set_yscale("symlog", linthresh=bend, linscale=2)
        even = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(0, bend)
        ticks = [*even, *(tick for tick in (10, 20, 40, 70, 100) if tick > 1.1 * bend)]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.axhspan(bend, 10 * highest, color=ink(), alpha=0.05, linewidth=0)
        axes.text(
            1, bend, f"compressed above {bend:g} % ", ha="right", va="bottom", fontsize="x-small",
            transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    axes.set_ylim(0, 1.2 * highest or 1)


def _classes(
    reports: Sequence[TensorReport], settings: Settings
) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield each kind of dot: a label, a representation for the colour, and its tensors."""
    if settings.policy.unit == "block":
        yield "a tensor", settings.first, np.ones(len(reports), bool)
        return
    for name in settings.policy.names:
        chosen = np.array([report.decision == name for report in reports])
        if chosen.any():
            yield f"stays in {name}" if name == "bf16" else f"takes {name}", name, chosen
    undecided = np.array([report.decision is None for report in reports])
    if undecided.any():
        yield "has no elements", "", undecided


def _draw_shares(axes: "Axes", reports: Sequence[TensorReport], settings: Settings) -> None:
    places = np.arange(1, len(reports) + 1)
    bottom = np.zeros(len(reports))
    width = 0.8 if len(reports) <= _MOST_NAMED else 1.0
    for name in settings.policy.names:
        shares = np.array([100 * report.shares[name] for report in reports])
        axes.bar(places, shares, width, bottom, color=COLOURS.get(name, OTHER), label=name)
        bottom += shares
    axes.set_ylim(0, 100)
    axes.set_ylabel("share of\nelements (%)")
    put_legend_right(axes)


def _height_of_names(reports: Sequence[TensorReport]) -> float:
    """Return the height in inches of the names below the axis."""
    if len(reports) > _MOST_NAMED or len(reports) == 1:
        return 0.4
    return 0.2 + 0.075 * max(len(short(report.name)) for report in reports)


def _name_tensors(axes: "Axes", reports: Sequence[TensorReport], *, is_lowest: bool) -> None:
    axes.set_xlim(0.3, len(reports) + 0.7)
    if len(reports) <= _MOST_NAMED:
        rotation = 90 if len(reports) > 1 else 0
        names = [short(report.name) for report in reports]
        axes.set_xticks(range(1, len(reports) + 1), names, rotation=rotation, fontsize="small")
    elif is_lowest:
        axes.set_xlabel("tensor, in the order of the table")
    axes.tick_params(labelbottom=is_lowest)


def _describe(settings: Settings) -> str:
    """Name the policy; the blocks and scales matter to the formats that use them."""
    named = f"Policy {settings.policy.name}"
    if settings.policy.uses_scaling:
        return f"{named}, {_describe_block(settings)}, {settings.scaling} scales"
    return named


def _describe_block(settings: Settings) -> str:
    if settings.block == "tensor":
        return "one scaling block"
    if isinstance(settings.block, str):
        return f"a scaling block for each {settings.block}"
    return f"scaling blocks of {settings.block[0]}x{settings.block[1]}"
