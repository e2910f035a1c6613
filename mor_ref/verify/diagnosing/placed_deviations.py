"""Deviations that explain all that differ, and that a candidate has in some places alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mor_ref.deviations import DEVIATIONS
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, Structure
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model
from mor_ref.verify.diagnosing.structure import Modelled, where_deviating

Placed = tuple[Explanation, Structure]


def placed_deviations(
    model: Model, of_all: Iterable[Explanation], samples: Sequence[Sample], *, cases: int
) -> Iterator[Placed]:
    """Yield explanations of all that differ whose condition no other entry has, and the condition.

    The condition is of entries that a deviation would change, in samples of so many `cases`.
    """
    for one in of_all:
        structures = where_deviating(modelled(model, one, samples), one.deviations)
        for where in structures:
            if where.condition is not None and where.condition.is_exact:
                yield one, replace(where, is_of_sample=len(samples) < cases)


def modelled(model: Model, one: Explanation, samples: Sequence[Sample]) -> Modelled:
    """Return samples with the fields that deviations have there."""
    those = tuple(DEVIATIONS[name] for name in one.deviations)
    return [(sample, model.arrays(those, sample)) for sample in samples]
