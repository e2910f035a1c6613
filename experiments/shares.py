"""Shares of tensors and of blocks by representation, replayed from the recorded integers."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from experiments.results import Arm, Results
from experiments.runs import LOST, Setting, rows
from mor_ref.metrics import MeanRelativeError

THRESHOLD = "0.045"  # the paper's


@dataclass(frozen=True)
class Measured:
    """One operand of one layer in one direction, at one step of one run.

    `found` is the integer mean of its error, or how many blocks took each representation.
    """

    seed: int
    step: int
    layer: str
    operand: str
    found: Any

    @property
    def error(self) -> float:
        """The mean relative error, in percent."""
        return math.inf if self.found == LOST else 100 * self.found / 2**23


Chosen = Callable[[Measured], bool]


def measured_in(arm: Arm, setting: Setting) -> list[Measured]:
    """Return all that an arm measured with a setting."""
    return list(_measured_in(arm, setting))


def _measured_in(arm: Arm, setting: Setting) -> Iterator[Measured]:
    for seed, step, layers, row in arm.measured(setting):
        for (layer, operand, _), found in zip(rows(layers, setting), row, strict=True):
            yield Measured(seed, step, layer, operand, found)


def accepted(threshold: str) -> Chosen:
    """Return whether a tensor is accepted at a threshold, exactly as MoR decides (MOR-002)."""
    limit = MeanRelativeError(threshold).limit
    return lambda one: 0 <= one.found < limit


def share(tensors: Iterable[Measured], threshold: str = THRESHOLD) -> float:
    """Return how many tensors are in E4M3 at a threshold, in percent."""
    is_chosen = accepted(threshold)
    is_accepted = [is_chosen(one) for one in tensors]
    return 100 * sum(is_accepted) / len(is_accepted) if is_accepted else math.nan


def shares_of_seeds(tensors: Iterable[Measured], threshold: str = THRESHOLD) -> list[float]:
    """Return the share of each seed."""
    by_seed: dict[int, list[Measured]] = {}
    for one in tensors:
        by_seed.setdefault(one.seed, []).append(one)
    return [share(of_seed, threshold) for of_seed in by_seed.values()]


def shares_of_blocks(tensors: Iterable[Measured]) -> list[float]:
    """Return how many blocks took each representation, in percent."""
    counts = [sum(column) for column in zip(*(one.found for one in tensors), strict=True)]
    return [100 * count / max(sum(counts), 1) for count in counts]


def early(results: Results) -> Chosen:
    """Return whether a step is in the first fifth of a run."""
    return lambda one: 5 * one.step < results.steps


def late(results: Results) -> Chosen:
    """Return whether a step is in the last fifth of a run."""
    return lambda one: 5 * one.step >= 4 * results.steps
