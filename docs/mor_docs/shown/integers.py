"""Integers with zero points: the numbers that they stand for, against the given ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_docs.shown.markup import data, picture
from mor_docs.shown.plots import Axes, key

_BLOCK = np.array([-1, 3], np.float32)  # its extremes
_X = np.arange(-1.5, 4, 2**-6).astype(np.float32)
_WAYS = {
    "int3, symmetric, torch": ("int3", "torch_fake_tensor", True),
    "int3, symmetric, PEG": ("int3", "peg", True),
    "uint3 with a zero point, torch": ("uint3", "torch_fake_tensor", False),
}


def steps() -> str:
    """Draw y against x, with the scale and the zero point of a block from -1 to 3."""
    axes = Axes(60, 26, 620, 260, (-1.5, 4), (-2, 4))
    curves = {name: _values(*way) for name, way in _WAYS.items()}
    shapes = [*axes.grid(range(-1, 5), range(-2, 5)), *axes.mark(3, "maximum")]
    shapes += [
        axes.curve(list(zip(_X.tolist(), y.tolist(), strict=True)), i)
        for i, y in enumerate(curves.values())
    ]
    shapes += key(80, 336, list(curves))
    said = (
        "The number that a code of three bits stands for, against the given number, with the "
        "scale of a block from -1 to 3. With a zero point, all eight codes lie in the range. "
        "Without one, the codes below -1 are never taken. In torch, the maximum lies between "
        "two codes, and saturates."
    )
    rows = [
        [name, float(x), float(y)]
        for name, values in curves.items()
        for x, y in zip(_X[::8], values[::8], strict=True)
    ]
    drawn = picture(700, 400, "Integers of three bits", shapes, said)
    return drawn + data("integers", ["grid", "x", "y"], rows)


def _values(grid: str, profile: str, symmetric: bool) -> NDArray[Any]:
    """Return y of each x, with the scale and the zero point of the block."""
    how: dict[str, Any] = {"profile": profile, "symmetric": symmetric}
    of = mor_ref.quantize_affine(_BLOCK, grid, **how)
    if profile != "peg":  # which has none
        how["zero_point"] = of.zero_point
    y: NDArray[Any] = mor_ref.quantize_affine(_X, grid, **how, scale=of.scale).y
    return y
