"""How far dot products of FP8 numbers are from their exact sums, by profile and length."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_docs.shown.markup import data, line, picture, table, text
from mor_docs.shown.plots import Axes, key
from mor_ref.definitions.dot import DOT_PROFILES, PERIOD

_PROFILES = (
    "hopper_fp8", "hopper_fp8_promoted", "ada_fp8", "blackwell_fp8", "f32_fma", "f32_pairwise",
)  # fmt: skip
_LENGTHS = tuple(range(5, 14))  # binary logarithms of K
_ROWS, _SEED = 256, 18
_LONG = 12  # of the table
_TICKS = range(-28, -7, 4)
Codes = NDArray[np.uint8]


@cache
def _codes() -> tuple[Codes, Codes]:
    """Return codes of e4m3 of bell-shaped numbers, as scaled tensors have them."""
    random = np.random.default_rng(_SEED)
    x = random.standard_normal((2, _ROWS, 1 << _LENGTHS[-1])).astype(np.float32)
    codes = mor_ref.quantize(x.reshape(2, -1), "e4m3", block="row").codes
    one, other = codes.reshape(x.shape)
    return one, other


def _exact(a: Codes, b: Codes) -> NDArray[np.float64]:
    """Return exact sums: products are multiples of 2^-18, and binary64 holds them."""
    x, y = (mor_ref.decode(codes, "e4m3").astype(np.float64) for codes in (a, b))
    found: NDArray[np.float64] = (x * y).sum(axis=1)
    return found


@cache
def _error(name: str, length: int) -> float:
    """Return the root of the mean square of errors, as a share of that of the exact sums."""
    a, b = (codes[:, : 1 << length] for codes in _codes())
    exact = _exact(a, b)
    error = mor_ref.dot(a, b, profile=name).astype(np.float64) - exact
    return float(np.sqrt((error**2).mean() / (exact**2).mean()))


def errors() -> str:
    """Draw the error of each profile against K."""
    axes = Axes(70, 16, 600, 280, (_LENGTHS[0], _LENGTHS[-1]), (_TICKS[0], _TICKS[-1]))
    shapes = []
    for tick in _TICKS:
        _, up = axes.at(_LENGTHS[0], tick)
        shapes.append(line(70, up, 670, up, "grid"))
        shapes.append(text(60, up + 4, f"2^{tick}".replace("-", "−"), anchor="end"))
    curves = {name: [(k, float(np.log2(_error(name, k)))) for k in _LENGTHS] for name in _PROFILES}
    shapes += [text(axes.at(k, 0)[0], 314, str(1 << k)) for k in _LENGTHS]
    shapes.append(text(370, 334, "K, products of a sum"))
    shapes += [axes.curve(points, n) for n, points in enumerate(curves.values())]
    shapes += key(90, 362, list(curves))
    said = (
        f"The error of {_ROWS} dot products of bell-shaped numbers in e4m3, as a share of their "
        "exact sums (roots of mean squares), against the number of products."
    )
    rows = [[name, *(f"{_error(name, k):.4g}" for k in _LENGTHS)] for name in _PROFILES]
    drawn = picture(700, 462, "Error against K", shapes, said)
    return drawn + data("dot-errors", ["profile", *(str(1 << k) for k in _LENGTHS)], rows)


def compared() -> str:
    """Show the error of each profile for one K, and the numbers that cause it."""
    rows = []
    for name in _PROFILES:
        profile = DOT_PROFILES[name]
        cut = f"{profile.fraction_bits} bits" if profile.fraction_bits else "no cut"
        kept = profile.kept_bits if profile.fraction_bits else 23
        length: object = profile.chunk or ("a tree" if "pairwise" in name else 1)
        if profile.family == "promoted":
            length = f"{length}, in parts of {PERIOD}"
        rows.append([f"`{name}`", length, cut, kept, f"1 in {1 / _error(name, _LONG):,.0f}"])
    head = ["profile", "products at once", "bits below the largest term", "bits of c"]
    return table([*head, f"error at K = {1 << _LONG:,}"], rows)
