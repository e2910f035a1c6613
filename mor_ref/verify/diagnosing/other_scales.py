"""Codes of numbers, and y of codes, with scales that are not the expected ones of their block."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations import OPERATIONS
from mor_ref.operations.given_words import BITS
from mor_ref.operations.operation import Operation, Parameters, WayBack
from mor_ref.operations.parameters import RECIPE
from mor_ref.operations.shapes import Sides, of_numbers, sides_of
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import MOST, Entries, Integers, joined, spread
from mor_ref.verify.diagnosing.maps import Map, maps
from mor_ref.verify.diagnosing.sample import Pair, Sample

_CODES = ("code", "packed")
_SCREENED, _CASES = 256, 3  # entries of a case, and cases, that all scales are tried on first
_PARTS = {"grid": "block", "unit": "unit", "pair": "pair"}  # that have a scale, by their axes
_TRIED_ON_ALL = 2  # choices of scales that explain the most of these
_ONE = {"f32": 0x3F800000, "e4m3": 0x38, "e8m0": 127}  # the code of 1 in formats of scales

Fields = dict[str, NDArray[Any]]


class _Case(NamedTuple):
    """The numbers of a case, one after the other: their places among the entries of the field.

    `known` are x or the code of each number, and the expected scales, each with the number.
    `given` are the scales of the candidate. `part` is the place of a number's block among those of
    all cases, and the place of its pair.
    """

    parameters: Parameters
    places: Integers
    part: dict[str, Integers]
    known: Fields
    given: Fields


class _Choice(NamedTuple):
    """Scales in words, and the fields of some numbers of a case that are others with them."""

    words: str
    fields: Callable[[_Case, Integers], Fields]


class _Field(NamedTuple):
    """The field of numbers, its operation, and how numbers become codes, or codes become y."""

    entries: Entries
    operation: Operation
    way: WayBack
    step: Callable[[Parameters, Fields], NDArray[Any]]

    def axes(self, name: str) -> str:
        """Return the axes of another field."""
        return self.operation.field(name)[1]

    def is_of_ends(self, name: str) -> bool:
        """Return whether it is a field of whole rows, or of the whole tensor."""
        return name in self.operation.outputs and self.axes(name) == "ends"

    def format(self, name: str) -> str:
        """Return the format of another field."""
        return self.operation.field(name)[0]

    def neutral(self, name: str) -> int | None:
        """Return the bits of another field that change nothing, if there are any."""
        return self.way.neutral.get(name, _ONE.get(self.format(name)))

    def taken(self, sample: Sample) -> list[str]:
        """Return the names of the code and of the scales that y follows from."""
        return [names[0] for names in self.way.takes(sample.question.parameters)]


def other_scales(e: Entries) -> Iterator[Alternative]:
    """Yield the codes of x with other scales, or y of the codes with other scales.

    They are those of other blocks, the given ones, inverse ones and 1. Each choice is tried on some
    entries that differ; those that explain the most are tried on all.
    """
    field = _field(e)
    if field is None:
        return
    cases = list(_cases(field))
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
        words = f"each {e.noun} is that of {'its code' if e.field == 'y' else 'x'} {choice.words}"
        yield Alternative(words, values, is_there, e, is_of_place=False, needs_a_place=True)


def _field(e: Entries) -> _Field | None:
    """Return a field of numbers that have scales and are rounded to nearest; None if it is none."""
    operation = OPERATIONS[e.samples[0].operation]
    parameters = [one.question.parameters for one in e.samples]
    way = operation.way_back
    if way is None or way.coded is None:
        return None
    first, *_ = way.takes(parameters[0])
    if e.field not in (*_CODES, "y", *first):
        return None
    if any(BITS in one or RECIPE in one for one in parameters):
        return None
    field = _Field(e, operation, way, way.restore if e.field == "y" else way.coded)
    is_alike = all(field.taken(one) == field.taken(e.samples[0]) for one in e.samples)
    return field if is_alike and sum(one.size for one in e.samples) <= MOST else None


def _right(field: _Field, choice: _Choice, one: _Case, at: Integers) -> int:
    found = _computed(field, choice, one, at)
    return int(np.count_nonzero(found == field.entries.given[one.places[at]]))


def _computed(field: _Field, choice: _Choice, one: _Case, at: Integers) -> NDArray[Any]:
    """Return the field of some numbers of a case with a choice of scales."""
    known = _at(one.known, at) | choice.fields(one, at)
    arrays = {
        name: array if field.is_of_ends(name) else array[:, np.newaxis]
        for name, array in known.items()
    }
    return field.step(one.parameters, arrays)[:, 0]


# ---------------------------------------------------------------- the numbers and their scales


def _cases(field: _Field) -> Iterator[_Case]:
    """Yield the cases; a padding nibble is of no number."""
    e = field.entries
    before = dict.fromkeys(_PARTS, 0)
    for sample, of_case in zip(e.samples, e.slices, strict=True):
        asked = sample.question
        shape = asked.arrays["x"].shape
        sides = sides_of("rc", asked.parameters, shape)
        places = np.arange(of_case.start, of_case.stop)[e.column[of_case] < shape[1]]
        own = e.row[places], e.column[places]
        expected, given = _fields_of(field, sample)
        part = {}
        for axes, first in before.items():
            each = _places_of_parts(sides[axes], shape)
            part[axes] = first + each[own]
            before[axes] = first + int(each.max(initial=-1)) + 1
        known = {name: array[own] for name, array in _each(field, expected, sides, shape)}
        coded, *_ = field.taken(sample)
        code = known.pop(coded)
        if e.field == "y":
            known["code"] = given["code"][own] if "code" in given else code
        else:
            more = field.way.known(asked.parameters, asked.arrays)
            known |= {name: array[own] for name, array in (("x", asked.arrays["x"]), *more.items())}
        others = {name: array[own] for name, array in _each(field, given, sides, shape)}
        others.pop(coded, None)
        yield _Case(_of_single_numbers(asked.parameters), places, part, known, others)


def _places_of_parts(sides: Sides, shape: tuple[int, ...]) -> Integers:
    """Return for each number the place of its part, row by row."""
    grid = [-(-size // side) for size, side in zip(shape, sides, strict=True)]
    return of_numbers(np.arange(grid[0] * grid[1]).reshape(grid), sides, shape)


def _of_single_numbers(parameters: Parameters) -> Parameters:
    """Return the parameters of a tensor in one column, whose blocks are single numbers."""
    ones = {"block": 1 if isinstance(parameters.get("block"), int) else [1, 1], "tile": [1, 1]}
    return {name: ones.get(name, value) for name, value in parameters.items()}


def _fields_of(field: _Field, sample: Sample) -> tuple[Fields, Fields]:
    """Return the code and the scales as expected, and as given; all are expected."""
    names = field.taken(sample)
    pairs = {name: sample.pairs[name] for name in names if name in sample.pairs}
    expected = {name: pair.expected for name, pair in pairs.items()}
    if len(pairs) < len(names):
        asked = sample.question
        found = field.operation.engine(asked.parameters, asked.arrays)
        expected = {name: found[name] for name in names} | expected
    return expected, {name: pair.given for name, pair in pairs.items()}


def _each(
    field: _Field, found: Fields, sides: dict[str, Any], shape: tuple[int, ...]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield for each number of a tensor its code and its scales."""
    for name, array in found.items():
        axes = field.axes(name)
        rows = array.reshape(-1, 1) if axes == "ends" else array
        yield name, of_numbers(rows, sides[axes], shape)


# ---------------------------------------------------------------- the choices of scales


def _scales(field: _Field) -> Iterator[_Choice]:
    """Yield the choices of scales that are tried, the simplest first."""
    first = field.entries.samples[0]
    _, *taken = field.taken(first)
    if given := [name for name in taken if name in first.pairs]:
        yield _Choice(f"with the given {_names(given)}", lambda one, at: _at(one.given, at))
    own = [name for name in taken if field.axes(name) in ("grid", "unit")]
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
    alone = [[name] for name in taken if field.axes(name) in _PARTS]
    for names in dict.fromkeys(map(tuple, (own, *alone))):
        yield from _elsewhere(field, names)


def _elsewhere(field: _Field, names: tuple[str, ...]) -> Iterator[_Choice]:
    """Yield the choices of scales of other blocks, units or pairs, and those of one everywhere."""
    blocks = {name: _blocks(field, name) for name in names}
    (first, entries), axes = next(iter(blocks.items())), field.axes(names[0])
    if field.neutral(first) is None:
        for value in np.unique(entries.expected):
            yield _Choice(f"with {first} {value} everywhere", _same(first, value))
    for one in maps(entries):
        where = f"the {_PARTS[axes]} at {one.words}" if one.words.startswith("[") else one.words
        words = f"with the expected {_names([*names])} of {where}"
        yield _Choice(words, _of_map(one, axes, blocks))


def _names(names: list[str]) -> str:
    return " and ".join(names)


def _at(fields: Fields, at: Integers) -> Fields:
    return {name: array[at] for name, array in fields.items()}


def _ones(field: _Field, names: list[str]) -> Callable[[_Case, Integers], Fields]:
    """Return the scales 1."""
    return lambda one, at: {
        name: np.full_like(one.known[name][at], field.neutral(name)) for name in names
    }


def _same(name: str, value: int) -> Callable[[_Case, Integers], Fields]:
    """Return one value for all."""
    return lambda one, at: {name: np.full_like(one.known[name][at], value)}


def _inverse(field: _Field, name: str) -> Callable[[_Case, Integers], Fields]:
    """Return the inverse scales, of powers of two or of binary32."""

    def fields(one: _Case, at: Integers) -> Fields:
        own = one.known[name][at]
        if field.format(name) == "e8m0":
            return {name: np.where(own < 255, 254 - own, own).astype(own.dtype)}
        with np.errstate(all="ignore"):
            return {name: (np.float32(1) / own.view(np.float32)).view(np.uint32)}

    return fields


def _blocks(field: _Field, name: str) -> Entries:
    """Return the expected scales of the blocks of all cases as entries. No entry differs."""
    found = []
    for one in field.entries.samples:
        bits = _fields_of(field, one)[0][name]
        same = Pair(bits, bits, np.zeros(bits.shape, np.bool_))
        found.append(replace(one, pairs={name: same}))
    return joined(name, found, is_packed=False)


def _of_map(by: Map, axes: str, blocks: dict[str, Entries]) -> Callable[[_Case, Integers], Fields]:
    """Return the scales of other blocks or pairs; the own one if there is no other."""

    def fields(one: _Case, at: Integers) -> Fields:
        own = one.part[axes][at]
        source = by.source(next(iter(blocks.values())), own)
        there = np.where(source < 0, own, source)
        return {
            name: entries.expected[there].astype(one.known[name].dtype)
            for name, entries in blocks.items()
        }

    return fields
