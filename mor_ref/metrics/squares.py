"""Metrics of squared errors: relative Frobenius error, SQNR and cosine, and the largest by row."""

from abc import abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from mor_ref.metrics.thresholds import ByTensor, Threshold, WithThreshold, as_fraction
from mor_ref.processor_modes import in_usual_modes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mor_ref.metrics.unit import Unit

_MOST_DECIBELS = 200
_DIGITS = Context(prec=120)
_UP_TO_1 = (0, 1, "a number above 0 and up to 1, such as 0.1")


class OfSums(WithThreshold):
    """A metric that compares the sums of a unit (MOR-009), each side times an integer."""

    @property
    @abstractmethod
    def factors(self) -> tuple[int, int]:
        """The integers: of the side with the errors, and of the side with the numbers."""


@dataclass(frozen=True)
class RelativeFrobenius(OfSums):
    """Accepts a unit whose relative Frobenius error is below a threshold (MOR-010).

    The error is the root of noise / signal: the Frobenius norm of x - y over that of x.

    >>> RelativeFrobenius({"*": 0.05, "gradient": "0.10"}).value
    0.05
    """

    threshold: Threshold | ByTensor
    name = "relative_frobenius"
    rule = "MOR-010"
    bounds = _UP_TO_1

    @cached_property
    def limit_of_squares(self) -> Fraction:
        """The square of the threshold, below which noise / signal has to be."""
        return as_fraction(self.written) ** 2

    @property
    def factors(self) -> tuple[int, int]:
        """The denominator and the numerator of the square of the threshold."""
        return self.limit_of_squares.denominator, self.limit_of_squares.numerator

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the error is below the threshold (MOR-010)."""
        from mor_ref.exact.metrics import is_near

        del errors, amax, amin
        return is_near(own.sums, self.limit_of_squares)

    @property
    def question(self) -> tuple[str, ...]:
        """The threshold."""
        return (f"and noise < {self.threshold}² · signal ?",)


@dataclass(frozen=True)
class Sqnr(OfSums):
    """Accepts a unit whose SQNR is at least a threshold in decibels (MOR-011).

    >>> Sqnr(20).limit_of_ratio / 2**23
    100.0
    """

    threshold: Threshold | ByTensor
    name = "sqnr"
    rule = "MOR-011"
    bounds = (0, _MOST_DECIBELS, "decibels above 0 and up to 200, such as 20")

    @cached_property
    @in_usual_modes
    def limit_of_ratio(self) -> int:
        """The ratio of signal and noise at the threshold, times 2^23, to the nearest integer."""
        bels = as_fraction(self.written) / 10
        exponent = _DIGITS.divide(Decimal(bels.numerator), Decimal(bels.denominator))
        ratio = _DIGITS.multiply(_DIGITS.power(Decimal(10), exponent), Decimal(1 << 23))
        return int(ratio.to_integral_value(context=_DIGITS))

    @property
    def factors(self) -> tuple[int, int]:
        """R and 2^23."""
        return self.limit_of_ratio, 1 << 23

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the ratio is at least the threshold (MOR-011)."""
        from mor_ref.exact.metrics import is_loud

        del errors, amax, amin
        return is_loud(own.sums, self.limit_of_ratio)

    @property
    def question(self) -> tuple[str, ...]:
        """The threshold."""
        return (f"and SQNR ≥ {self.threshold} dB ?",)


@dataclass(frozen=True)
class Cosine(OfSums):
    """Accepts a unit with a cosine between x and y of at least a threshold (MOR-012).

    >>> Cosine("0.995").value
    0.995
    """

    threshold: Threshold | ByTensor
    name = "cosine"
    rule = "MOR-012"
    bounds = _UP_TO_1

    @property
    def factors(self) -> tuple[int, int]:
        """The squares of the denominator and of the numerator of the threshold."""
        limit = as_fraction(self.written) ** 2
        return limit.denominator, limit.numerator

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the cosine is at least the threshold (MOR-012)."""
        from mor_ref.exact.metrics import is_along

        del errors, amax, amin
        return is_along(own.sums, as_fraction(self.written))

    @property
    def question(self) -> tuple[str, ...]:
        """The threshold."""
        return (f"and cos(x, y) ≥ {self.threshold} ?",)


@dataclass(frozen=True)
class LargestByRow(OfSums):
    """Accepts a unit if in each row the largest error is below a part of the amax (MOR-013).

    >>> LargestByRow(0.05).bounds
    (0, 1, 'a number above 0 and up to 1, such as 0.1')
    """

    threshold: Threshold | ByTensor
    name = "largest_by_row"
    rule = "MOR-013"
    bounds = _UP_TO_1

    @property
    def factors(self) -> tuple[int, int]:
        """The denominator and the numerator of the threshold."""
        limit = as_fraction(self.written)
        return limit.denominator, limit.numerator

    def accepts(self, own: "Unit", errors: "Mapping[str, Unit]", amax: float, amin: float) -> bool:
        """Return whether the largest error of each row is below its part of the amax (MOR-013)."""
        del errors, amax, amin
        return own.has_small_errors(as_fraction(self.written))

    @property
    def question(self) -> tuple[str, ...]:
        """The threshold."""
        return ("and, in each row,", f"largest d < {self.threshold} · amax ?")


METRICS_OF_SUMS: "dict[str, type[RelativeFrobenius | Sqnr | Cosine | LargestByRow]]" = {
    metric.name: metric for metric in (RelativeFrobenius, Sqnr, Cosine, LargestByRow)
}
