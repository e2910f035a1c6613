"""Explanations as records, and the pairs of deviations that may be one."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, SuiteDiagnosis
from mor_ref.verify.diagnosing.sample import (
    Sample,
    is_large,
    is_of_rows,
    samples_of,
    some_of,
)
from mor_ref.verify.diagnosing.scoring import Model, Together, steps_of

Found = TypeVar("Found")
Names = tuple[str, ...]
_OF_OTHERS = 1 << 11  # elements of another suite that matches


def pairs_with(
    leaders: list[Together], others: list[Together], explained: Mapping[Together, list[int]]
) -> Iterator[list[tuple[Together, Together]]]:
    """Yield pairs of a leader and another deviation, grouped by how much both may explain.

    `explained` has, for each deviation alone, the mismatches of some samples that it explains, as
    bits. Pairs that explain more come earlier. A pair is yielded next to its leader, and in both
    orders if both deviations replace the same step.
    """

    def at_most(pair: tuple[Together, Together]) -> int:
        each = zip(explained[pair[0]], explained[pair[1]], strict=True)
        return sum((one | other).bit_count() for one, other in each)

    pairs = (
        (leader, other)
        for k, leader in enumerate(leaders)
        for other in others
        if other != leader and other not in leaders[:k]
    )
    for _, alike in itertools.groupby(sorted(pairs, key=lambda one: -at_most(one)), at_most):
        yield [(leader, pair) for leader, other in alike for pair in _in_order(leader, other)]


def _in_order(one: Together, other: Together) -> Iterator[Together]:
    yield one + other
    if not steps_of(one[0]).isdisjoint(steps_of(other[0])):
        yield other + one


def at_fewest_sites(found: Sequence[Found], names: Callable[[Found], Names]) -> list[Found]:
    """Leave out a mistake at several sites, if the same one at fewer of them explains as much.

    So a kernel of one kind of scales has a mistake in these, although others can have it, too.
    """
    there = {*map(names, found)}

    def is_more(own: Names) -> bool:
        return any(
            (*own[:k], fewer, *own[k + 1 :]) in there
            for k, name in enumerate(own)
            for fewer in _at_fewer_sites(name)
        )

    return [one for one in found if not is_more(names(one))]


def names_of(those: Together) -> Names:
    """Return the names of deviations."""
    return tuple(one.name for one in those)


def _at_fewer_sites(name: str) -> Iterator[str]:
    """Yield the ids of a mistake at some of its sites alone, from most to fewest."""
    places, _, operator = name.partition("/")
    sites = places.split("+")
    for count in range(len(sites) - 1, 0, -1):
        yield from (f"{'+'.join(some)}/{operator}" for some in itertools.combinations(sites, count))


def rules_of(those: Together) -> int:
    """Return the count of rules of deviations: explanations with the fewest come first."""
    return len({rule for deviation in those for rule in deviation.rules})


def spared_elsewhere(those: Together, matching: Iterable[Evidence]) -> Iterator[str]:
    """Yield, for each other suite that matches, a case that deviations would change.

    Two that the same suite exposes may together change nothing there. Mistakes for which the suite
    names no entry are computed on some.
    """
    for evidence in matching:
        exposed = [one.name for one in those if one.name in evidence.witnesses]
        if not exposed and any(evidence.suite in one.suites for one in those):
            yield from _changed(those, evidence)
        if len(exposed) == 1:
            case, field = evidence.witnesses[exposed[0]]
            if field in evidence.chosen.get(case, ()):
                yield f"case {case} of {evidence.suite}"


def _changed(those: Together, evidence: Evidence) -> Iterator[str]:
    """Yield the first of some cases of a suite that deviations would change."""
    if is_large(evidence):
        return
    model, samples = Model(those), [*samples_of(evidence)]
    for sample in some_of(samples, _OF_OTHERS, of_rows=is_of_rows(evidence)):
        if not model.run(those, sample).score.is_whole:
            yield f"case {sample.question.name} of {evidence.suite}"
            return


def spared_next_to_mismatches(those: Together, differing: Iterable[Evidence]) -> Iterator[str]:
    """Yield, for each suite that differs, a case in which deviations would change a match.

    It is the case at which the suite exposes a deviation, or one of some if it names none.
    """
    model = Model(those)
    for evidence in differing:
        exposed = {
            evidence.witnesses[one.name][0] for one in those if one.name in evidence.witnesses
        }
        shown = [case for case in evidence.cases if case.name in exposed]
        samples = [*samples_of(replace(evidence, cases=shown))]
        if not exposed and any(evidence.suite in one.suites for one in those):
            samples = some_of([*samples_of(evidence)], _OF_OTHERS, of_rows=is_of_rows(evidence))
        for sample in samples:
            if model.run(those, sample).score.more:
                yield f"an entry of case {sample.question.name} of {evidence.suite}"


def explanation_of(
    those: Together, explained: int, of: int, *, is_whole: bool, is_of_sample: bool = False
) -> Explanation:
    """Return deviations as an explanation."""
    rules = {rule for deviation in those for rule in deviation.rules}
    names = names_of(those)
    summaries = tuple(deviation.summary for deviation in those)
    return Explanation(
        names,
        tuple(sorted(rules)),
        explained,
        of,
        is_whole,
        is_of_sample,
        summaries=summaries,
    )


def in_parts(alone: SuiteDiagnosis, found: SuiteDiagnosis, parts: Evidence) -> SuiteDiagnosis:
    """Return the diagnosis of large tensors, with the guesses of their parts."""
    guesses = (
        replace(one, is_whole=False, is_of_sample=True, spared=()) for one in found.explanations
    )
    return replace(
        alone,
        explanations=tuple(guesses),
        leaders=found.leaders,
        untried=found.untried,
        untried_alone=found.untried_alone,
        structures=alone.structures or found.structures,
        of_parts=size_of(parts),
    )


def size_of(parts: Evidence) -> int:
    """Return the count of numbers in the inputs of some cases."""
    return sum(case.arrays["x"].size for case in parts.cases)


def first_left(
    model: Model, those: Together, looked_at: Iterable[tuple[Sample, Sample]], *, of_rows: bool
) -> str:
    """Return the place of the first mismatch that deviations leave, in words."""
    for case, sample in looked_at:
        score = model.run(those, sample).score
        if score.explained < score.of:
            field, place = model.first_left(those, sample)
            if of_rows:
                place[0] = int(np.flatnonzero(case.differing_rows)[place[0]])
            return f"case {case.question.name}, field {field}, at {place}"
    return ""


def shares_of(samples: Iterable[Sample]) -> dict[str, float]:
    """Return, for each field, the share of compared entries that differ."""
    of, differing = Counter[str](), Counter[str]()
    for sample in samples:
        for name, pair in sample.pairs.items():
            of[name] += pair.differs.size
            if pair.left_out is not None:
                of[name] -= int(np.count_nonzero(pair.left_out))
            differing[name] += int(np.count_nonzero(pair.differs))
    return {name: differing[name] / max(size, 1) for name, size in of.items()}
