"""The exact sums of a unit, or of one of its rows or columns, that metrics compare."""

import math
from dataclasses import dataclass

ULP_OF_ONE = 2.0**-23
WORDS = 20  # of 32 bits, which a sum of squares or products has


@dataclass(frozen=True)
class UnitSums:
    """Integers of some numbers x and their y (MOR-009).

    `signal` is the sum of x^2, `energy` the sum of y^2, `product` the sum of x y, and `noise` the
    sum of d^2 over the `measured` elements, all in units of 2^-298. `largest` is the largest d,
    and `amax` and `amin` the largest and the smallest magnitude of x but zero. `sum` is the sum of
    the relative errors times 2^23 over the `nonzero` elements (ERR-002).

    >>> UnitSums(2, 2, signal=100, noise=1, energy=99, product=99, largest=1.0, amax=8.0).sqnr
    20.0
    """

    elements: int
    measured: int
    signal: int
    noise: int
    energy: int
    product: int
    largest: float
    amax: float
    amin: float = 0.0
    sum: int = 0
    nonzero: int = 0

    @property
    def error(self) -> float:
        """The mean relative error; 0 if every number is 0."""
        return self.sum / max(self.nonzero, 1) * ULP_OF_ONE

    @property
    def relative_frobenius(self) -> float:
        """The root of noise / signal; 0 without noise."""
        if not self.noise:
            return 0.0
        return math.sqrt(self.noise / self.signal) if self.signal else math.inf

    @property
    def sqnr(self) -> float:
        """The ratio of signal and noise in decibels; infinite without noise."""
        if not self.noise:
            return math.inf
        return 10 * math.log10(self.signal / self.noise) if self.signal else -math.inf

    @property
    def cosine(self) -> float:
        """The cosine of the angle between x and y; 1 if both are 0, and 0 if only one is."""
        lengths = self.signal * self.energy
        if not lengths:
            return float(self.signal == self.energy)
        return math.copysign(math.sqrt(self.product**2 / lengths), self.product)
