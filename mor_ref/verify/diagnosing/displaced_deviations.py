"""Deviations whose entries are in other places, too: both mistakes have a name."""

from collections.abc import Sequence
from dataclasses import replace

from mor_ref.verify.diagnosing.diagnosis_records import Explanation, Structure
from mor_ref.verify.diagnosing.displacement import displacement
from mor_ref.verify.diagnosing.entries import differing_fields, entries_of
from mor_ref.verify.diagnosing.explanations import explanation_of
from mor_ref.verify.diagnosing.sample import Pair, Sample
from mor_ref.verify.diagnosing.scoring import Model, Together
from mor_ref.verify.diagnosing.structure import after, structures_of

_LEAST = 0.9  # the share of mismatches that has a structure
_TRIED = 3  # deviations that share the most values with the candidate

Displaced = tuple[Explanation, list[Structure]]


def displaced_deviation(
    model: Model,
    alone: Sequence[Together],
    first: Sample,
    samples: Sequence[Sample],
    mismatches: int,
) -> Displaced | None:
    """Return the deviation that explains most if entries are moved, with the structures of fields.

    Moved entries keep their values. So deviations are tried in the order of how many values of a
    sample they share with the candidate, in any place.
    """
    least = model.run((), first).alike
    alike = {those: model.run(those, first).alike for those in alone}
    likely = sorted((one for one in alone if alike[one] > least), key=lambda one: -alike[one])
    found = [_moved(model, those, samples, mismatches) for those in likely[:_TRIED]]
    claims = [one for one in found if one is not None]
    return max(claims, key=lambda one: one[0].explained / one[0].of, default=None)


def _moved(
    model: Model, those: Together, samples: Sequence[Sample], mismatches: int
) -> Displaced | None:
    """Return structures relative to the bits of deviations, if most mismatches have one."""
    moved = []
    for sample in samples:
        ours = model.arrays(those, sample)
        pairs = {
            name: Pair(ours[name], one.given, ours[name] != one.given, one.left_out)
            for name, one in sample.pairs.items()
            if name in ours
        }
        moved.append(replace(sample, pairs=pairs))
    found = [one for one in structures_of(moved) if one.words]
    differing = set(differing_fields(moved))
    if {name for one in found for name in one.fields} != differing:
        return None
    if not all(_is_moved(field, moved) for field in differing):
        return None
    is_whole = all(one.is_whole for one in found)
    of = sum(sample.mismatches for sample in moved)
    explained = sum(one.of if one.is_whole else one.explained for one in found)
    if not found or explained < _LEAST * of:
        return None
    counts = (mismatches, mismatches) if is_whole else (explained, of)
    whole = explanation_of(those, *counts, is_whole=is_whole)
    names = tuple(deviation.name for deviation in those)
    return replace(whole, is_displaced=True), [after(names, one) for one in found]


def _is_moved(field: str, samples: list[Sample]) -> bool:
    """Return whether all entries that differ have the expected bits of other places."""
    entries = entries_of(field, samples)
    found = None if entries is None else displacement(entries)
    return found is not None and found.is_of_place and not found.kept
