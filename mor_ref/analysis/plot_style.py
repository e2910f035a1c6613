"""Colours, names and legends of pictures."""

import io
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LETTERS = 34  # of a name
# Colours for all readers, colour-blind ones as well; from the narrowest to bfloat16.
COLOURS = {"nvfp4": "#8172b3", "e4m3": "#4c78a8", "e5m2": "#eeb479", "bf16": "#c44e52"}
OTHER = "#777777"


def figure_class() -> "type[Figure]":
    """Return the class of figures without a window; their canvas is Agg."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RuntimeError(
            "plots are drawn by matplotlib, which is not installed; pip install 'mor-ref[plot]'"
        ) from error
    return Figure


def written(figure: "Figure", kind: str) -> bytes:
    """Return a figure as a PNG, SVG or PDF that is the same each time; a PDF embeds its fonts.

    A letter of a name that the font lacks is a box, and no warning.
    """
    from matplotlib import rc_context

    file = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "mor_ref", "pdf.fonttype": 42}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(file, format=kind, metadata=dates.get(kind))
    return file.getvalue()


def ink() -> str:
    """Return the colour of texts and lines in the user's style of matplotlib."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def ground() -> str:
    """Return the colour behind texts and lines in the user's style of matplotlib."""
    from matplotlib import rcParams

    return str(rcParams["axes.facecolor"])


def put_legend_right(axes: "Axes", **arguments: Any) -> None:
    """Put a legend next to the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, **arguments)


def short(name: str) -> str:
    """Return the end of a name that fits; a dollar sign does not begin a formula."""
    end = name if len(name) <= _MOST_LETTERS else f"..{name[2 - _MOST_LETTERS :]}"
    return end.replace("$", r"\$")
