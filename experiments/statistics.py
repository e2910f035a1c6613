"""Paired differences, intervals and tests, as README.md fixed them before the first result."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mor_ref.analysis.statistics import LEVEL, Sample, t_quantile, t_share

MARGIN = 0.5  # percent, as the paper has it


@dataclass(frozen=True)
class Differences(Sample):
    """The differences of pairs, in percent, of at least two pairs; `margin` is for the test."""

    margin: float = MARGIN

    @property
    def upper_bound(self) -> float:
        """The one-sided 95 % bound: the test at one recipe compares it with the margin."""
        return self.mean + t_quantile(1 - LEVEL, len(self.values) - 1) * self.error

    @property
    def smallest_seen(self) -> float:
        """The half width of the interval: a smaller mean difference cannot be seen."""
        return self.interval[1] - self.mean

    @property
    def has_diverged(self) -> bool:
        """Whether a run has a loss that is not finite."""
        return not all(map(math.isfinite, self.values))

    @property
    def p_value(self) -> float:
        """The p-value of a mean difference of at least the margin, by the paired t test."""
        if self.has_diverged:
            return 1.0
        if self.error == 0:
            return float(self.mean >= self.margin)
        return t_share((self.mean - self.margin) / self.error, len(self.values) - 1)


def differences(losses: Mapping[int, float], baseline: Mapping[int, float]) -> Differences:
    """Return the differences to the baseline, in percent, of the seeds that both have."""
    seeds = sorted(losses.keys() & baseline.keys())
    if len(seeds) < 2:
        raise ValueError(
            f"losses and baseline share {len(seeds)} seeds; run two or more seeds of both"
        )
    return Differences(
        tuple(100 * (losses[seed] - baseline[seed]) / baseline[seed] for seed in seeds)
    )


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return the p-values of a family, adjusted by Holm's method."""
    adjusted, highest = {}, 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[name]))
        adjusted[name] = highest
    return adjusted


def verdict(found: Differences, adjusted: float) -> str:
    """Return the answer for a recipe, by its adjusted p-value and its interval."""
    if found.has_diverged:
        return "diverged"
    if adjusted < LEVEL:
        return f"within {found.margin:g} %"
    is_above = found.interval[0] > found.margin
    return f"above {found.margin:g} %" if is_above else "too few pairs to say"


def is_real(found: Differences, noise: Differences) -> bool:
    """Return whether a difference of two recipes is more than noise makes (README.md, 7)."""
    low, high = found.interval
    return (low > 0 or high < 0) and (high < noise.interval[0] or low > noise.interval[1])


def last_tenth(losses: Sequence[float]) -> float:
    """Return the primary figure of a run: the mean loss of the last tenth of its steps."""
    last = losses[-max(len(losses) // 10, 1) :]
    return math.fsum(last) / len(last)
