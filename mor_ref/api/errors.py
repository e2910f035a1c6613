"""Error sums: the public record."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.records import Record
from mor_ref.tracing import untraced

_ULP_OF_ONE = 2.0**-23


@dataclass(frozen=True, eq=False)
class ErrorSums(Record):
    """The relative errors of units, in integers: add them in any order, the bits are the same.

    `sum` is the sum of r * 2^23 over the finite elements that are not zero, and `nonzero` counts
    these. `nonfinite` counts the elements that are not finite, or would not be after quantization.
    """

    sum: NDArray[np.uint64]
    nonzero: NDArray[np.uint64]
    nonfinite: NDArray[np.uint64]

    @property
    @public
    def mean_relative_error(self) -> NDArray[np.float64]:
        """The mean of each unit as a float, 0 if nothing counts; decisions use the integers."""
        return self.sum / np.maximum(self.nonzero, 1) * _ULP_OF_ONE

    @property
    @public
    def overall(self) -> float:
        """The mean relative error over all units."""
        counted = int(self.nonzero.sum())
        return int(self.sum.sum()) / counted * _ULP_OF_ONE if counted else 0.0

    @untraced
    def __repr__(self) -> str:
        units = "x".join(map(str, self.sum.shape))
        lost = int(self.nonfinite.sum())
        return (
            f"<{units} error sums, mean relative error {percent(self.overall)}, {lost} non-finite>"
        )


def error_sums(errors: NDArray[np.uint64]) -> ErrorSums:
    """Return the record of sums that the engine has along the last axis."""
    total, nonzero, lost = errors[..., 0], errors[..., 1], errors[..., 2]
    if errors.size == errors.shape[-1]:  # of one unit: they lie in order
        return ErrorSums(total, nonzero, lost)
    return ErrorSums(*map(np.ascontiguousarray, (total, nonzero, lost)))


def percent(share: float) -> str:
    """Return a share as text: three significant digits, and 100 only if it is all."""
    digits = 3 if share >= 1 or share < 0.9995 else 6
    return f"{100 * share:.{digits}g} %"
