"""The picture of an analysis: the errors of all tensors, and a map of the blocks of one."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.tensors import BlockMap, Settings, TensorReport, in_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_NAMED = 40  # tensors whose names fit under the axis
_MOST_LETTERS = 34  # of a name
_WIDTH = 10.0  # inches
_WIDTH_OF_MAP = 7.0  # inches, about
_DOTS_PER_INCH = 150
_EVEN_UP_TO = 10.0  # percent, of errors
_MOST_LABELLED = 64  # blocks with their error as text
_MOST_DRAWN = 1500  # rows and columns of blocks; larger grids are thinned
# Colours for all readers, colour-blind ones as well; from the narrowest to bfloat16.
_COLOURS = {"nvfp4": "#8172b3", "e4m3": "#4c78a8", "e5m2": "#eeb479", "bf16": "#c44e52"}
_MARKERS = {"nvfp4": "s", "e4m3": "o", "e5m2": "D", "bf16": "^"}
_OTHER = "#777777"
_IN_A_BLOCK: dict[str, Any] = {
    "ha": "center",
    "va": "center",
    "fontsize": "small",
    "bbox": {"boxstyle": "round", "facecolor": "white", "alpha": 0.8, "edgecolor": "none"},
}


def check_path(path: str) -> None:
    """Refuse a path that cannot be written, and name a missing library for pictures."""
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise ValueError(f"plot is {path!r}; give a file name that ends in .png")
    is_writable = os.access(target if target.exists() else target.parent, os.W_OK)
    if target.is_dir() or not target.parent.is_dir() or not is_writable:
        raise OSError(
            f"plot is {path!r}, which cannot be written; name a file in a directory of yours"
        )
    figure_class()


def draw(
    path: str,
    reports: Sequence[TensorReport],
    mapped: tuple[TensorReport, BlockMap],
    settings: Settings,
) -> None:
    """Write the picture as PNG; `mapped` is the tensor whose blocks are shown."""
    is_by_block = settings.policy.unit == "block"
    heights = [
        3.0 if len(reports) > 1 else 2.0,
        *([1.5] if is_by_block else []),
        _height_of_map(mapped[1]),
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
    panels[-1].set_title(_describe(mapped[0], is_one_of_many=len(reports) > 1))
    _draw_map(panels[-1], *mapped, settings)
    try:
        figure.savefig(path, format="png")
    except OSError as error:
        raise OSError(f"plot is {path!r}, which cannot be written ({error.strerror})") from error


def figure_class() -> "type[Figure]":
    """Return the class of figures without a window; their canvas is Agg."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RuntimeError(
            "plots are drawn by matplotlib, which is not installed; pip install 'mor-ref[plot]'"
        ) from error
    return Figure


# ---------------------------------------------------------------------- all tensors


def _draw_errors(
    axes: "Axes", reports: Sequence[TensorReport], mapped: TensorReport, settings: Settings
) -> None:
    errors = np.array([100 * report.error for report in reports])
    places = np.arange(1, len(reports) + 1)
    size = 36 if len(reports) <= _MOST_NAMED else 14
    for label, name, chosen in _classes(reports, settings):
        colour, marker = _COLOURS.get(name, _OTHER), _MARKERS.get(name, "o")
        dots = places[chosen], errors[chosen], size, colour
        axes.scatter(*dots, marker=marker, label=label, clip_on=False, zorder=3)
    if len(reports) > 1:
        ring: dict[str, Any] = {
            "facecolors": "none",
            "edgecolors": "black",
            "clip_on": False,
            "zorder": 4,
        }
        place = reports.index(mapped) + 1
        axes.scatter([place], [100 * mapped.error], 4 * size, label="shown below", **ring)
    threshold = 100 * settings.thresholds.get(settings.first, 0.0)
    if threshold:
        axes.axhline(threshold, color="black", linestyle="--", label=f"threshold {threshold:.4g} %")
    _scale(axes, max(errors.max(), threshold), threshold)
    axes.set_ylabel(f"mean relative error\nin {settings.first} (%)")
    axes.set_title(
        f"Policy {settings.policy.name}, {_describe_block(settings)}, {settings.scaling} scales: "
        f"{len(reports)} tensor{'s' * (len(reports) != 1)}"
    )
    axes.grid(axis="y", alpha=0.3)
    _put_legend_right(axes)


def _scale(axes: "Axes", highest: float, threshold: float) -> None:
    """Scale evenly up to twice the threshold or more; compress larger errors."""
    from matplotlib.ticker import MaxNLocator

    bend = max(_EVEN_UP_TO, 2 * threshold)
    if highest > bend:
        axes.set_yscale("symlog", linthresh=bend, linscale=2)
        even = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(0, bend)
        ticks = [*even, *(tick for tick in (10, 20, 40, 70, 100) if tick > 1.1 * bend)]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
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
        axes.bar(places, shares, width, bottom, color=_COLOURS.get(name, _OTHER), label=name)
        bottom += shares
    axes.set_ylim(0, 100)
    axes.set_ylabel("share of\nelements (%)")
    _put_legend_right(axes)


def _height_of_names(reports: Sequence[TensorReport]) -> float:
    """Return the height in inches of the names below the axis."""
    if len(reports) > _MOST_NAMED or len(reports) == 1:
        return 0.4
    return 0.2 + 0.075 * max(len(_short(report.name)) for report in reports)


def _name_tensors(axes: "Axes", reports: Sequence[TensorReport], *, is_lowest: bool) -> None:
    axes.set_xlim(0.3, len(reports) + 0.7)
    if len(reports) <= _MOST_NAMED:
        rotation = 90 if len(reports) > 1 else 0
        names = [_short(report.name) for report in reports]
        axes.set_xticks(range(1, len(reports) + 1), names, rotation=rotation, fontsize="small")
    elif is_lowest:
        axes.set_xlabel("tensor, in the order of the table")
    axes.tick_params(labelbottom=is_lowest)


# ---------------------------------------------------------------------- one tensor


def _describe(report: TensorReport, *, is_one_of_many: bool) -> str:
    shape = "x".join(map(str, report.shape)) or "scalar"
    why = "most divided " if report.minority else "worst "
    which = f"The {why if is_one_of_many else ''}tensor"
    return f"{which}: {_short(report.name)}, {shape} {report.dtype}"


def _height_of_map(blocks: BlockMap) -> float:
    """Return a height in inches that makes blocks square, between 1 and 4."""
    rows, columns = blocks.error.shape
    return float(np.clip(_WIDTH_OF_MAP * rows / max(columns, 1), 1, 4))


def _draw_map(axes: "Axes", report: TensorReport, blocks: BlockMap, settings: Settings) -> None:
    if not blocks.error.size:
        axes.text(0.5, 0.5, "it has no elements", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    rows, columns = blocks.error.shape
    place: dict[str, Any] = {
        "extent": (-0.5, columns - 0.5, rows - 0.5, -0.5),
        "aspect": "equal" if 1 / 4 <= columns / rows <= 8 else "auto",
        "interpolation": "nearest",
    }
    if blocks.choice is None:
        _show_errors(axes, 100 * blocks.error, settings, place)
    else:
        _show_choices(axes, _thinned(blocks.choice), report, place)
    axes.set_xticks(_whole_ticks(columns))
    axes.set_yticks(_whole_ticks(rows))
    tall, wide = blocks.block
    axes.set_xlabel(f"column of blocks, {wide} column{'s' * (wide > 1)} each")
    axes.set_ylabel(f"row of blocks,\n{tall} row{'s' * (tall > 1)} each")


def _whole_ticks(count: int) -> list[int]:
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(8, integer=True).tick_values(0, count - 1) if count > 1 else [0]
    return [int(tick) for tick in ticks if 0 <= tick < count]


def _show_errors(
    axes: "Axes", errors: NDArray[np.float64], settings: Settings, place: dict[str, Any]
) -> None:
    limit = 100 * (settings.limit or 0.0)
    highest = max(errors.max(), limit)
    image = axes.imshow(_thinned(errors), cmap="viridis", vmin=0, vmax=highest, **place)
    beside = axes.inset_axes((1.02, 0, 0.025, 1))
    label = f"mean relative error\nin {settings.first} (%)"
    bar = axes.figure.colorbar(image, cax=beside, label=label)
    if settings.limit is not None:
        bar.ax.axhline(limit, color="white", linewidth=4)  # visible on any colour
        bar.ax.axhline(limit, color="black")
    if errors.size <= _MOST_LABELLED:
        for (row, column), error in np.ndenumerate(errors):
            axes.text(column, row, f"{error:.3g}", **_IN_A_BLOCK)


def _show_choices(
    axes: "Axes", choice: NDArray[np.uint8], report: TensorReport, place: dict[str, Any]
) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = [_COLOURS.get(name, _OTHER) for name in report.units]
    axes.imshow(choice, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5, **place)
    labels = [f"{name} {in_percent(share)} %" for name, share in report.shares.items()]
    patches = [Patch(color=c, label=text) for c, text in zip(colours, labels, strict=True)]
    _put_legend_right(axes, handles=patches, title="share of elements")


def _thinned(grid: NDArray[Any]) -> NDArray[Any]:
    """Return the grid with only as many blocks as fit the picture."""
    rows, columns = (-(-side // _MOST_DRAWN) for side in grid.shape)
    return grid[::rows, ::columns]


# ---------------------------------------------------------------------- words


def _put_legend_right(axes: "Axes", **arguments: Any) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, **arguments)


def _describe_block(settings: Settings) -> str:
    if settings.block == "tensor":
        return "one scaling block"
    if isinstance(settings.block, str):
        return f"a scaling block for each {settings.block}"
    return f"scaling blocks of {settings.block[0]}x{settings.block[1]}"


def _short(name: str) -> str:
    """Return the end of a name that fits; a dollar sign does not begin a formula."""
    end = name if len(name) <= _MOST_LETTERS else f"..{name[2 - _MOST_LETTERS :]}"
    return end.replace("$", r"\$")
