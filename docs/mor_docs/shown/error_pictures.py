"""How large errors are with each representation, and how many blocks a threshold accepts."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_docs.shown.markup import box, data, picture, text
from mor_docs.shown.plots import Axes, key
from mor_docs.shown.profiles import bell_shaped

Array = NDArray[Any]
_BINS = range(-12, 1)  # binary logarithms of relative errors
_THRESHOLDS = [step / 4 for step in range(41)]  # in percent


@cache
def kinds() -> dict[str, Array]:
    """Return tensors of three kinds, from the same nearly Gaussian numbers."""
    bells = bell_shaped().astype(np.float32).reshape(-1, 128)[: 4 * 128]
    other = bell_shaped().astype(np.float32).reshape(-1, 128)[4 * 128 : 8 * 128]
    return {
        "bell-shaped": bells,
        "bell-shaped, cubed": bells**3,
        "bell-shaped, times random powers of two": bells * np.exp2(np.round(3 * other)),
    }


def accepted(block: str) -> str:
    """Draw the share of blocks whose mean relative error in e4m3 is below a threshold."""
    side = int(block)
    axes = Axes(60, 26, 620, 240, (0, 10), (0, 100))
    curves = {f"{name}, e4m3": _shares(x, side, "e4m3") for name, x in kinds().items()}
    curves["bell-shaped, e5m2"] = _shares(kinds()["bell-shaped"], side, "e5m2")
    shapes = [*axes.grid(range(11), range(0, 101, 25), " %"), *axes.mark(4.5, "4.5 %")]
    shapes += [axes.curve(points, i) for i, points in enumerate(curves.values())]
    shapes += key(80, 316, list(curves))
    said = (
        f"The share of blocks of {side} x {side} that a format keeps, against the threshold of the "
        "mean relative error in percent (MOR-002), for three kinds of tensors with gam scaling."
    )
    rows = [[name, *point] for name, points in curves.items() for point in points]
    drawn = picture(700, 390, "Share accepted against the threshold", shapes, said)
    return drawn + data("accepted", ["tensor", "threshold in %", "accepted in %"], rows)


def _shares(x: Array, side: int, fmt: str) -> list[tuple[float, float]]:
    found = mor_ref.quantize(x, fmt, block=(side, side)).error
    means = 100 * found.mean_relative_error.ravel()
    return [(t, round(100 * float((means < t).mean()), 2)) for t in _THRESHOLDS]


def histograms() -> str:
    """Draw the relative errors of bell-shaped numbers by powers of two."""
    x = kinds()["bell-shaped"]
    shapes, rows = [], []
    for i, (name, y) in enumerate(_representations(x).items()):
        shares, exact, mean = histogram(x, y)
        shapes += _drawn(i, name, shares, exact, mean)
        rows.append([name, round(100 * exact, 3), *(round(100 * s, 3) for s in shares)])
        rows[-1].append(round(100 * mean, 4))
    count = len(rows)
    for n, place in enumerate(_BINS):
        shapes.append(text(236 + 30 * n, 20 + 58 * count, f"2^{place}".replace("-", "−")))
    shapes.append(text(190, 20 + 58 * count, "0"))
    said = (
        "The relative errors of 65,536 bell-shaped numbers under each representation. The first "
        "bar is the share of numbers without an error; each other bar is the share from half of a "
        "power of two, included, to that power. An error of 1 counts in the last bar."
    )
    drawn = picture(700, 34 + 58 * count, "Errors under each representation", shapes, said)
    head = ["representation", "exact", *(f"below 2^{place}" for place in _BINS), "mean in %"]
    return drawn + data("histograms", head, rows)


def _representations(x: Array) -> dict[str, Array]:
    """Return y of the numbers with each representation."""
    scaled = {
        f"{fmt}, {kind}": mor_ref.quantize(x, fmt, scaling=kind, block=(128, 128)).dequantize()
        for fmt in ("e4m3", "e5m2")
        for kind in ("gam", "e8m0", "fp32")
    }
    return {
        **scaled,
        "MX e4m3, floor": mor_ref.quantize_mx(x, "e4m3").dequantize(),
        "MX e4m3, rceil": mor_ref.quantize_mx(x, "e4m3", scale_rule="rceil").dequantize(),
        "MX e2m1, floor": mor_ref.quantize_mx(x, "e2m1").dequantize(),
        "NVFP4, te": mor_ref.quantize_nvfp4(x).dequantize(),
    }


def histogram(x: Array, y: Array) -> tuple[list[float], float, float]:
    """Return the shares of errors by powers of two, the share of exact numbers, and the mean."""
    is_number = x != 0
    errors = np.abs(x[is_number].astype(np.float64) - y[is_number]) / np.abs(x[is_number])
    wrong = errors[errors > 0]
    places = np.clip(np.floor(np.log2(wrong)) + 1, _BINS[0], _BINS[-1])
    shares = [float((places == place).sum()) / errors.size for place in _BINS]
    return shares, 1 - wrong.size / errors.size, float(errors.mean())


def _drawn(i: int, name: str, shares: Sequence[float], exact: float, mean: float) -> list[str]:
    bottom = 58 * (i + 1)
    shapes = [text(160, bottom - 14, name, "name", "end"), box(176, bottom, 460, 1, "range")]
    for n, share in enumerate([exact, *shares]):
        left = 178 if n == 0 else 194 + 30 * n
        height = min(100 * share, 50)
        kind = "subnormals" if n == 0 else "range"
        shapes.append(box(left, bottom - height, 26, height, kind, f"{100 * share:.3g} %"))
    shapes.append(text(690, bottom - 14, f"mean {100 * mean:.3g} %", "", "end"))
    return shapes
