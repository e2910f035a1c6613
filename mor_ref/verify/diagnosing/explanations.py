"""Explanations as records, and the pairs of deviations that may be one."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model, Together, steps_of


def pairs_with(
    leader: Together, already: list[Together], alone: list[Together]
) -> Iterator[Together]:
    """Yield a deviation with each other one, except pairs that were tried already.

    Both ways round where the two replace the same step.
    """
    for other in alone:
        if other != leader and other not in already:
            yield leader + other
            if not steps_of(leader[0]).isdisjoint(steps_of(other[0])):
                yield other + leader


def spared_elsewhere(those: Together, matching: Iterable[Evidence]) -> Iterator[str]:
    """Yield, for each other suite that matches, the case that a deviation would change."""
    if len(those) == 1:  # two together may explain a mismatch that neither explains
        for evidence in matching:
            case, field = evidence.witnesses.get(those[0].name, ("", ""))
            if field in evidence.chosen.get(case, ()):
                yield f"case {case} of {evidence.suite}"


def explanation_of(
    those: Together, explained: int, of: int, *, is_whole: bool, is_of_sample: bool = False
) -> Explanation:
    """Return deviations as an explanation."""
    rules = {rule for deviation in those for rule in deviation.rules}
    names = tuple(deviation.name for deviation in those)
    return Explanation(names, tuple(sorted(rules)), explained, of, is_whole, is_of_sample)


def in_parts(alone: SuiteDiagnosis, found: SuiteDiagnosis, parts: Evidence) -> SuiteDiagnosis:
    """Return the diagnosis of large tensors, with guesses that are those of parts of them."""
    guesses = (
        replace(one, is_whole=False, is_of_sample=True, spared=()) for one in found.explanations
    )
    return replace(
        alone,
        explanations=tuple(guesses),
        leaders=found.leaders,
        untried=found.untried,
        structures=alone.structures or found.structures,
        of_parts=size_of(parts),
    )


def size_of(parts: Evidence) -> int:
    """Return how many numbers go into the cases of some answers."""
    return sum(case.arrays["x"].size for case in parts.cases)


def first_left(
    model: Model, those: Together, looked_at: Iterable[tuple[Sample, Sample]], *, of_rows: bool
) -> str:
    """Say where the first mismatch is that deviations leave: in cases, or in rows of them."""
    for case, sample in looked_at:
        score = model.run(those, sample).score
        if score.explained < score.of:
            field, place = model.first_left(those, sample)
            if of_rows:
                place[0] = int(np.flatnonzero(case.differing_rows)[place[0]])
            return f"case {case.question.name}, field {field}, at {place}"
    return ""


def shares_of(samples: Iterable[Sample]) -> dict[str, float]:
    """Return the share of compared entries that differ, by fields."""
    of, differing = Counter[str](), Counter[str]()
    for sample in samples:
        for name, pair in sample.pairs.items():
            of[name] += pair.differs.size
            if pair.left_out is not None:
                of[name] -= int(np.count_nonzero(pair.left_out))
            differing[name] += int(np.count_nonzero(pair.differs))
    return {name: differing[name] / max(size, 1) for name, size in of.items()}
