"""Parts cut out of large tensors to try deviations on, because result files cannot answer again.

A part consists of whole blocks. It is used only for the fields whose expected bits the exact model
computes from the part alone. If the fields depend on the amax of the tensor, the amax is given.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.model.views import SEPARATOR
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.parameters import RECIPE
from mor_ref.operations.shapes import sides_of
from mor_ref.verify.comparing.compared_field import ComparedField
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.values import Marks, values_of
from mor_ref.verify.quantize_by_rows import AT_ONCE, amax_of

_SIDES = 64, 128  # least rows and columns of a part, unless the tensor ends
_MOST = 1 << 14  # numbers of a part
_CASES = 3

_Window = tuple[slice, ...]


class _Part(NamedTuple):
    """A part of a case, with the fields of the answer.

    `left_out` marks the entries of fields that are not compared.
    """

    case: Case
    given: Mapping[str, Any]
    differing: int
    left_out: Mapping[str, Marks]


def parts_of(evidence: Evidence) -> Evidence | None:
    """Return parts of the tensors of a suite that differ, as cases; None if there are none."""
    if OPERATIONS[evidence.operation].first_axes != "rc":
        return None
    wrong = [
        case
        for case in evidence.cases
        if RECIPE not in case.parameters and any(one.count for one in _compared(evidence, case))
    ]
    found = [part for case in wrong[:_CASES] for part in _parts_of_case(evidence, case)]
    if not found:
        return None
    answers = {part.case.name: part.given for part in found}
    cases = [one.case for one in found]
    return replace(
        evidence,
        cases=cases,
        answers=answers,
        other_cases=(),
        is_of_parts=True,
        entries_left_out={part.case.name: part.left_out for part in found},
    )


def _compared(evidence: Evidence, case: Case) -> list[ComparedField]:
    """Return the comparisons of whole fields, in rows and columns."""
    return [one for name, one in evidence.compared(case.name).items() if SEPARATOR not in name]


def _parts_of_case(evidence: Evidence, case: Case) -> Iterator[_Part]:
    """Yield the parts with the largest number, the first mismatch and the last mismatch."""
    asked, operation = question(evidence.fields, case), evidence.operation
    compared, first = _compared(evidence, case), evidence.strip.first if evidence.strip else 0
    parameters = [asked.parameters]
    is_given = {"amax", "global_scale", "scale"} & {*asked.parameters}
    if OPERATIONS[operation].whole_amax is not None and not is_given:
        amax = amax_of(operation, asked)
        parameters += [{**asked.parameters, "amax": amax}] if np.isfinite(amax) else []
    for place, sides in dict.fromkeys(_windows(operation, asked, compared)):
        window = tuple(slice(at, at + side) for at, side in zip(place, sides, strict=True))
        parts = [_part(operation, asked, compared, window, one, first) for one in parameters]
        best = max(parts, key=lambda part: part.differing)
        if best.differing:
            yield best


def _windows(
    operation: str, asked: Case, compared: list[ComparedField]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the first row and column of parts, and their sides."""
    shape = asked.arrays["x"].shape
    sides = sides_of("rc", asked.parameters, shape)
    block = sides["grid"]
    if block == shape:
        block = 1, 1  # a part has the scale of all, if the amax is given
    if sides["ends"][0] == 1 < shape[0]:
        block = block[0], shape[1]  # each row has a scale
    part = _sides(block, shape)
    if min(part[0], shape[0]) * min(part[1], shape[1]) > _MOST:
        return
    for place in _places(operation, asked, compared, sides):
        yield tuple(at // side * side for at, side in zip(place, part, strict=True)), part


def _sides(block: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sides of a part: whole blocks, at least one, within the limits of a part."""
    rows = max(1, _SIDES[0] // block[0]) * block[0]
    most = min(_SIDES[1], _MOST // min(rows, shape[0]))
    columns = max(1, most // block[1]) * block[1]
    most = min(_SIDES[0], _MOST // min(columns, shape[1]))
    return max(1, most // block[0]) * block[0], columns


def _places(
    operation: str, asked: Case, compared: list[ComparedField], sides: Mapping[str, Any]
) -> Iterator[tuple[int, int]]:
    """Yield the places in x of the largest number, and of the first and the last mismatch."""
    yield _place_of_largest(asked)
    for one in compared:
        axes = OPERATIONS[operation].field(one.suite_field).axes
        if one.count and axes in sides and one.expected.ndim == 2:
            flat = one.differs.reshape(-1)
            for at in (int(flat.argmax()), flat.size - 1 - int(flat[::-1].argmax())):
                yield _place(at, one.expected.shape, sides[axes])
            return


def _place_of_largest(asked: Case) -> tuple[int, int]:
    """Return the place of the largest finite magnitude, with some rows in memory at a time."""
    x, source = asked.arrays["x"], asked.parameters["source"]
    rows = max(1, AT_ONCE // x.shape[1])
    best, place = -1.0, (0, 0)
    for first in range(0, len(x), rows):
        some = x[first : first + rows]
        numbers = np.abs(values_of(some, source)).reshape(-1)
        numbers = np.where(np.isfinite(numbers), numbers, 0)
        at = int(numbers.argmax())
        if numbers[at] > best:
            row, column = np.unravel_index(at, some.shape)
            best, place = float(numbers[at]), (first + int(row), int(column))
    return place


def _place(at: int, shape: tuple[int, ...], sides: tuple[int, ...]) -> tuple[int, int]:
    row, column = np.unravel_index(at, shape)
    return int(row) * sides[0], int(column) * sides[1]


def _part(
    operation: str,
    asked: Case,
    compared: list[ComparedField],
    window: _Window,
    parameters: Parameters,
    first: int,
) -> _Part:
    """Return a part of a case, with the fields that follow from the part alone."""
    shape = asked.arrays["x"].shape
    x = {name: np.ascontiguousarray(array[window]) for name, array in asked.arrays.items()}
    sides = sides_of("rc", asked.parameters, shape)
    model = OPERATIONS[operation].exact(parameters, x)
    expected, given, differing = dict[str, Any](), dict[str, Any](), 0
    left_out = dict[str, Marks]()
    for one in compared:
        axes = OPERATIONS[operation].field(one.suite_field).axes
        is_of_all = axes == "unit" and sides[axes] != sides["grid"]  # a decision on the tensor
        own = None if is_of_all else _inside(one, window, sides.get(axes))
        if own is not None and _is_same(model, one, own):
            expected[one.suite_field] = one.expected[own]
            given[one.suite_field] = one.actual[own]
            differing += int(np.count_nonzero(one.differs[own]))
            if one.left_out is not None:
                left_out[one.suite_field] = one.left_out[own]
    ends = zip(window, shape, strict=True)
    (top, bottom), (left, right) = ((part.start, min(part.stop, side)) for part, side in ends)
    rows, columns = f"{first + top}:{first + bottom}", f"{left}:{right}"
    name = f"{asked.name}[{rows},{columns}]"
    return _Part(Case(name, parameters, x | expected), given, differing, left_out)


def _inside(
    one: ComparedField, window: _Window, sides: tuple[int, ...] | None
) -> tuple[slice, ...] | None:
    """Return the entries of a field that belong to a part of x; None if its axes are others."""
    if sides is None or one.expected.ndim > len(sides):
        return None
    return tuple(
        slice(part.start // side, -(-part.stop // side))
        for part, side, _ in zip(window, sides, one.expected.shape, strict=False)
    )


def _is_same(model: Arrays, one: ComparedField, own: tuple[slice, ...]) -> bool:
    """Return whether the exact model computes the expected bits from the part."""
    found = model.get(one.suite_field)
    return found is not None and np.array_equal(found, one.expected[own])
