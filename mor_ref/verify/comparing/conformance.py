"""How far a candidate conforms: to the bit (CON-002), or in all decisions that are not close.

And of how much: nobody is called bit-exact for a part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from mor_ref.counts_in_words import counted
from mor_ref.golden.model.suite import Case
from mor_ref.operations import OPERATIONS
from mor_ref.operations.margins import largest, margin_of_means
from mor_ref.verify.comparing.coverage import (
    Coverage,
    Entry,
    SuiteAnswers,
    asked_of,
    given_in,
    given_of,
)
from mor_ref.verify.comparing.domain import said_of_left_out
from mor_ref.verify.comparing.evidence import Evidence

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

    def __bool__(self) -> bool:
        return self.level == "bit-exact"

    def __str__(self) -> str:
        return f"{self._words}; {self.left_out}" if self.left_out else self._words

    @property
    def _words(self) -> str:
        match self.level:
            case "bit-exact":
                return f"bit-exact in all that was asked: {self._extent}"
            case "partial":
                return f"bit-exact in the given part: {self._extent}; the rest was not shown"
            case "allowed":
                return f"not bit-exact: {self.allowed}; all else is equal in {self._extent}"
            case "open":
                return (
                    f"not bit-exact: the bits of {counted(self.open, 'entry')} are not defined; "
                    f"all is equal in {self._extent}"
                )
            case "decisions":
                return (
                    f"not bit-exact, but all decisions agree except those within {self.margin:.2g} "
                    "(relative) of their threshold; only sums and fields that follow from "
                    f"decisions differ; compared: {self._extent}"
                )
            case "not":
                return "not conformant"
            case "not run":
                return "nothing was compared"

    @property
    def _extent(self) -> str:
        """How much was given of how much, and how many suites there are."""
        there = "" if self.asked.suites == self.suites else f" (of {self.suites:,})"
        return f"{self.given.of(self.asked)}{there}"


@dataclass(frozen=True)
class Standing:
    """How far the answers to a suite conform, or to a part of it.

    `margin` is 0 if nothing differs, and None if more differs than close decisions. `nans`,
    `zeros` and `ties` count the bits that were allowed to differ, and `open` entries without
    defined bits.
    """

    given: SuiteAnswers
    is_exact: bool
    margin: Fraction | None
    nans: int
    zeros: int
    ties: int
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
            margin=largest([*margins]),
            nans=self.nans + more.nans,
            zeros=self.zeros + more.zeros,
            ties=self.ties + more.ties,
            left_out=self.left_out + more.left_out,
            open=self.open + more.open,
        )

    @property
    def not_conformant(self) -> "Standing":
        """The standing if more is wrong than the comparisons show, such as a missing field."""
        return replace(self, is_exact=False, margin=None)


def standing_of(evidence: Evidence) -> Standing:
    """Return how far answers conform."""
    differing = {case.name: _differing(evidence, case) for case in evidence.cases}
    margins = (
        _margin_of(evidence, case, differing[case.name])
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
        sum(one.allowed_ties for one in compared),
        evidence.operation,
        evidence.domain,
        evidence.left_out,
        evidence.remarks.open,
    )


def _margin_of(evidence: Evidence, case: Case, differing: set[str]) -> Fraction | None:
    """Return the largest margin of a decision that differs; None if something else differs."""
    compared = evidence.compared(case.name)
    if differing == {"sum"} and "nonzero" in case.arrays:
        return margin_of_means(compared["sum"], case.arrays["nonzero"])
    operation = OPERATIONS.get(evidence.operation)
    if operation is None or operation.margin is None:
        return None
    return operation.margin(case.parameters, case.arrays, compared, differing)


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
    said = []
    if nans or zeros:
        said.append(
            f"{counted(nans, 'NaN')} with other bits and {counted(zeros, 'zero')} of the other "
            "sign were allowed"
        )
    if ties := sum(one.ties for one in found):
        said.append(ties_allowed(ties))
    return ", and ".join(said)


def ties_allowed(ties: int) -> str:
    """Say how many entries next to a tie are allowed."""
    return f"{counted(ties, 'entry')} next to a tie {'is' if ties == 1 else 'are'} allowed"


def _level(found: Sequence[Standing]) -> tuple[Level, Fraction]:
    margin = largest([one.margin for one in found])
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
