"""The map of the blocks of one tensor, as a panel of a picture."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.analyze_tensor import BlockMap, Settings, TensorReport, in_percent
from mor_ref.analysis.plot_style import COLOURS, OTHER, ground, put_legend_right, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_OF_MAP = 7.0  # inches, about
_MOST_LABELLED = 64  # blocks with their error as text
_MOST_DRAWN = 1500  # rows and columns of blocks; larger grids are thinned
_IN_A_BLOCK: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
_BEHIND: dict[str, Any] = {"boxstyle": "round", "alpha": 0.8, "edgecolor": "none"}


def describe(report: TensorReport, *, is_one_of_many: bool) -> str:
    """Return the title of the map."""
    shape = "x".join(map(str, report.shape)) or "scalar"
    why = "most divided " if report.minority else "worst "
    which = f"The {why if is_one_of_many else ''}tensor"
    return f"{which}: {short(report.name)}, {shape} {report.dtype}"


def height_of_map(blocks: BlockMap) -> float:
    """Return a height in inches that makes blocks square, between 1 and 4."""
    rows, columns = blocks.error.shape
    return float(np.clip(_WIDTH_OF_MAP * rows / max(columns, 1), 1, 4))


def draw_map(axes: "Axes", report: TensorReport, blocks: BlockMap, settings: Settings) -> None:
    """Draw the errors of the blocks, or their choices."""
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
    margin = axes.inset_axes((1.02, 0, 0.025, 1))
    label = f"mean relative error\nin {settings.first} (%)"
    bar = axes.figure.colorbar(image, cax=margin, label=label)
    if settings.limit is not None:
        bar.ax.axhline(limit, color="white", linewidth=4)  # visible on any colour
        bar.ax.axhline(limit, color="black")
    if errors.size <= _MOST_LABELLED:
        for (row, column), error in np.ndenumerate(errors):
            behind = _BEHIND | {"facecolor": ground()}
            axes.text(column, row, f"{error:.3g}", bbox=behind, **_IN_A_BLOCK)


def _show_choices(
    axes: "Axes", choice: NDArray[np.uint8], report: TensorReport, place: dict[str, Any]
) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    colours = [COLOURS.get(name, OTHER) for name in report.units]
    axes.imshow(choice, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5, **place)
    labels = [f"{name} {in_percent(share)} %" for name, share in report.shares.items()]
    patches = [Patch(color=c, label=text) for c, text in zip(colours, labels, strict=True)]
    put_legend_right(axes, handles=patches, title="share of elements")


def _thinned(grid: NDArray[Any]) -> NDArray[Any]:
    """Return the grid with only as many blocks as fit the picture."""
    rows, columns = (-(-side // _MOST_DRAWN) for side in grid.shape)
    return grid[::rows, ::columns]
