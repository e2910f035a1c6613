"""Pairs of deviations that explain all mismatches, within a bound."""

from collections.abc import Sequence

from mor_ref.verify.diagnosing.certainty import Certainty
from mor_ref.verify.diagnosing.explanations import pairs_with, rules_of
from mor_ref.verify.diagnosing.guesses import Guesses
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model, Together


def certain_pairs(
    model: Model,
    certainty: Certainty,
    guesses: Guesses,
    leaders: list[Together],
    others: Sequence[Together],
    *,
    end: int,
) -> tuple[list[Together], int]:
    """Return pairs of a leader and another deviation, and how many pairs were not tried.

    The search ends after `end` elements of pairs that explain nothing.
    """
    explained = {those: guesses.explained(those) for those in others}
    distinguishing, spent, untried = dict[Together, list[Sample]](), 0, 0
    for pairs in pairs_with(leaders, [*others], explained):
        left = []
        for leader, pair in pairs:
            if spent >= end:
                untried += 1
                continue
            if leader not in distinguishing:
                distinguishing[leader] = guesses.distinguishing(leader)
            before = model.elements
            if certainty.surviving([pair], distinguishing[leader]):
                left.append(pair)
            spent += model.elements - before
        found = certainty.certain(left)
        if found:
            # If their order makes no difference, both orders explain the same.
            found.sort(key=rules_of)
            alike = {frozenset(pair): pair for pair in reversed(found)}
            return [*alike.values()][::-1], untried
    return [], untried
