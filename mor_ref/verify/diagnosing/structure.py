"""Structures: the bits of entries that differ, and where these entries lie."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.diagnosing.alternative import LEAST_BITS, Alternative, surprise
from mor_ref.verify.diagnosing.condition import condition
from mor_ref.verify.diagnosing.diagnosis_records import Condition, Structure
from mor_ref.verify.diagnosing.displacement import displacement, two_displacements
from mor_ref.verify.diagnosing.entries import Entries, differing_fields, entries_of
from mor_ref.verify.diagnosing.other_bits import frequent_value
from mor_ref.verify.diagnosing.other_parameters import OF_PARAMETERS, other_parameters
from mor_ref.verify.diagnosing.sample import Pair, Sample, samples_of


def structures_of(samples: Sequence[Sample]) -> list[Structure]:
    """Return the structures of the fields that differ, in the order of the suite.

    Fields with the same words are one structure. A condition alone is sought only for the first
    field, because later fields follow from it.
    """
    found: list[Structure] = []
    unnamed: list[Entries] = []
    for field in differing_fields(samples):
        entries = entries_of(field, samples)
        if entries is None:
            continue
        one = _of_field(entries, is_first=not found)
        if one is None or not one.words:
            unnamed.append(entries)
        if one is None:
            continue
        alike = ((k, s) for k, s in enumerate(found) if s.words and s.words == one.words)
        same = next((k for k, s in alike if s.other is None is one.other), None)
        if same is None:
            found.append(one)
        else:
            found[same] = _joined(found[same], one)
    for entries in unnamed:
        found = _with_parameters(found, entries)
    return found


def _with_parameters(found: list[Structure], entries: Entries) -> list[Structure]:
    """Return structures, with another field in one of them if the same parameter explains it.

    A few entries, such as one mantissa, are not evidence alone, but they are with other fields.
    """
    field, of = entries.field, len(entries.differing)
    if any(one.is_whole and one.words.startswith(OF_PARAMETERS) for one in found):
        for other in other_parameters(entries):
            same = next((one for one in found if one.is_whole and one.words == other.words), None)
            if same is not None and other.explained == of and not other.kept:
                rest = [one for one in found if one.words or one.fields != (field,)]
                more = _joined(same, replace(same, fields=(field,), explained=of, of=of, kept=0))
                return [more if one is same else one for one in rest]
    return found


def displaced_fields(evidence: Evidence) -> list[Structure]:
    """Return the structures of fields in which all entries that differ have other bits.

    Structures that need a condition are left out, as are fields with too many entries. Inputs are
    not looked at.
    """
    samples, found = list(samples_of(evidence)), []
    for field in differing_fields(samples):
        entries = entries_of(field, samples)
        instead = None if entries is None else displacement(entries)
        if entries is not None and instead is not None and not instead.kept:
            of = len(entries.differing)
            if instead.explained == of:
                one = Structure((field,), instead.words, of, of, 0, noun=entries.noun)
                found.append(replace(one, is_of_sample=evidence.strip is not None))
    return found


Modelled = Sequence[tuple[Sample, Mapping[str, NDArray[Any]]]]  # with the fields of deviations


def structures_left(modelled: Modelled, names: tuple[str, ...]) -> list[Structure]:
    """Return the structures of mismatches that deviations leave, relative to the bits of these.

    Entries that match do not count, even if the deviations would change them.
    """
    left = [
        replace(
            sample,
            pairs={
                name: Pair(
                    ours[name],
                    pair.given,
                    pair.differs & (pair.given != ours[name]),
                    pair.left_out,
                )
                for name, pair in sample.pairs.items()
                if name in ours
            },
        )
        for sample, ours in modelled
    ]
    return [after(names, one) for one in structures_of(left)]


def after(names: tuple[str, ...], one: Structure) -> Structure:
    """Return a structure with the names of deviations that come before it."""
    other = None if one.other is None else replace(one.other, beyond=names)
    return replace(one, beyond=names, other=other)


def where_deviating(modelled: Modelled, names: tuple[str, ...]) -> Iterator[Structure]:
    """Yield, for the first field that has one, a condition of where the deviations apply."""
    samples = [sample for sample, _ in modelled]
    changed = [
        replace(
            sample,
            pairs={
                name: Pair(pair.expected, ours[name], ours[name] != pair.expected)
                for name, pair in sample.pairs.items()
                if name in ours
            },
        )
        for sample, ours in modelled
    ]
    for field in differing_fields(samples):
        given, ours = entries_of(field, samples), entries_of(field, changed)
        if given is None or ours is None or given.size != ours.size:
            continue
        would_change = ours.differs & given.matches
        found = condition(given, given.differs & (given.given == ours.given), would_change)
        if found is not None:
            of, kept = len(given.differing), int(would_change.sum())
            where = replace(found, is_of_changed=True)
            yield Structure((field,), "", found.differing, of, kept, where, given.noun, names)
            return


def structure_of_each_field(
    fields: Sequence[str], alone: Sequence[Structure], left: Sequence[Structure]
) -> Iterator[Structure]:
    """Yield a structure for each field that deviations do not explain.

    A structure that needs no deviation is preferred if it is whole.
    """
    named = {*fields}
    by_worth = (
        *(one for one in alone if one.is_whole),
        *(one for one in left if one.is_of_all),
        *alone,
        *left,
    )
    for one in by_worth:
        if not named.issuperset(one.fields):
            named |= {*one.fields}
            yield one


def _of_field(entries: Entries, *, is_first: bool) -> Structure | None:
    """Return the structure of a field, if any is found."""
    instead, of = displacement(entries), len(entries.differing)
    if instead is None or instead.explained < of:
        both = next(filter(None, starmap(_of_two, two_displacements(entries))), None)
        if both is not None:
            return both
    if instead is not None and instead.explained < of and is_first:
        of_all = condition(entries, entries.differs, entries.matches)
        instead = instead if of_all is None else None  # a condition says more than a part
    nothing, where = _nothing(entries), None
    if instead is not None and (instead.kept or instead.explained < of):
        where = _where(entries, instead)
        if _may_be_by_accident(instead, where):
            instead, where = None, None
    if instead is not None:
        return _with(nothing, instead, where)
    where = condition(entries, entries.differs, entries.matches) if is_first else None
    if where is None:
        return _one_value_somewhere(entries, nothing)
    return replace(nothing, condition=where)


def _one_value_somewhere(entries: Entries, nothing: Structure) -> Structure | None:
    """Return the value of most wrong entries, if a condition says exactly where it is."""
    for one in frequent_value(entries):
        is_most = 2 * one.explained >= nothing.of > one.explained
        if is_most and one.kept and surprise(one, one.explains) >= LEAST_BITS:
            where = condition(entries, one.explains, one.would_change, of_places_only=True)
            if where is not None and where.is_exact:
                return _with(nothing, one, replace(where, is_of_changed=True))
    return None


def _nothing(e: Entries) -> Structure:
    """Return the structure of a field if nothing is known of it."""
    of = len(e.differing)
    return Structure((e.field,), "", 0, of, 0, noun=e.noun, is_of_sample=e.is_of_sample)


def _with(nothing: Structure, one: Alternative, where: Condition | None) -> Structure:
    """Return a structure with the words and counts of an alternative, and with a condition."""
    return replace(
        nothing,
        words=one.words,
        explained=one.explained,
        kept=one.kept,
        condition=where,
        also=one.also,
    )


def _of_two(one: Alternative, other: Alternative) -> Structure | None:
    """Return the structure of two kinds of wrong entries, if no other entries have to differ."""
    first, rest = _next_to(one, other), _next_to(other, one)
    return None if first is None or rest is None else replace(first, other=rest)


def _next_to(one: Alternative, other: Alternative) -> Structure | None:
    """Return the structure of one of two kinds; None if other entries would differ as well.

    Entries that have the bits of the other kind are not counted.
    """
    e = one.entries
    by_other = other.is_there & (other.values == e.given)
    wrong, right = one.explains & ~by_other, one.would_change & ~by_other
    if surprise(one, wrong) < LEAST_BITS:
        return None
    kept, where = int(np.count_nonzero(right)), None
    if kept:
        where = condition(e, wrong, right, of_places_only=True)
        if where is None or not where.is_exact:
            return None
        where = replace(where, is_of_changed=True)
    return replace(_with(_nothing(e), one, where), kept=kept)


def _may_be_by_accident(instead: Alternative, where: Condition | None) -> bool:
    """Return whether an alternative that would change matching entries may fit by accident.

    The number next to an expected one may be the result of another rounding. If no place explains
    the entries, bits from far away are taken for a race.
    """
    if not instead.kept or (where is not None and not instead.is_of_place):
        return False
    is_all = instead.explained == len(instead.entries.differing)
    if instead.is_of_place:
        return not is_all or (where is None and not instead.is_far)
    return instead.needs_a_place


def _where(entries: Entries, instead: Alternative) -> Condition | None:
    """Return the condition that separates explained entries from others that would change.

    If the bits are of other places, the condition has to be of places as well, because the number
    next to an expected one may be the result of another rounding.
    """
    wrong, right = instead.explains, instead.would_change
    found = condition(entries, wrong, right, of_places_only=True)
    if not instead.is_of_place and (found is None or not found.is_exact):
        found = condition(entries, wrong, right)
    return None if found is None else replace(found, is_of_changed=True)


def _joined(one: Structure, other: Structure) -> Structure:
    """Return one structure of two fields, with the condition of the first field.

    A cause has to give the bits of both fields.
    """
    return replace(
        one,
        fields=(*one.fields, *other.fields),
        explained=one.explained + other.explained,
        of=one.of + other.of,
        kept=one.kept + other.kept,
        also=tuple(words for words in one.also if words in other.also),
    )
