"""Metrics: whether a unit that loses nothing is accepted."""

from fractions import Fraction

from mor_ref.definitions.format import Format
from mor_ref.exact.errors import ErrorSum
from mor_ref.exact.step import step


@step
def mean_is_below(error: ErrorSum, limit: int) -> bool:
    """Return whether the mean is below a threshold; `limit` is its T (MOR-002)."""
    return error.nonzero == 0 or error.sum < limit * error.nonzero


@step
def is_not_worse(error: ErrorSum, yardstick: ErrorSum) -> bool:
    """Return whether the error sum is at most that of the yardstick (MOR-003)."""
    return error.sum <= yardstick.sum


@step
def fits_range(error: ErrorSum, amax: float, amin: float, fmt: Format) -> bool:
    """Return whether magnitudes span no more than the normal numbers of a format (MOR-004)."""
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    return error.nonzero == 0 or Fraction(amax) <= Fraction(amin) * ratio
