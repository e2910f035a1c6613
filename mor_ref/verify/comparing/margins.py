"""How far from the threshold of a decision sums are that differ."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.exact.errors import SUMS, ErrorSum
from mor_ref.golden.model.suite import Case
from mor_ref.operations.bits import numbers_of
from mor_ref.operations.decide import questions
from mor_ref.operations.parameters import as_cut
from mor_ref.operations.shapes import of_numbers
from mor_ref.policies import POLICIES, Policy, Rung, as_policy
from mor_ref.verify.comparing.compare import Comparison
from mor_ref.verify.comparing.evidence import Evidence


def margin_of(evidence: Evidence, case: Case, differing: set[str]) -> Fraction | None:
    """Return the largest margin of a decision that differs; None if something else differs."""
    compared = evidence.compared(case.name)
    if evidence.operation == "decide" and differing == {"accepted"}:
        return _of_single_decisions(compared["accepted"], case)
    if differing == {"sum"} and "nonzero" in case.arrays:
        return _of_means(compared["sum"], case.arrays["nonzero"])
    is_close = evidence.operation == "mor" and all(
        name in ("choice", "output") or name.endswith(".sum") for name in differing
    )
    return _of_policy(compared, case, differing) if is_close and _has_sums(case) else None


def _has_sums(case: Case) -> bool:
    """Return whether a case of a policy has the choice, and all that the choice depends on."""
    policy = as_policy(case.parameters["policy"])
    sums = {f"{one.name}.{field}" for one in policy.tried for field in SUMS}
    return {"choice", "amax", "amin", *sums} <= set(case.arrays)


def _of_means(sums: Comparison, counts: NDArray[Any]) -> Fraction:
    """Return the largest difference of two means, divided by the least threshold of a policy."""
    arrays = [array.ravel().tolist() for array in (sums.actual, sums.expected, counts)]
    limit = _least_limit()
    return max(abs(Fraction(a - b, max(n, 1) * limit)) for a, b, n in zip(*arrays, strict=True))


def _least_limit() -> int:
    """Return the least limit of a mean, in units of 2^-23: no decision turns on a smaller one."""
    limits = (rung.metric.limit for policy in POLICIES.values() for rung in policy.ladder)
    return min(limit for limit in limits if limit is not None)


def _of_single_decisions(accepted: Comparison, case: Case) -> Fraction | None:
    arrays = {name: array[accepted.differs] for name, array in case.arrays.items()}
    return largest(
        [
            None if own.nonfinite else _distance(own.sum, metric.turning_point(own, errors))
            for metric, own, errors, *_ in questions(case.parameters, arrays)
        ]
    )


def _of_policy(
    compared: Mapping[str, Comparison], case: Case, differing: set[str]
) -> Fraction | None:
    """Return the largest margin of a policy; None if an output differs without its choice."""
    if "choice" not in compared:
        return None  # sums alone say nothing of decisions
    policy, choice = as_policy(case.parameters["policy"]), compared["choice"]
    if "output" in differing and _is_off_elsewhere(policy, case, compared["output"], choice):
        return None
    margins: list[Fraction | None] = [
        _of_means(compared[name], case.arrays[f"{name.removesuffix('.sum')}.nonzero"])
        for name in differing
        if name.endswith(".sum")
    ]
    for place in np.argwhere(choice.differs):
        unit = tuple(place.tolist())
        margins.append(_of_unit(policy, case, unit, int(choice.actual[unit])))
    return largest(margins)


def _is_off_elsewhere(policy: Policy, case: Case, output: Comparison, choice: Comparison) -> bool:
    """Return whether an output differs in a unit whose choice does not."""
    cut = partition(case.arrays["x"].shape, as_cut(case.parameters["block"]))
    shape = cut.rows, cut.columns
    unit = cut.block if policy.unit == "block" else shape
    return bool((output.differs & of_numbers(~choice.differs, unit, shape)).any())


def _of_unit(policy: Policy, case: Case, unit: tuple[int, ...], given: int) -> Fraction | None:
    """Return the largest margin of the decisions that led a unit to another choice.

    No decisions lead beyond the ladder.
    """
    if given > len(policy.ladder):
        return None
    errors = {
        one.name: ErrorSum(*(int(case.arrays[f"{one.name}.{field}"][unit]) for field in SUMS))
        for one in policy.tried
    }
    expected = [_decision(rung, errors, case, unit) for rung in policy.ladder[: given + 1]]
    margins = [
        distance for k, (accepts, distance) in enumerate(expected) if accepts != (k == given)
    ]
    return largest(margins) if margins else None


def largest(margins: list[Fraction | None]) -> Fraction | None:
    """Return the largest of some margins, 0 if there are none; None if one of them is None."""
    known = [margin for margin in margins if margin is not None]
    return max(known, default=Fraction(0)) if len(known) == len(margins) else None


def _decision(
    rung: Rung, errors: Mapping[str, ErrorSum], case: Case, unit: tuple[int, ...]
) -> tuple[bool, Fraction | None]:
    """Return whether a rung accepts a unit, and its distance from a threshold, if any."""
    own, metric = errors[rung.name], rung.metric
    if own.nonfinite:
        return False, None
    amax, amin = (numbers_of(case.arrays[name][unit], "f32")[0] for name in ("amax", "amin"))
    turn = metric.turning_point(own, errors)
    accepts = metric.accepts(own, errors, amax, amin)
    return accepts, _distance(own.sum, turn)


def _distance(found: int, threshold: int | None) -> Fraction | None:
    """Return the relative distance of a sum from a threshold, if there is one."""
    return None if threshold is None else Fraction(abs(found - threshold), max(threshold, 1))
