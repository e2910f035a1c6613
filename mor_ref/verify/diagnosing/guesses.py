"""Guesses: deviations that explain whole fields, or the most mismatches, if none explains all."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from mor_ref.verify.diagnosing.diagnosis_records import Explanation
from mor_ref.verify.diagnosing.explanations import explanation_of, first_left, shares_of
from mor_ref.verify.diagnosing.sample import Sample, few_cases, some_of
from mor_ref.verify.diagnosing.scoring import Model, Score, Together

LEADERS = 4  # deviations that are tried on further cases
_SHARE_OF_ROWS, _SHARE_OF_TENSORS = 1 << 16, 1 << 16  # elements, to judge the share
_MANY_CASES, _PART = 64, 8  # cases; one in 8 shows that a leader is far from the best
_FAR = 2  # so many times less worth is far
_DISTINGUISHING = 4  # unexplained cases, for deviations that are paired
_OF_MATCHING = 1 << 12  # elements of cases that match, which an explanation must not change


class Guesses:
    """Scores of deviations on a sample of the cases of a suite, and the best deviations."""

    def __init__(
        self,
        model: Model,
        alone: Sequence[Together],
        cases: Sequence[Sample],
        differing: list[Sample],
        turns: list[Sample],
        *,
        of_rows: bool,
    ) -> None:
        self._model, self._alone = model, alone
        self._cases, self._of_rows = cases, of_rows
        self._differing, self._turns = differing, turns

    @cached_property
    def some_matching(self) -> list[Sample]:
        """Some cases or rows that match: an explanation must not change them."""
        samples = [one for one in self._cases if not one.mismatches]
        if self._of_rows:
            right = [(e, ~e.differing_rows) for e in self._differing]
            samples = [*samples, *(e.rows(rows) for e, rows in right if rows.any())]
        found = some_of(samples, _OF_MATCHING, of_rows=self._of_rows)
        for sample in found:
            self._model.run((), sample)
        return found

    @cached_property
    def leaders(self) -> list[Together]:
        """The deviations that explain part of a sample, those that explain the most first.

        The others are not tried on cases that match, which are most of the sample.
        """
        some = [those for those in self._alone if any(self.explained(those))]
        return sorted(some, key=lambda one: -self._of_sample(one).worth)

    @cached_property
    def _leaders_in_fields(self) -> list[Together]:
        """The deviations that explain a whole field of a sample, large fields first."""

        def explained(those: Together) -> int:
            changes = self._of_sample(those).changes.values()
            return sum(one.right for one in changes if one.is_whole)

        some = [those for those in self.leaders if explained(those)]
        return sorted(some, key=lambda those: -explained(those))

    @cached_property
    def _few(self) -> list[Sample]:
        """A few cases that differ."""
        found = [*few_cases(self._turns, of_rows=self._of_rows)]
        for sample in found:
            self._model.run((), sample)
        return found

    def distinguishing(self, leader: Together) -> list[Sample]:
        """Return the first cases that a deviation does not explain, or some of their rows."""
        missed = (e for e in self._turns if not self._model.run(leader, e).score.is_whole)
        distinguishing = list(itertools.islice(missed, _DISTINGUISHING))
        if self._of_rows:
            distinguishing = [
                e.some_rows(self._model.rows_missed(leader, e)) for e in distinguishing
            ]
        for sample in distinguishing:
            self._model.run(leader, sample)
        return distinguishing

    def explained(self, those: Together) -> list[int]:
        """Return, for each of a few cases, the mismatches that a deviation explains, as bits."""
        return [self._model.run(those, sample).explained for sample in self._few]

    def _of_sample(self, those: Together) -> Score:
        return self._score(those, [*self._few, *self.some_matching])

    def _score(self, those: Together, samples: list[Sample]) -> Score:
        return sum((self._model.run(those, sample).score for sample in samples), Score())

    def best(self) -> Iterator[Explanation]:
        """Yield the best explanations, of all mismatches or of a share, if they are guesses."""
        leaders = dict.fromkeys([*self._leaders_in_fields[:LEADERS], *self.leaders[:LEADERS]])
        scores = {those: self._of_wrong(those) for those in self._likely([*leaders])}
        scores = {those: score for those, score in scores.items() if self._is_guess(score)}
        best = max(map(self._rank, scores.values()), default=())
        for those, score in scores.items():
            if self._rank(score) == best:
                yield self._explanation(those, score)

    def _likely(self, leaders: list[Together]) -> list[Together]:
        """Return the leaders that may be the best ones, by a part of many cases."""
        if len(self.looked_at) < _MANY_CASES or len(leaders) < 2:
            return leaders
        some = [part for _, part in self.looked_at[::_PART]]
        scores = {those: self._score(those, some) for those in leaders}
        most = max(score.worth for score in scores.values())
        least = most - abs(most) / _FAR
        return [
            those
            for those, score in scores.items()
            if score.worth >= least or self._whole_fields(score)
        ]

    def of_all(self, known: Sequence[Together] | None = None) -> Iterator[Explanation]:
        """Yield the deviations that explain all mismatches, but would cause others as well.

        Only a few are tried: those that explain all of a sample, or, if some are `known`, all of
        the first case.
        """
        if known is None:
            scores = {those: self._of_sample(those) for those in self.leaders}
        else:
            first = self.looked_at[0][1]
            scores = {those: self._score(those, [first]) for those in known}
        likely = [those for those, one in scores.items() if one.explained == one.of]
        for those in likely[:LEADERS]:
            score = self._of_wrong(those)
            if score.explained == score.of and not self._is_of_matching(score):
                yield self._explanation(those, score)

    @cached_property
    def looked_at(self) -> list[tuple[Sample, Sample]]:
        """Cases that differ, each with the part that is looked at: its wrong rows, or all of it.

        These are all such cases, or some of them, evenly spread.
        """
        pairs = [(e, e.rows(e.differing_rows) if self._of_rows else e) for e in self._differing]
        end = _SHARE_OF_ROWS if self._of_rows else _SHARE_OF_TENSORS
        return pairs[:: math.ceil(sum(part.size for _, part in pairs) / end)]

    def _of_wrong(self, those: Together) -> Score:
        parts = [part for _, part in self.looked_at]
        return self._score(those, [*parts, *self.some_matching])

    def _explanation(self, those: Together, score: Score) -> Explanation:
        is_of_sample = len(self.looked_at) < len(self._differing)
        found = explanation_of(
            those, score.explained, score.of, is_whole=False, is_of_sample=is_of_sample
        )
        left = first_left(self._model, those, self.looked_at, of_rows=self._of_rows)
        in_fields = self._whole_fields(score)
        return replace(
            found,
            more=score.more,
            left=left,
            fields=tuple(in_fields),
            of_fields=sum(in_fields.values()),
        )

    def _rank(self, score: Score) -> tuple[int, int, int]:
        """Return a larger key for a better guess: whole fields count first."""
        return sum(self._whole_fields(score).values()), score.worth, score.explained

    @cached_property
    def _shares(self) -> dict[str, float]:
        return shares_of(self._cases)

    def _is_of_matching(self, score: Score) -> bool:
        """Return whether deviations change a field that matches."""
        return any(not self._shares.get(name) for name in score.changes)

    def _whole_fields(self, score: Score) -> dict[str, int]:
        """Return the mismatches of fields explained as a whole, if others have another reason."""
        if score.explained == score.of or self._is_of_matching(score):
            return {}
        return score.whole_fields(self._shares)

    def _is_guess(self, score: Score) -> bool:
        """Return whether a guess is worth reporting, and leaves matching fields alone."""
        if self._whole_fields(score):
            return True
        is_guess = score.is_guess and not self._is_of_matching(score)
        return is_guess and score.is_more_than_chance(self._shares)
