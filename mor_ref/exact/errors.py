"""Relative errors, and their sums."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import NamedTuple, Protocol

from mor_ref.exact.arithmetic import bits_of, difference, quotient, total
from mor_ref.exact.step import step

# The smallest magnitude that bfloat16 rounds to infinity, of the bits 0x7F7F8000.
LEAST_LOST = math.ldexp(0xFF8000, 104)


class ErrorTerm(NamedTuple):
    """The relative error of one number: d = |x - y|, r = d / |x| up to 1, and u = r * 2^23."""

    d: float
    r: float
    u: int


@dataclass(frozen=True)
class ErrorSum:
    """The errors of a unit, as integers, which any order of summation leaves the same."""

    sum: int = 0
    nonzero: int = 0
    nonfinite: int = 0

    def __add__(self, other: "ErrorSum") -> "ErrorSum":
        return ErrorSum(
            self.sum + other.sum,
            self.nonzero + other.nonzero,
            self.nonfinite + other.nonfinite,
        )


class HasSums(Protocol):
    """The error sums of a unit, among other things or alone."""

    @property
    def sum(self) -> int:
        """The sum of u (ERR-002)."""

    @property
    def nonzero(self) -> int:
        """How many elements count."""

    @property
    def nonfinite(self) -> int:
        """How many elements are lost (ERR-003)."""


SUMS = tuple(field.name for field in fields(ErrorSum))


@step
def error_term(x: float, y: float) -> ErrorTerm:
    """Return the error of a finite x that is not zero (ERR-001)."""
    d = abs(difference(x, y))
    r = 1.0 if math.isnan(d) else min(1.0, quotient(d, abs(x)))
    return ErrorTerm(d, r, error_units(r))


@step
def error_units(r: float) -> int:
    """Return a relative error in units of 2^-23, ties to even (ERR-001)."""
    return bits_of(total(1.0, r)) - bits_of(1.0)


@step
def error_sum(pairs: Iterable[tuple[float, float]]) -> ErrorSum:
    """Return the error sums of pairs of x and y (ERR-002, ERR-003, ERR-004)."""
    units = nonzero = nonfinite = 0
    for x, y in pairs:
        nonfinite += is_lost(x, y)
        if math.isfinite(x) and x != 0:
            nonzero += 1
            units += error_term(x, y).u
    return ErrorSum(units, nonzero, nonfinite)


def is_lost(x: float, y: float) -> bool:
    """Return whether x is not finite, or y becomes infinite in bfloat16 (ERR-003)."""
    return not (math.isfinite(x) and abs(y) < LEAST_LOST)


# ---------------------------------------------------------------------- squares

UNIT_OF_SQUARES = Fraction(1, 1 << 298)  # the square of the smallest binary32 number


@dataclass(frozen=True)
class Squares:
    """Signal and noise in units of 2^-298, the number of elements, and the largest error."""

    signal: int
    noise: int
    measured: int
    largest: float


def squares(pairs: Iterable[tuple[float, float]]) -> Squares:
    """Return the sums of squares of pairs of x and y (ERR-006), and the largest error (ERR-007)."""
    elements = list(pairs)
    numbers = [x for x, _ in elements if math.isfinite(x)]
    errors = [
        d for x, y in elements if math.isfinite(x) and math.isfinite(d := absolute_error(x, y))
    ]
    return Squares(
        sum(square(x) for x in numbers),
        sum(square(d) for d in errors),
        len(errors),
        max(errors, default=0.0),
    )


@step
def absolute_error(x: float, y: float) -> float:
    """Return d (ERR-001)."""
    return abs(difference(x, y))


@step
def square(v: float) -> int:
    """Return the square of a binary32 number, in units of 2^-298 (ERR-006)."""
    return int(Fraction(v) ** 2 / UNIT_OF_SQUARES)


@step
def is_flushed(x: float, y: float) -> bool:
    """Return whether a finite number became zero (ERR-007)."""
    return math.isfinite(x) and x != 0 and y == 0


def sqnr(signal: int, noise: int) -> float:
    """Return the ratio in decibels (ERR-007)."""
    return 10 * math.log10(Fraction(signal, noise)) if signal and noise else math.inf
