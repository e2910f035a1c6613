"""Codes, or y, computed with scales that are not the expected ones of their block."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations import OPERATIONS
from mor_ref.operations.given_words import BITS
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.alternative import LEAST_BITS, Alternative, surprise
from mor_ref.verify.diagnosing.codes_of_other_numbers import of_reaches
from mor_ref.verify.diagnosing.entries import MOST, Entries, Integers, joined, spread
from mor_ref.verify.diagnosing.maps import Map, maps
from mor_ref.verify.diagnosing.sample import Pair
from mor_ref.verify.diagnosing.scaled_cases import (
    IN_PLACE,
    INVERSE,
    PARTS,
    Fields,
    ScaledCase,
    ScaledField,
    cases_of,
    fields_of,
)
from mor_ref.verify.diagnosing.scales_of_few_blocks import few_blocks
from mor_ref.verify.diagnosing.scales_of_other_blocks import (
    OtherBlocks,
    block_of,
    other_block_sizes,
)

_CODES = ("code", "packed")
_SCREENED, _CASES = 256, 3  # entries of a case, and cases, to try all scales on
_TRIED_ON_ALL = 2  # choices of scales that explain the most of these
_GROUPS = {
    IN_PLACE: "column // columns of a group",
    INVERSE: "permutation[column] // columns of a group",
}


class _Choice(NamedTuple):
    """Scales in words, and a function that returns the fields that they change.

    Scales of other parts are `moved`: by a map, with the axes of the parts and the right scales.
    """

    words: str
    fields: Callable[[ScaledCase, Integers], Fields]
    moved: tuple[Map, str, Entries] | None = None


def other_scales(e: Entries) -> Iterator[Alternative]:
    """Yield the codes of x with other scales, or y of the codes with other scales.

    The scales come from other blocks or from the candidate, are inverted, or are 1. Each choice is
    tried on some entries that differ; the choices that explain the most are tried on all.
    """
    field = _field(e)
    if field is None:
        return
    cases = list(cases_of(field))
    count = {k: int(np.count_nonzero(e.differs[one.places])) for k, one in enumerate(cases)}
    most = [cases[k] for k in sorted(count, key=lambda k: -count[k])[:_CASES] if count[k]]
    some = [(one, spread(np.flatnonzero(e.differs[one.places]), _SCREENED)) for one in most]
    of = sum(len(at) for _, at in some)
    rated = [
        (sum(_right(field, choice, *each) for each in some), choice) for choice in _scales(field)
    ]
    best = sorted((one for one in rated if 0 < of <= 2 * one[0]), key=lambda one: -one[0])
    for _, choice in best[:_TRIED_ON_ALL]:
        values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
        for one in cases:
            values[one.places] = _computed(field, choice, one, np.arange(len(one.places)))
            is_there[one.places] = True
        words = f"{_subject(field)} {choice.words}"
        is_sure = _is_sure(e, choice, cases)
        yield Alternative(words, values, is_there, e, is_of_place=False, needs_a_place=not is_sure)
    yield from _of_few_blocks(field, cases)
    if not field.is_of_codes and (names := [n for n in _own(field) if field.axes(n) == "grid"]):
        yield from of_reaches(field, cases, names, partial(_with_scales, field))


def _of_few_blocks(field: ScaledField, cases: list[ScaledCase]) -> Iterator[Alternative]:
    """Yield the numbers of the blocks that differ with scales of other blocks, if these explain."""
    own = _own(field)
    for names in dict.fromkeys((tuple(own), *((name,) for name in own))):
        axes = {field.axes(name) for name in names}
        if len(axes) != 1:
            continue
        blocks = {name: _blocks(field, name) for name in names}
        found = few_blocks(field.entries, cases, axes.pop(), blocks, partial(_with_scales, field))
        if found is not None:
            words, is_there = found
            said = f"{_subject(field)} with, {words.format(_names([*names]))}"
            yield Alternative(said, field.entries.given, is_there, field.entries, is_of_place=False)
            return


def _subject(field: ScaledField) -> str:
    return f"each {field.entries.noun} is that of {'its code' if field.is_of_codes else 'x'}"


def _is_sure(e: Entries, choice: _Choice, cases: list[ScaledCase]) -> bool:
    """Return whether parts that differ hardly have these other scales by accident."""
    if choice.moved is None:
        return False
    by, axes, right = choice.moved
    wrong = np.unique(np.concatenate([one.part[axes][e.differs[one.places]] for one in cases]))
    source, given, differs = by.source(right, wrong), right.given.copy(), np.zeros(right.size, bool)
    given[wrong], differs[wrong] = right.expected[source], source >= 0
    there = replace(right, given=given, differs=differs)
    return surprise(Alternative("", given, differs, there), differs) >= LEAST_BITS


def _field(e: Entries) -> ScaledField | None:
    """Return a field of numbers with scales that are rounded to nearest, or None."""
    operation = OPERATIONS[e.samples[0].operation]
    parameters = [one.question.parameters for one in e.samples]
    way = operation.way_back
    if way is None or way.coded is None or not all(map(way.is_by_number, parameters)):
        return None
    first, *_ = way.takes(parameters[0])
    if e.field not in (*_CODES, "y", *first, *way.chosen):
        return None
    if any(BITS in one or RECIPE in one for one in parameters):
        return None
    is_of_codes = e.field == "y" and "y" not in way.chosen
    field = ScaledField(e, operation, way, way.restore if is_of_codes else way.coded)
    is_alike = all(field.taken(one) == field.taken(e.samples[0]) for one in e.samples)
    return field if is_alike and sum(one.size for one in e.samples) <= MOST else None


def _right(field: ScaledField, choice: _Choice, one: ScaledCase, at: Integers) -> int:
    found = _computed(field, choice, one, at)
    return int(np.count_nonzero(found == field.entries.given[one.places[at]]))


def _computed(field: ScaledField, choice: _Choice, one: ScaledCase, at: Integers) -> NDArray[Any]:
    """Return a field computed for some numbers of a case with a choice of scales."""
    return _with_scales(field, one, choice.fields(one, at), at)


def _with_scales(field: ScaledField, one: ScaledCase, scales: Fields, at: Integers) -> NDArray[Any]:
    """Return a field computed for some numbers of a case with given scales of these."""
    known = _at(one.known, at) | scales
    arrays = {
        name: array if field.is_of_ends(name) else array[:, np.newaxis]
        for name, array in known.items()
    }
    return field.step(one.parameters, arrays)[:, 0]


# ---------------------------------------------------------------- the choices of scales


def _scales(field: ScaledField) -> Iterator[_Choice]:
    """Yield the choices of scales that are tried, the simplest first."""
    first = field.entries.samples[0]
    _, *taken = field.taken(first)
    if given := [name for name in taken if name in first.pairs]:
        yield _Choice(f"with the given {_names(given)}", lambda one, at: _at(one.given, at))
    own = _own(field)
    neutral = [name for name in taken if field.neutral(name) is not None]
    for some in [[name] for name in neutral] + ([neutral] if len(neutral) > 1 else []):
        yield _Choice(f"without {_names(some)}", _ones(field, some))
    for name in taken:
        if field.format(name) in ("f32", "e8m0"):
            yield _Choice(f"with the inverse of {name}", _inverse(field, name))
    if others := [name for name in neutral if name not in own]:
        without = _ones(field, others)
        words = f"with the given {_names(own)}, and without {_names(others)}"
        yield _Choice(words, lambda one, at: _at(one.given, at) | without(one, at))
    yield from _of_other_sizes(field, [name for name in own if field.axes(name) == "grid"])
    alone = [[name] for name in taken if field.axes(name) in PARTS]
    for names in dict.fromkeys(map(tuple, (own, *alone))):
        yield from _elsewhere(field, names)


def _own(field: ScaledField) -> list[str]:
    """Return the names of the scales that each block, unit or group has for itself."""
    _, *taken = field.taken(field.entries.samples[0])
    return [name for name in taken if field.axes(name) in ("grid", "unit", "groups")]


def _of_other_sizes(field: ScaledField, names: list[str]) -> Iterator[_Choice]:
    """Yield the choices of scales of smaller and larger blocks, if blocks are of one size."""
    blocks = {block_of(one) for one in field.entries.samples} if names else set()
    if len(blocks) == 1:
        for size, other in other_block_sizes(blocks.pop()):
            words = f"with the {_names(names)} of blocks of {size}"
            yield _Choice(words, _of_size(field, names, other))


def _of_size(
    field: ScaledField, names: list[str], blocks: OtherBlocks
) -> Callable[[ScaledCase, Integers], Fields]:
    """Return the scales of blocks of another size, or the expected ones if unknown."""
    e = field.entries
    scales = cache(lambda k: blocks.scales(e.samples[k], names))

    def fields(one: ScaledCase, at: Integers) -> Fields:
        here = one.places[at]
        found = scales(int(e.case[here[0]])) if len(here) else None
        if found is None:
            return {name: one.known[name][at] for name in names}
        return {name: found[name][e.row[here], e.column[here]] for name in names}

    return fields


def _elsewhere(field: ScaledField, names: tuple[str, ...]) -> Iterator[_Choice]:
    """Yield the choices of scales of other blocks, units or pairs, and one scale everywhere."""
    blocks = {name: _blocks(field, name) for name in names}
    (first, entries), axes = next(iter(blocks.items())), field.axes(names[0])
    if field.neutral(first) is None:
        for value in np.unique(entries.expected):
            yield _Choice(f"with {first} {value} everywhere", _same(first, value))
    for one in maps(entries):
        where = f"the {PARTS[axes]} at {one.words}" if one.words.startswith("[") else one.words
        words = f"with the expected {_names([*names])} of {where}"
        yield _Choice(words, _of_map(one, axes, blocks), (one, axes, entries))
    for name, where in _GROUPS.items() if axes == "groups" else ():
        words = f"with the expected {_names([*names])} of the group {where}"
        yield _Choice(words, _of_part(name, blocks))


def _names(names: list[str]) -> str:
    return " and ".join(names)


def _at(fields: Fields, at: Integers) -> Fields:
    return {name: array[at] for name, array in fields.items()}


def _ones(field: ScaledField, names: list[str]) -> Callable[[ScaledCase, Integers], Fields]:
    """Return a function that replaces scales by 1."""
    return lambda one, at: {
        name: np.full_like(one.known[name][at], field.neutral(name)) for name in names
    }


def _same(name: str, value: int) -> Callable[[ScaledCase, Integers], Fields]:
    """Return a function that replaces a scale by one value everywhere."""
    return lambda one, at: {name: np.full_like(one.known[name][at], value)}


def _inverse(field: ScaledField, name: str) -> Callable[[ScaledCase, Integers], Fields]:
    """Return a function that inverts scales, which are powers of two or binary32 numbers."""

    def fields(one: ScaledCase, at: Integers) -> Fields:
        own = one.known[name][at]
        if field.format(name) == "e8m0":
            return {name: np.where(own < 255, 254 - own, own).astype(own.dtype)}
        with np.errstate(all="ignore"):
            return {name: (np.float32(1) / own.view(np.float32)).view(np.uint32)}

    return fields


def _blocks(field: ScaledField, name: str) -> Entries:
    """Return the expected scales of the blocks of all cases as entries. No entry differs."""
    found = []
    for one in field.entries.samples:
        bits = fields_of(field, one)[0][name]
        same = Pair(bits, bits, np.zeros(bits.shape, np.bool_))
        found.append(replace(one, pairs={name: same}))
    return joined(name, found, is_packed=False)


def _of_part(part: str, blocks: dict[str, Entries]) -> Callable[[ScaledCase, Integers], Fields]:
    """Return a function that takes the scales of another kind of part."""
    return lambda one, at: {
        name: entries.expected[one.part[part][at]].astype(one.known[name].dtype)
        for name, entries in blocks.items()
    }


def _of_map(
    by: Map, axes: str, blocks: dict[str, Entries]
) -> Callable[[ScaledCase, Integers], Fields]:
    """Return a function that takes scales of other blocks or pairs, or the own one if none."""

    def fields(one: ScaledCase, at: Integers) -> Fields:
        own = one.part[axes][at]
        source = by.source(next(iter(blocks.values())), own)
        there = np.where(source < 0, own, source)
        return {
            name: entries.expected[there].astype(one.known[name].dtype)
            for name, entries in blocks.items()
        }

    return fields
