"""The distance of differing sums from the threshold of a decision: of means, and of a policy."""

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.exact.errors import SUMS, ErrorSum
from mor_ref.metrics.thresholds import is_by_tensor
from mor_ref.operations.bits import numbers_of
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.operation import Compared
from mor_ref.operations.parameters import as_cut
from mor_ref.operations.shapes import spread_to_numbers
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.recipes import as_policy


def margin_of_policy(
    parameters: Parameters,
    arrays: Arrays,
    compared: Mapping[str, Compared],
    differing: Collection[str],
) -> Fraction | None:
    """Return the largest margin of a policy; None if an output differs without its choice."""
    policy = as_policy(parameters["policy"])
    is_close = all(
        field_name in ("choice", "output") or field_name.endswith(".sum")
        for field_name in differing
    )
    if policy.asks_by_unit:
        return None  # a metric reads numbers of units, and fields have no turning point of it
    if not is_close or "choice" not in compared or not _needed(policy) <= {*arrays}:
        return None  # sums alone say nothing of decisions
    choice = compared["choice"]
    if "output" in differing:
        cut = partition(arrays["x"].shape, as_cut(parameters["block"]))
        unit = cut.block if policy.unit == "block" else arrays["x"].shape
        if _is_off_elsewhere(compared["output"], choice, unit):
            return None
    margins = [
        margin_of_means(compared[name], arrays[f"{name.removesuffix('.sum')}.nonzero"])
        for name in differing
        if name.endswith(".sum")
    ]
    for place in np.argwhere(choice.differs):
        at = tuple(place.tolist())
        margins.append(_margin_of_unit(policy, arrays, at, int(choice.actual[at])))
    return largest(margins)


def _needed(policy: Policy) -> set[str]:
    """Return the choice of a policy, and the fields that it depends on."""
    sums = {f"{representation.name}.{field}" for representation in policy.tried for field in SUMS}
    return {"choice", "amax", "amin", *sums}


def margin_of_means(sums: Compared, counts: NDArray[Any]) -> Fraction | None:
    """Return the largest difference of two means, divided by the least threshold of a policy."""
    arrays = [array.ravel().tolist() for array in (sums.actual, sums.expected, counts)]
    limit = _least_limit()
    return max(abs(Fraction(a - b, max(n, 1) * limit)) for a, b, n in zip(*arrays, strict=True))


def _least_limit() -> int:
    """Return the least limit of a mean, in units of 2^-23: no decision turns on a smaller one."""
    metrics = (rung.metric for policy in POLICIES.values() for rung in policy.ladder)
    limits = (metric.limit for metric in metrics if not is_by_tensor(metric))
    return min(limit for limit in limits if limit is not None)


def _is_off_elsewhere(output: Compared, choice: Compared, unit: tuple[int, ...]) -> bool:
    """Return whether an output differs in a unit whose choice does not."""
    same = spread_to_numbers(~choice.differs, unit, output.differs.shape)
    return bool((output.differs & same).any())


def _margin_of_unit(
    policy: Policy, arrays: Arrays, unit: tuple[int, ...], choice: int
) -> Fraction | None:
    """Return the largest margin of the decisions that led a unit to another choice.

    No decisions lead beyond the ladder.
    """
    if choice > len(policy.ladder):
        return None
    errors = {
        representation.name: ErrorSum(
            *(int(arrays[f"{representation.name}.{field}"][unit]) for field in SUMS)
        )
        for representation in policy.tried
    }
    expected = [_decision(rung, errors, arrays, unit) for rung in policy.ladder[: choice + 1]]
    margins = [
        distance for k, (accepts, distance) in enumerate(expected) if accepts != (k == choice)
    ]
    return largest(margins) if margins else None


def largest(margins: list[Fraction | None]) -> Fraction | None:
    """Return the largest of some margins, 0 if there are none; None if one of them is None."""
    known = [margin for margin in margins if margin is not None]
    return max(known, default=Fraction(0)) if len(known) == len(margins) else None


def _decision(
    rung: Rung, errors: Mapping[str, ErrorSum], arrays: Arrays, unit: tuple[int, ...]
) -> tuple[bool, Fraction | None]:
    """Return whether a rung accepts a unit, and its distance from a threshold, if any."""
    error, metric = errors[rung.name], rung.metric
    if error.nonfinite:
        return False, None
    amax, amin = (numbers_of(arrays[name][unit], "f32")[0] for name in ("amax", "amin"))
    turn = metric.turning_point(error, errors)
    return rung.accepts(error, errors, amax, amin), distance(error.sum, turn)


def distance(total: int, threshold: int | None) -> Fraction | None:
    """Return the relative distance of a sum from a threshold, if there is one."""
    return None if threshold is None else Fraction(abs(total - threshold), max(threshold, 1))
