"""Metrics: whether a unit that loses nothing is accepted."""

from collections.abc import Iterable
from fractions import Fraction

from mor_ref.definitions.format import Format
from mor_ref.definitions.unit_sums import UnitSums
from mor_ref.exact.errors import HasSums
from mor_ref.exact.step import step


@step
def mean_is_below(error: HasSums, limit: int) -> bool:
    """Return whether the mean is below a threshold; `limit` is its T (MOR-002)."""
    return error.nonzero == 0 or error.sum < limit * error.nonzero


@step
def is_not_worse(error: HasSums, yardstick: HasSums) -> bool:
    """Return whether the error sum is at most that of the yardstick (MOR-003)."""
    return error.sum <= yardstick.sum


@step
def fits_range(error: HasSums, amax: float, amin: float, fmt: Format) -> bool:
    """Return whether magnitudes span no more than the normal numbers of a format (MOR-004)."""
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    return error.nonzero == 0 or Fraction(amax) <= Fraction(amin) * ratio


@step
def is_near(sums: UnitSums, limit: Fraction) -> bool:
    """Return whether noise / signal is below the square of a threshold (MOR-010)."""
    return is_measured(sums) and (sums.noise == 0 or sums.noise < limit * sums.signal)


@step
def is_loud(sums: UnitSums, ratio: int) -> bool:
    """Return whether signal / noise is at least R / 2^23; `ratio` is R (MOR-011)."""
    return is_measured(sums) and ratio * sums.noise <= sums.signal << 23


@step
def is_along(sums: UnitSums, limit: Fraction) -> bool:
    """Return whether the cosine between x and y is at least a threshold (MOR-012)."""
    if sums.signal == 0:
        return sums.energy == 0
    return sums.product > 0 and sums.product**2 >= limit**2 * sums.signal * sums.energy


@step
def has_small_errors(rows: Iterable[UnitSums], limit: Fraction) -> bool:
    """Return whether the largest d of each row is below a part of its amax (MOR-013)."""
    return all(
        is_measured(row)
        and (row.largest == 0 or Fraction(row.largest) < limit * Fraction(row.amax))
        for row in rows
    )


@step
def is_measured(sums: UnitSums) -> bool:
    """Return whether the d of each element is finite (MOR-009)."""
    return sums.measured == sums.elements
