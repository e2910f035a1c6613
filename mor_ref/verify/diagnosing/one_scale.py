"""Other causes of mismatches that all follow from one scale, next to those of deviations."""

from collections.abc import Sequence

from mor_ref.golden.model.views import split
from mor_ref.operations import OPERATIONS
from mor_ref.verify.diagnosing.diagnosis_records import Structure
from mor_ref.verify.diagnosing.entries import differing_fields
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.structure import structures_of

_OF_AMAX = "the amax of "
_OF_BLOCKS = ("grid", "ends", "group", "unit")


def causes_of_one_scale(samples: Sequence[Sample]) -> list[Structure]:
    """Return the structures of mismatches that follow from one scale, if it is of another amax.

    One scale is not evidence for a deviation that takes the amax of other numbers: it is one of
    the numbers of a tensor.
    """
    differing = [one for one in samples if one.mismatches]
    if len(differing) != 1 or not _is_of_one_block(differing[0]):
        return []
    found = structures_of(samples)
    fields = {name for one in found if one.is_whole for name in one.fields}
    is_named = any(_OF_AMAX in one.words for one in found)
    return found if is_named and fields == set(differing_fields(samples)) else []


def _is_of_one_block(one: Sample) -> bool:
    """Return whether the scales of one block differ, and the scale of no other block."""
    operation = OPERATIONS[one.operation]
    of_blocks = [
        int(pair.differs.sum())
        for name, pair in one.pairs.items()
        if operation.axes_of(split(name)[0]) in _OF_BLOCKS
    ]
    return max(of_blocks, default=0) == 1
