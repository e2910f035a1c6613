"""How far a candidate conforms: to the bit (CON-002), or in all decisions that are not close.

And of how much: nobody is called bit-exact for a part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.exact.errors import SUMS, ErrorSum
from mor_ref.golden.model.suite import Case
from mor_ref.operations.bits import numbers_of
from mor_ref.operations.decide import questions
from mor_ref.operations.parameters import as_cut
from mor_ref.policies import POLICIES, Policy, Rung, as_policy
from mor_ref.verify.comparing.compare import Comparison
from mor_ref.verify.comparing.coverage import Coverage, Entry, Given, asked_of, given_in, given_of
from mor_ref.verify.comparing.domain import said_of_left_out
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.counts import counted

Level = Literal["bit-exact", "partial", "allowed", "open", "decisions", "not", "not run"]
WIDEST_MARGIN = Fraction(1, 100)


@dataclass(frozen=True)
class Conformance:
    """The level of conformance: bit-exact in all fields or in the given ones, or less.

    The level for kernels that sum in floating point has a `margin`: decisions are equal if the sum
    is further than that from the threshold. The margin is the largest relative distance from the
    threshold at which a decision differs, or would differ with the given sums. `allowed` says where
    bits differ that a user allowed to differ, and `left_out` how many inputs were not compared.
    `open` counts entries whose bits the candidate does not define.
    `given` is the given share of all that was `asked`, and `suites` the number of suites.
    """

    level: Level
    given: Coverage
    asked: Coverage
    suites: int
    margin: float = 0.0
    allowed: str = ""
    left_out: str = ""
    open: int = 0

    def __str__(self) -> str:
        return f"{self._words}; {self.left_out}" if self.left_out else self._words

    @property
    def _words(self) -> str:
        match self.level:
            case "bit-exact":
                return f"bit-exact in all that was asked: {self._extent}"
            case "partial":
                return f"bit-exact in what was given: {self._extent}; the rest was not shown"
            case "allowed":
                return f"not bit-exact: {self.allowed}; all else is equal in {self._extent}"
            case "open":
                return (
                    f"not bit-exact: the bits of {counted(self.open, 'entry')} are not defined; "
                    f"all is equal in {self._extent}"
                )
            case "decisions":
                return (
                    "not bit-exact, but every decision is equal whose sum is further than "
                    f"{self.margin:.2g} of the threshold from it; only sums, and fields "
                    f"that follow from decisions, differ; given were {self._extent}"
                )
            case "not":
                return "not conformant"
            case "not run":
                return "nothing was compared"

    @property
    def _extent(self) -> str:
        """How much was given of how much, and how many suites there are."""
        there = "" if self.asked.suites == self.suites else f" ({self.suites:,} are there)"
        return f"{self.given.of(self.asked)}{there}"


@dataclass(frozen=True)
class Standing:
    """How far the answers to a suite conform, or to a part of it.

    `margin` is 0 if nothing differs, and None if more differs than close decisions. `nans` and
    `zeros` count the bits that were allowed to differ, and `open` entries without defined bits.
    """

    given: Given
    is_exact: bool
    margin: Fraction | None
    nans: int
    zeros: int
    operation: str
    domain: str
    left_out: int
    open: int

    def __add__(self, more: "Standing") -> "Standing":
        """Return how far the answers to two parts of a suite conform."""
        margins = (self.margin, more.margin)
        return replace(
            self,
            given=self.given + more.given,
            is_exact=self.is_exact and more.is_exact,
            margin=_largest([*margins]),
            nans=self.nans + more.nans,
            zeros=self.zeros + more.zeros,
            left_out=self.left_out + more.left_out,
            open=self.open + more.open,
        )

    @property
    def with_more_missing(self) -> "Standing":
        """The standing if an answer lacks a field that the answers to another part have."""
        return replace(self, is_exact=False, margin=None)


def standing_of(evidence: Evidence) -> Standing:
    """Return how far answers conform."""
    differing = {case.name: _differing(evidence, case) for case in evidence.cases}
    margins = (
        _margin(evidence, case, differing[case.name])
        for case in evidence.cases
        if differing[case.name]
    )
    compared = [one for of_case in evidence.comparisons.values() for one in of_case]
    return Standing(
        given_in(evidence),
        not any(differing.values()),
        _until_far(margins),
        sum(one.allowed_nans for one in compared),
        sum(one.allowed_zeros for one in compared),
        evidence.operation,
        evidence.domain,
        evidence.left_out,
        evidence.remarks.open,
    )


def conformance(
    found: Sequence[Standing], entries: Mapping[str, Entry], suites: int
) -> Conformance:
    """Return how far the answers conform to the suites of these entries, of `suites` in all."""
    given, asked = given_of((one.given for one in found), entries), asked_of(entries)
    level, margin = _level(found) if given.cases else ("not run", Fraction(0))
    left_out = said_of_left_out(found)
    if level == "bit-exact" and (given != asked or left_out):
        level = "partial"
    allowed = _allowed(found)
    if allowed and level in ("bit-exact", "partial"):
        level = "allowed"
    undefined = sum(one.open for one in found)
    if undefined and level in ("bit-exact", "partial", "allowed"):
        level = "open"
    return Conformance(level, given, asked, suites, float(margin), allowed, left_out, undefined)


def _allowed(found: Sequence[Standing]) -> str:
    """Say where bits differ that were allowed to; nothing if none differs."""
    nans, zeros = sum(one.nans for one in found), sum(one.zeros for one in found)
    if not nans and not zeros:
        return ""
    return (
        f"{counted(nans, 'NaN')} with other bits and {counted(zeros, 'zero')} of the other sign "
        "were allowed"
    )


def _level(found: Sequence[Standing]) -> tuple[Level, Fraction]:
    margin = _largest([one.margin for one in found])
    if margin is None:
        return "not", Fraction(0)
    return "bit-exact" if all(one.is_exact for one in found) else "decisions", margin


def _until_far(margins: Iterable[Fraction | None]) -> Fraction | None:
    """Return the largest of some margins; None at the first that is None or too wide."""
    largest = Fraction(0)
    for margin in margins:
        if margin is None or margin > WIDEST_MARGIN:
            return None
        largest = max(largest, margin)
    return largest


def _differing(evidence: Evidence, case: Case) -> set[str]:
    """Return the fields of a case that differ; "nothing" for one that cannot be compared."""
    found = evidence.comparisons.get(case.name, ())
    differing = {one.view for one in found if one.count}
    return {*differing, "nothing"} if any(one.problem is not None for one in found) else differing


def _margin(evidence: Evidence, case: Case, differing: set[str]) -> Fraction | None:
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
    return _largest(
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
    return _largest(margins)


def _is_off_elsewhere(policy: Policy, case: Case, output: Comparison, choice: Comparison) -> bool:
    """Return whether an output differs in a unit whose choice does not."""
    cut = partition(case.arrays["x"].shape, as_cut(case.parameters["block"]))
    rows, columns = cut.block if policy.unit == "block" else (cut.rows, cut.columns)
    same = np.repeat(np.repeat(~choice.differs, rows, axis=0), columns, axis=1)
    return bool((output.differs & same[: cut.rows, : cut.columns]).any())


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
    return _largest(margins) if margins else None


def _largest(margins: list[Fraction | None]) -> Fraction | None:
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
