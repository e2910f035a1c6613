"""Certainty: deviations explain if they have the bits of the candidate wherever they are tried."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model, Together

_MANY = 4  # deviations: with more, it pays to see first which steps are taken


class Cases(NamedTuple):
    """The cases that deviations are tried on.

    `turns` differ, and come in an order that soon excludes a wrong explanation. All of them are
    tried. Of the `matching` cases, `tried` are those for each deviation, and `known` are tried if
    the suite is known to expose the deviation there. All are tried if deviations are left that
    the others do not distinguish.
    """

    turns: list[Sample]
    matching: list[Sample]
    tried: list[Sample]
    known: list[Sample]


class Certainty:
    """The deviations of a suite that explain all mismatches: for certain, or as leads.

    Leads would change a case that matches, so they explain nothing for certain. `witnesses` are
    the cases in which the suite exposes deviations.
    """

    def __init__(
        self,
        model: Model,
        suite: str,
        cases: Cases,
        witnesses: Mapping[str, tuple[str, str]],
    ) -> None:
        self._model, self._suite, self._cases = model, suite, cases
        self._witnesses = witnesses
        self.leads: dict[Together, None] = {}

    def certain(self, candidates: Sequence[Together]) -> list[Together]:
        """Return the deviations that have the bits of the candidate in all cases, also in matches.

        Others that explain all mismatches become leads.
        """
        found = self.surviving(candidates, self._cases.turns)
        certain = [those for those in found if not self.spared(those)]
        if len(certain) > 1:
            certain = self.surviving(certain, self._cases.matching)
        self.leads |= {those: None for those in found if those not in certain}
        return certain

    def spared(self, those: Together) -> tuple[str, ...]:
        """Return the first of some matching cases that these deviations would change."""
        names = {self._witnesses.get(deviation.name, ("", ""))[0] for deviation in those}
        first = [one for one in self._cases.known if one.question.name in names]
        for sample in (*first, *self._cases.tried):
            if not self._model.run(those, sample).score.is_whole:
                return (f"case {sample.question.name} of {self._suite}",)
        return ()

    def surviving(self, candidates: Sequence[Together], samples: list[Sample]) -> list[Together]:
        """Return the deviations that reproduce the values of the candidate in all these samples."""
        left = list(candidates)
        for sample in samples:
            if len(left) > _MANY:
                self._model.run((), sample)
            left = [those for those in left if self._model.run(those, sample).score.is_whole]
        return left
