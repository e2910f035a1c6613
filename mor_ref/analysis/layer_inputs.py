"""Errors of a weight under the inputs of its layer: weighted by them, and those of its output.

They are computed by NumPy in binary64: statistics, and not bits that a rule demands.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.large_tensors import strips_of
from mor_ref.api.border import public
from mor_ref.api.measures import Fills, differences
from mor_ref.arrays import Numbers, let_go
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.mapped_files import in_memory

_AT_ONCE = 1 << 20  # numbers: as binary64 they take eight mebibytes
_LARGEST = float(np.finfo(np.float32).max)  # sums of products of four such numbers are finite


@dataclass(frozen=True)
class InputMeasures:
    """Measures of a weight W that became Y, under inputs X of its layer.

    A row of X is a sample, and a column of X goes with the same column of W. All of them are in
    binary64 and not bit-exact: their last digits depend on the order in which NumPy adds. They
    leave out the numbers that SQNR leaves out: those that are NaN or infinite, or became so.

    With the mean square m_j of column j of X, `weighted_signal` is the sum of m_j * w_ij^2, and
    `weighted_noise` that of m_j * (w_ij - y_ij)^2. `output_signal` is the sum of the squares of
    X W^T, and `output_noise` that of X W^T - X Y^T, both divided by the number of samples. The sums
    of two measures are the measures of both weights. `samples` is 0 if no inputs are given.
    """

    samples: int = 0
    weighted_signal: float = 0.0
    weighted_noise: float = 0.0
    output_signal: float = 0.0
    output_noise: float = 0.0

    def __add__(self, other: "InputMeasures") -> "InputMeasures":
        names = [field.name for field in fields(self)]
        return InputMeasures(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    @public
    def weighted_error(self) -> float:
        """The relative error of W, weighted by m_j: a quotient of roots; NaN without inputs."""
        return self._quotient(self.weighted_noise, self.weighted_signal)

    @property
    @public
    def output_error(self) -> float:
        """The relative error of X W^T: a quotient of Frobenius norms; NaN without inputs."""
        return self._quotient(self.output_noise, self.output_signal)

    def _quotient(self, noise: float, signal: float) -> float:
        if not self.samples:
            return math.nan
        if not signal:
            return math.inf if noise else 0.0
        return math.sqrt(noise / signal)


class LayerInputs(NamedTuple):
    """The inputs of a layer, the mean square of each column, and the signals of its weight."""

    x: Numbers
    mean_squares: NDArray[np.float64]
    signals: InputMeasures

    def noise(self, numbers: Numbers, fills: Fills) -> InputMeasures:
        """Return the noise of some rows of the weight; each of `fills` writes its share of y."""
        weighted, output = _squares(numbers, fills, self.x, self.mean_squares)
        return InputMeasures(weighted_noise=weighted, output_noise=output)


def is_weight(shape: tuple[int, ...]) -> bool:
    """Return whether a tensor has rows and columns, so that it is a weight of a layer."""
    return len(shape) >= 2


def layer_inputs(weight: Numbers, x: Numbers, name: str, weight_name: str) -> LayerInputs:
    """Return the inputs of a layer; refuse those of another one, and those that are not finite."""
    check_shapes(weight.shape, x.shape, name, weight_name)
    samples, columns = rows_and_columns(x.shape)
    sums = np.zeros(columns)
    for rows in _rows_of(x, _AT_ONCE // max(columns, 1)):
        largest = np.abs(rows).max(initial=0.0)
        if not largest <= _LARGEST:
            raise ValueError(
                f"{name} has a number that is NaN, infinite or beyond the range of float32; give "
                "finite inputs"
            )
        sums += (rows * rows).sum(axis=0)
    mean_squares = sums / samples
    signals = [_squares(strip, [], x, mean_squares) for strip in strips_of(weight, 1)]
    weighted, output = map(math.fsum, zip(*signals, strict=True))
    return LayerInputs(
        x,
        mean_squares,
        InputMeasures(samples, weighted_signal=weighted, output_signal=output),
    )


def check_shapes(weight: tuple[int, ...], x: tuple[int, ...], name: str, weight_name: str) -> None:
    """Refuse inputs that are not rows of as many numbers as a weight has columns."""
    if not x or x[-1] != weight[-1] or not math.prod(x[:-1]):
        sides, of_weight = ("x".join(map(str, shape)) or "scalar" for shape in (x, weight))
        raise ValueError(
            f"{name} is {sides}, and {weight_name} is {of_weight}; give samples as rows, with a "
            "column for each column of the weight"
        )


def _squares(
    numbers: Numbers, fills: Fills, x: Numbers, mean_squares: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the squares of w - y weighted by those of x, and the squares of x (w - y)^T."""
    weighted, output = [0.0], [0.0]
    samples, columns = rows_and_columns(x.shape)
    for d in differences(numbers, fills, _AT_ONCE):
        weighted.append(float((d * d).sum(axis=0) @ mean_squares))
        for rows in _rows_of(x, _AT_ONCE // max(columns, len(d), 1)):
            product = rows @ d.T
            output.append(float(np.vdot(product, product)))
        let_go(numbers.bits)
    return math.fsum(weighted), math.fsum(output) / samples


def _rows_of(x: Numbers, count: int) -> Iterator[NDArray[np.float64]]:
    """Yield so many rows of the inputs, or one, as binary64."""
    rows, columns = rows_and_columns(x.shape)
    for first in range(0, rows, max(count, 1)):
        last = min(first + max(count, 1), rows)
        some = in_memory(x.bits[first * columns : last * columns]).view(x.dtype)
        with np.errstate(invalid="ignore"):  # of a NaN, which is refused
            wide = some.astype(np.float64)
        yield wide.reshape(last - first, columns)
    let_go(x.bits)
