"""Means, paired differences and their intervals, by Student's t distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.05  # of intervals and tests
_FAR = 1e7  # no quantile that is asked for is beyond
_HALVINGS = 200


@dataclass(frozen=True)
class Sample:
    """Values of which each stands for one of a kind, such as a tensor or a seed.

    >>> sample = Sample((1.0, 2.0, 4.0))
    >>> [round(end, 2) for end in sample.interval]
    [-1.46, 6.13]
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return math.fsum(self.values) / len(self.values)

    @property
    def deviation(self) -> float:
        """Their standard deviation, with n - 1."""
        mean = self.mean
        squares = math.fsum((value - mean) ** 2 for value in self.values)
        return math.sqrt(squares / (len(self.values) - 1))

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / math.sqrt(len(self.values))

    @property
    def interval(self) -> tuple[float, float]:
        """The two-sided 95 % interval of the mean."""
        half = t_quantile(1 - LEVEL / 2, len(self.values) - 1) * self.error
        return self.mean - half, self.mean + half

    @property
    def has_interval(self) -> bool:
        """Whether there are two values or more, and all are finite."""
        return len(self.values) > 1 and all(map(math.isfinite, self.values))


def differences(values: Sequence[float], others: Sequence[float]) -> Sample:
    """Return the differences of pairs."""
    return Sample(tuple(a - b for a, b in zip(values, others, strict=True)))


def t_share(t: float, freedom: int) -> float:
    """Return the share of Student's t distribution below t, for a whole number of freedom.

    It is a finite sum of powers of a cosine (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    >>> round(t_share(2.776445, 4), 6)
    0.975
    """
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    term, total = (cosine if is_odd else 1.0), 0.0
    for k in range(is_odd, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    central = 2 / math.pi * (angle + sine * total) if is_odd else sine * total
    return (1 + central) / 2


def t_quantile(share: float, freedom: int) -> float:
    """Return the t below which a share of Student's distribution is.

    >>> round(t_quantile(0.975, 9), 4)
    2.2622
    """
    low, high = -_FAR, _FAR
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if t_share(middle, freedom) < share:
            low = middle
        else:
            high = middle
    return high
