"""Pictures of a recording: layers against steps, errors by operand, and shares over time."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.argument_checks import known_name
from mor_ref.recipes.training import OPERANDS
from mor_ref.torch.measures import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = tuple[str, str]  # an operand and an axis

_DOTS_PER_INCH = 120
_LEAST, _MOST = 4, 100  # inches of a picture
_NARROWEST = 2.4  # inches, of a panel next to another one
_ROOM_FOR_NAMES = 2.2  # inches
_MOST_NAMED = 40  # layers whose names fit next to a panel
_MOST_LETTERS = 26  # of a name
_INCHES_OF_ROW = 0.2
# Colours for all readers, colour-blind ones as well.
_OF_REPRESENTATION = {"nvfp4": "#8172b3", "e4m3": "#4c78a8", "e5m2": "#eeb479", "bf16": "#c44e52"}
_OTHERS = ("#59a14f", "#9c755f", "#777777")
_OF_OPERAND = {"input": "#4c78a8", "weight": "#59a14f", "grad_output": "#c44e52"}
_OF_AXIS = {"row": "-", "column": "--"}


class _Measure(NamedTuple):
    label: str
    of: Callable[[Measured], float]


MEASURES = {
    "error": _Measure("mean relative error (%)", lambda row: 100 * row.error),
    "sqnr": _Measure("SQNR (dB)", lambda row: row.sqnr),
    "bf16": _Measure("units that stay in bf16 (%)", lambda row: 100 * row.shares["bf16"]),
    "flushed": _Measure("flushed to zero (%)", lambda row: 100 * row.flushed_share),
    "saturated": _Measure("saturated (%)", lambda row: 100 * row.saturated_share),
    "amax": _Measure("log2 of amax", lambda row: float(np.log2(row.amax)) if row.amax else np.nan),
}


def heat_map(rows: Iterable[Measured], measure: str = "error", *, width: float = 10.0) -> "Figure":
    """Draw a measure of each layer against the steps: a panel for each operand and direction.

    `measure` is "error", "sqnr", "bf16", "flushed", "saturated" or "amax". `width` is in inches;
    panels that do not fit next to each other are below each other. Grey marks results that are
    missing, or infinite.
    """
    known_name("measure", measure, MEASURES)
    _check_width(width)
    counted = _counted(rows)
    panels = _panels(counted)
    layers = list(dict.fromkeys(row.layer for row in counted))
    steps = _steps(counted)
    columns = int(np.clip((width - _ROOM_FOR_NAMES) // _NARROWEST, 1, len(panels)))
    down = -(-len(panels) // columns)
    height = 0.9 + down * (0.75 + _INCHES_OF_ROW * min(max(len(layers), 4), _MOST_NAMED))
    figure = _figure(width, height)
    grid = figure.subplots(down, columns, sharex=True, sharey=True, squeeze=False)
    maps = [_grid(counted, panel, layers, steps, MEASURES[measure]) for panel in panels]
    low, high = _limits(maps, from_zero=measure in ("bf16", "flushed", "saturated"))
    for place, axes in enumerate(grid.flat[len(panels) :], len(panels)):
        axes.remove()
        grid.flat[place - columns].tick_params(labelbottom=True)
    for axes, panel, numbers in zip(grid.flat, panels, maps, strict=False):
        axes.set_facecolor("#dddddd")
        found = np.ma.masked_invalid(numbers)
        ends = {"vmin": low, "vmax": high}
        image = axes.imshow(found, aspect="auto", interpolation="nearest", **ends)
        axes.set_title(_name_of(panel), fontsize="medium")
        _name_steps(axes, steps)
    _name_layers(grid, layers)
    figure.supxlabel("step", fontsize="medium")
    figure.colorbar(
        image,
        ax=list(grid.flat[: len(panels)]),
        label=MEASURES[measure].label,
        fraction=0.04,
        pad=0.02,
    )
    return figure


def _limits(maps: Sequence[NDArray[np.float64]], *, from_zero: bool) -> tuple[float, float]:
    """Return the ends of the colours: those of the finite numbers."""
    finite = np.concatenate([one[np.isfinite(one)] for one in maps])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low = min(low, 0.0 if from_zero else low)
    return low, high if high > low else low + 1


def errors_by_operand(rows: Iterable[Measured], *, width: float = 10.0) -> "Figure":
    """Draw the mean relative errors of each operand: the mean of the layers, and their range.

    The line of a direction by column is dashed.
    """
    _check_width(width)
    counted = _counted(rows)
    operands = [name for name in OPERANDS if any(row.operand == name for row in counted)]
    figure = _figure(width, 3.2 if width > _ROOM_FOR_NAMES * len(operands) else 7.0)
    sides = (1, len(operands)) if width > _ROOM_FOR_NAMES * len(operands) else (len(operands), 1)
    panels = figure.subplots(*sides, sharex=True, sharey=True, squeeze=False)
    for axes, operand in zip(panels.flat, operands, strict=True):
        for panel in _panels([row for row in counted if row.operand == operand]):
            found = _by_step(counted, panel, lambda row: 100 * row.error)
            _draw_range(axes, found, panel)
        axes.set_title(operand, fontsize="medium")
        _name_whole_steps(axes)
        axes.grid(alpha=0.3)
        if any(line.get_linestyle() == "--" for line in axes.lines):
            axes.legend(frameon=False, fontsize="small")
    figure.supxlabel("step", fontsize="medium")
    figure.supylabel("mean relative error (%)", fontsize="medium")
    return figure


def shares_over_time(rows: Iterable[Measured], *, width: float = 10.0) -> "Figure":
    """Draw the decisions, and the shares of flushed and of saturated elements, against the steps.

    Decisions are of the units of all operands. The other shares are of the elements of an operand
    in all layers.
    """
    _check_width(width)
    counted = _counted(rows)
    figure = _figure(width, 7.0)
    decisions, flushed, saturated = figure.subplots(3, 1, sharex=True)
    _draw_decisions(decisions, counted)
    kinds: Sequence[tuple[Axes, str, Callable[[Measured], int | None]]] = (
        (flushed, "flushed to\nzero (%)", lambda row: row.flushed),
        (saturated, "saturated (%)", lambda row: row.saturated),
    )
    for axes, label, count in kinds:
        for panel in _panels(counted):
            found = _by_step(counted, panel, lambda row: (count(row), row.nonzero))  # noqa: B023, used at once
            shares = [100 * _ratio(found[step]) for step in found]
            axes.plot(list(found), np.array(shares), _OF_AXIS[panel[1]], **_line(panel))
        axes.set_ylabel(label)
        axes.set_ylim(0, None if any(np.any(line.get_ydata()) for line in axes.lines) else 1)
        axes.grid(alpha=0.3)
    _put_legend_right(flushed)
    saturated.set_xlabel("step")
    return figure


def _draw_decisions(axes: "Axes", counted: Sequence[Measured]) -> None:
    steps = _steps(counted)
    names = list(dict.fromkeys(name for row in counted for name in row.choices))
    names.sort(key=lambda name: name == "bf16")  # at the top
    others = iter(_OTHERS * len(names))
    taken = {name: dict.fromkeys(steps, 0) for name in names}
    for row in counted:
        for name, count in row.choices.items():
            taken[name][row.step] += count
    units = np.array([[taken[name][step] for step in steps] for name in names], float)
    shares = 100 * units / np.maximum(units.sum(axis=0), 1)
    colours = [_OF_REPRESENTATION.get(name) or next(others) for name in names]
    apart = steps[-1] - steps[-2] if len(steps) > 1 else 1
    ends = [*steps, steps[-1] + apart]  # the last step is as wide as the one before
    shares = np.append(shares, shares[:, -1:], axis=1)
    axes.stackplot(ends, shares, labels=names, colors=colours, step="post")
    _name_whole_steps(axes)
    axes.set_ylim(0, 100)
    axes.set_ylabel("units that\ntook it (%)")
    _put_legend_right(axes, reverse=True)


def _draw_range(axes: "Axes", found: dict[int, list[Any]], panel: Panel) -> None:
    steps = list(found)
    lowest, highest = ([end(one) for one in found.values()] for end in (min, max))
    colour = _OF_OPERAND[panel[0]]
    axes.fill_between(steps, lowest, highest, color=colour, alpha=0.15, linewidth=0)
    line = {**_line(panel), "label": f"by {panel[1]}"}
    axes.plot(steps, [fmean(one) for one in found.values()], _OF_AXIS[panel[1]], **line)


# ---------------------------------------------------------------------- rows


def _counted(rows: Iterable[Measured]) -> list[Measured]:
    """Return the rows that count (TRN-013); refuse to draw none."""
    found = [row for row in rows if not row.is_recomputed]
    if not found:
        raise ValueError(
            "rows are empty; record a model while it trains under a recipe that quantizes, so not "
            "under bf16"
        )
    return found


def _panels(counted: Sequence[Measured]) -> list[Panel]:
    there = {(row.operand, row.axis) for row in counted}
    return [(name, axis) for axis in _OF_AXIS for name in OPERANDS if (name, axis) in there]


def _steps(counted: Sequence[Measured]) -> list[int]:
    return sorted({row.step for row in counted})


def _by_step(
    counted: Sequence[Measured], panel: Panel, of: Callable[[Measured], Any]
) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for row in counted:
        if (row.operand, row.axis) == panel:
            found[row.step].append(of(row))
    return dict(sorted(found.items()))


def _ratio(counts: Sequence[tuple[Any, int]]) -> float:
    """Return the share of some elements among all; NaN, which is not drawn, if it is not known."""
    some, every = zip(*counts, strict=True)
    return np.nan if None in some else sum(some) / max(sum(every), 1)


def _grid(
    counted: Sequence[Measured], panel: Panel, layers: list[str], steps: list[int], one: _Measure
) -> Any:
    """Return the mean of a measure over the microbatches, for each layer and step."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in counted:
        if (row.operand, row.axis) == panel:
            found[row.layer, row.step].append(one.of(row))
    means = [[fmean(found.get((name, step), [np.nan])) for step in steps] for name in layers]
    return np.array(means, float)


# ---------------------------------------------------------------------- axes


def _check_width(width: object) -> None:
    if not isinstance(width, int | float) or not _LEAST <= width <= _MOST:
        raise ValueError(f"width is {width!r}; give inches from {_LEAST} to {_MOST}")


def _figure(width: float, height: float) -> "Figure":
    """Return a figure without a window; its canvas is Agg."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RuntimeError(
            "pictures are drawn by matplotlib, which is not installed; "
            "pip install 'mor-ref[record]'"
        ) from error
    return Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout="constrained")


def _name_of(panel: Panel) -> str:
    return f"{panel[0]} by {panel[1]}"


def _line(panel: Panel) -> dict[str, Any]:
    single = {"marker": ".", "color": _OF_OPERAND[panel[0]], "label": _name_of(panel)}
    return {**single, "clip_on": False}


def _name_steps(axes: "Axes", steps: list[int]) -> None:
    """Name about four of the columns by their steps."""
    places = range(0, len(steps), max(-(-len(steps) // 4), 1))
    axes.set_xticks(list(places), [str(steps[place]) for place in places])


def _name_whole_steps(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _name_layers(grid: Any, layers: list[str]) -> None:
    places = range(0, len(layers), -(-len(layers) // _MOST_NAMED))
    shorter = _without_common_words(layers)
    names = [_short(shorter[place]) for place in places]
    for axes in grid[:, 0]:
        axes.set_yticks(list(places), names, fontsize="small")


def _without_common_words(layers: list[str]) -> list[str]:
    """Return names without the words before a dot that all begin with."""
    words = [name.split(".") for name in layers]
    while len({tuple(name[:1]) for name in words}) == 1 and all(len(name) > 1 for name in words):
        words = [name[1:] for name in words]
    return [".".join(name) for name in words]


def _short(name: str) -> str:
    """Return both ends of a name that fit; a dollar sign does not begin a formula."""
    half = (_MOST_LETTERS - 2) // 2
    ends = name if len(name) <= _MOST_LETTERS else f"{name[:half]}..{name[-half:]}"
    return ends.replace("$", r"\$")


def _put_legend_right(axes: "Axes", **arguments: Any) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, **arguments)
