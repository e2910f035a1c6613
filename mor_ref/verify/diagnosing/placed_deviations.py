"""Deviations that explain all mismatches, and that a candidate has only in some places."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mor_ref.verify.diagnosing.diagnosis_records import Explanation, Structure
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model
from mor_ref.verify.diagnosing.structure import Modelled, where_deviating

Placed = tuple[Explanation, Structure]


def placed_deviations(
    model: Model, of_all: Iterable[Explanation], samples: Sequence[Sample], *, cases: int
) -> Iterator[Placed]:
    """Yield explanations of all mismatches, each with an exact condition for where it applies.

    Of the entries that the deviations would change, the condition separates those that they do
    change in the candidate. It is marked as of a sample if there are fewer samples than `cases`.
    """
    for one in of_all:
        structures = where_deviating(modelled(model, one, samples), one.deviations)
        for where in structures:
            if where.condition is not None and where.condition.is_exact:
                yield one, replace(where, is_of_sample=len(samples) < cases)


def modelled(model: Model, one: Explanation, samples: Sequence[Sample]) -> Modelled:
    """Return samples, each with its fields computed with deviations."""
    those = model.named(one.deviations)
    return [(sample, model.arrays(those, sample)) for sample in samples]
