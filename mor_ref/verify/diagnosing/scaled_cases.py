"""Numbers of cases one after the other, each with its scales, for a diagnosis of scales."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.call import Parameters
from mor_ref.operations.operation import Operation, WayBack
from mor_ref.operations.shapes import Sides, groups_of_columns, sides_of, spread_to_numbers
from mor_ref.verify.diagnosing.entries import Entries, Integers
from mor_ref.verify.diagnosing.sample import Sample

# The parts that have a scale, by their axes.
PARTS = {"grid": "block", "unit": "unit", "pair": "pair", "groups": "group", "ends": "tensor"}
IN_PLACE, INVERSE = "groups of columns in place", "groups of the inverse order"
_ORDER = "permutation"
_ONE = {"f32": 0x3F800000, "e4m3": 0x38, "e8m0": 127}  # the code of 1 in formats of scales

Fields = dict[str, NDArray[Any]]


class ScaledCase(NamedTuple):
    """The numbers of a case one after the other, with their places among the entries of a field.

    `known` has x or the code of each number, and its expected scales. `given` has the scales of the
    candidate. `part` has, for each number, the place of its block, pair or group among all cases,
    and the places of groups that kernels confuse with it.
    """

    parameters: Parameters
    places: Integers
    part: dict[str, Integers]
    known: Fields
    given: Fields


class ScaledField(NamedTuple):
    """A field of numbers, its operation, and the step that makes codes, or y of codes."""

    entries: Entries
    operation: Operation
    way: WayBack
    step: Callable[[Parameters, Fields], NDArray[Any]]

    def axes(self, name: str) -> str:
        """Return the axes of another field."""
        return self.operation.field(name).axes

    def is_of_ends(self, name: str) -> bool:
        """Return whether another field has one entry for each row or for the whole tensor."""
        return name in self.operation.outputs and self.axes(name) == "ends"

    def format(self, name: str) -> str:
        """Return the format of another field."""
        return self.operation.field(name).format

    def neutral(self, name: str) -> int | None:
        """Return the bits of another field that change nothing, or None."""
        return self.way.neutral.get(name, _ONE.get(self.format(name)))

    def taken(self, sample: Sample) -> list[str]:
        """Return the names of the code and the scales that the field follows from."""
        names = self.way.followed(sample.question.parameters, self.entries.field)
        return [name for name in names if name != _ORDER]

    @property
    def is_of_codes(self) -> bool:
        """Whether the field follows from codes, and not from x."""
        return self.entries.field == "y" and "y" not in self.way.chosen


class _Placed(NamedTuple):
    """The place of the part of each number in a tensor, by the axes of parts."""

    sides: dict[str, Sides]
    shape: Sides
    part: dict[str, Integers]

    def of_numbers(self, array: NDArray[Any], axes: str) -> NDArray[Any]:
        """Return the entry of each number."""
        if axes == "groups":
            found: NDArray[Any] = array.reshape(-1)[self.part[axes]]
            return found
        return spread_to_numbers(
            array.reshape(-1, 1) if axes == "ends" else array, self.sides[axes], self.shape
        )


def cases_of(field: ScaledField) -> Iterator[ScaledCase]:
    """Yield the cases; a nibble of padding has no number."""
    e = field.entries
    before = dict.fromkeys(PARTS, 0)
    for sample, of_case in zip(e.samples, e.slices, strict=True):
        asked = sample.question
        expected, given = fields_of(field, sample)
        here = _placed(asked.parameters, expected.get(_ORDER), asked.arrays["x"].shape)
        places = np.arange(of_case.start, of_case.stop)[e.column[of_case] < here.shape[1]]
        own = e.row[places], e.column[places]
        firsts = before | dict.fromkeys((IN_PLACE, INVERSE), before["groups"])
        part = {axes: firsts[axes] + each[own] for axes, each in here.part.items()}
        before |= {
            k: before[k] + int(here.part[k].max(initial=-1)) + 1 for k in PARTS.keys() & part.keys()
        }
        known = _each(field, expected, here, own)
        coded, *_ = field.taken(sample)
        code = known.pop(coded)
        others = _each(field, given, here, own)
        if field.is_of_codes:
            known["code"] = others.get("code", code)
        else:
            more = field.way.known(asked.parameters, asked.arrays, e.field)
            known |= {name: array[own] for name, array in (("x", asked.arrays["x"]), *more.items())}
        others.pop(coded, None)
        yield ScaledCase(_of_single_numbers(asked.parameters), places, part, known, others)


def _placed(parameters: Parameters, order: NDArray[Any] | None, shape: Sides) -> _Placed:
    """Return the parts of each number in a tensor; `order` is the order of columns for groups."""
    sides = sides_of("rc", parameters, shape)
    part = {name: _places_of_parts(sides[name], shape) for name in PARTS if name in sides}
    if order is not None:
        columns = order.reshape(-1).astype(np.int64)
        for name, place in (
            ("groups", np.argsort(columns)),
            (IN_PLACE, np.arange(columns.size)),
            (INVERSE, columns),
        ):
            part[name] = np.broadcast_to(groups_of_columns(place, parameters), shape)
    return _Placed(sides, shape, part)


def _places_of_parts(sides: Sides, shape: Sides) -> Integers:
    """Return, for each number, the place of its part, row by row."""
    grid = [-(-size // side) for size, side in zip(shape, sides, strict=True)]
    return spread_to_numbers(np.arange(grid[0] * grid[1]).reshape(grid), sides, shape)


def _of_single_numbers(parameters: Parameters) -> Parameters:
    """Return parameters for a tensor of one column in which each number is a block."""
    ones = {"block": 1 if isinstance(parameters.get("block"), int) else [1, 1], "tile": [1, 1]}
    return {name: ones.get(name, value) for name, value in parameters.items()}


def fields_of(field: ScaledField, sample: Sample) -> tuple[Fields, Fields]:
    """Return the expected and the given code, scales and order; not all of these may be given."""
    asked = sample.question
    names = field.way.followed(asked.parameters, field.entries.field)
    pairs = {name: sample.pairs[name] for name in names if name in sample.pairs}
    expected = {name: pair.expected for name, pair in pairs.items()}
    if len(pairs) < len(names):
        found = field.operation.engine(asked.parameters, asked.arrays)
        expected = {name: found[name] for name in names} | expected
    return expected, {name: pair.given for name, pair in pairs.items()}


def _each(
    field: ScaledField, found: Fields, here: _Placed, own: tuple[Integers, Integers]
) -> Fields:
    """Return the code and the scales of each number in a tensor."""
    arrays = {name: array for name, array in found.items() if name != _ORDER}
    return {name: here.of_numbers(array, field.axes(name))[own] for name, array in arrays.items()}
