"""The entries of a tensor's fields that may follow from a number outside a domain.

An entry of a block with such a number is left out. The amax of a tensor or of a group can follow
from the number, too: if it is not finite, or is at least as large as all numbers inside. Then the
whole tensor or group is left out if the candidate's scale of it is not the expected one. It is also
left out if the candidate omits this scale and another field differs there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST, SEPARATOR, VIEWS, seen, unsuited
from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import format_meant
from mor_ref.operations.operation import Operation
from mor_ref.operations.shapes import sides_of, spread_to_numbers
from mor_ref.recipes import Asked, rungs_of
from mor_ref.verify.candidates.candidate import Answer
from mor_ref.verify.comparing.integers import bits_given
from mor_ref.verify.comparing.values import Floats, Marks, values_of

_OF_AMAX = ("ends", "group")  # axes of the fields that follow from the amax of more than a block
_BLOCKS = ("grid", "unit")


def is_of_one_tensor(operation: Operation) -> bool:
    """Return whether the entries of fields follow from blocks of a tensor, and from an amax."""
    is_in_order = "groups" in operation.parameters  # of all of its columns
    return operation.first_axes == "rc" and [*operation.inputs] == ["x"] and not is_in_order


def left_out(operation: str, case: Case, answer: Answer, outside: Marks) -> dict[str, Marks]:
    """Return the marks of the entries that are left out of each field, and of x itself.

    `outside` marks the numbers of x that are outside the domain.
    """
    shape = case.arrays["x"].shape
    sides = sides_of("rc", case.parameters, shape)
    numbers = outside.copy()
    for axes in _BLOCKS:
        numbers |= spread_to_numbers(_any(outside, sides[axes]), sides[axes], shape)
    fields = {name: axes for name, axes in _outputs(operation).items() if name in case.arrays}
    may_be = {axes: _may_be_amax(operation, case, outside, sides[axes]) for axes in _OF_AMAX}
    for name, axes in fields.items():
        if axes in _OF_AMAX:
            given = _bits(operation, case, name, answer.get(name))
            differs = _differs(case.arrays[name], given).reshape(may_be[axes].shape)
            numbers |= spread_to_numbers(may_be[axes] & differs, sides[axes], shape)
    if not any(axes in _OF_AMAX and name in answer for name, axes in fields.items()):
        whole = _axes_of_amax(operation, case.parameters)
        if whole is not None and may_be[whole].any():
            left = {name: _any(numbers, sides[axes]) for name, axes in fields.items()}
            other = np.zeros(shape, np.bool_)
            for name, marks in _differing(operation, case, answer, left):
                other |= spread_to_numbers(marks, sides[fields[name]], shape)
            numbers |= spread_to_numbers(
                may_be[whole] & _any(other, sides[whole]), sides[whole], shape
            )
    found = {
        name: _of_axes(may_be[axes] if axes in _OF_AMAX else _any(numbers, sides[axes]), axes)
        for name, axes in fields.items()
    }
    return {**found, "x": numbers}


def in_views(marks: Marks, views: list[str], parameters: Parameters) -> Marks:
    """Return the marks of a field in other layouts."""
    if DIGEST in views:
        return np.full(seen(marks.astype(np.uint8), views, parameters).shape, marks.any())
    plain = [view for view in views if view != "reciprocal"]
    found: Marks = seen(marks.astype(np.uint8), plain, parameters) != 0
    return found


def _outputs(operation: str) -> Mapping[str, str]:
    return {name: field.axes for name, field in OPERATIONS[operation].outputs.items()}


def _axes_of_amax(operation: str, parameters: Parameters) -> str | None:
    """Return the axes of the scale that follows from the amax of more than a block, if one does."""
    if {"amax", "global_scale"} & parameters.keys():  # it is given
        return None
    asked = Asked(operation, parameters)
    for one in (asked, *rungs_of(asked).values()):
        whole = OPERATIONS[one.operation].whole_amax
        axes = {*_outputs(one.operation).values()}
        if "ends" in axes or (whole is not None and whole.is_needed(one.parameters)):
            return "group" if "group" in axes and one is asked else "ends"
    return None


def _differing(
    operation: str, case: Case, answer: Answer, left: Mapping[str, Marks]
) -> Iterator[tuple[str, Marks]]:
    """Yield where fields differ beyond the marks that are left out.

    A field in another layout differs everywhere if it does at all.
    """
    for key, given in answer.items():
        name, *views = key.split(SEPARATOR)
        if name not in left or not VIEWS.keys() >= {*views} or unsuited(views, case.parameters):
            continue
        expected = seen(case.arrays[name], views, case.parameters)
        differs = _differs(expected, _bits(operation, case, name, given)) & ~in_views(
            left[name], views, case.parameters
        )
        yield name, np.full(left[name].shape, differs.any()) if views else differs


def _may_be_amax(operation: str, case: Case, outside: Marks, sides: tuple[int, ...]) -> Marks:
    """Return in which parts of x the amax may follow from a number outside."""
    fmt = format_meant(OPERATIONS[operation].inputs["x"].format, case.parameters)
    values: Floats = np.abs(values_of(case.arrays["x"], fmt))
    finite = np.where(np.isfinite(values), values, 0)
    inside = _largest(np.where(outside, 0, finite), sides)
    without = _any(outside & ~np.isfinite(values), sides)
    found: Marks = _any(outside, sides) & (
        without | (_largest(np.where(outside, finite, 0), sides) >= inside)
    )
    return found


def _bits(operation: str, case: Case, field: str, given: Any) -> Any:
    declared = OPERATIONS[operation].field(field)
    return bits_given(declared, case.arrays[field].itemsize, case.parameters, given)


def _differs(expected: NDArray[Any], given: Any) -> Marks:
    """Return where a field that was given differs; nowhere if it was not, or not so."""
    if not isinstance(given, np.ndarray) or given.size != expected.size:
        return np.zeros(expected.shape, np.bool_)
    found: Marks = given.reshape(expected.shape) != expected
    return found


def _of_axes(marks: Marks, axes: str) -> Marks:
    """Return marks of parts in the shape of a field: one of whole rows has one axis."""
    return marks[:, 0] if axes == "ends" else marks


def _any(marks: Marks, sides: tuple[int, ...]) -> Marks:
    return _of_blocks(np.logical_or, marks, sides)


def _largest(values: Floats, sides: tuple[int, ...]) -> Floats:
    return _of_blocks(np.maximum, values, sides)


def _of_blocks(combined: np.ufunc, entries: NDArray[Any], sides: tuple[int, ...]) -> NDArray[Any]:
    """Combine the entries of each block."""
    rows, columns = (
        np.arange(0, size, side) for size, side in zip(entries.shape, sides, strict=True)
    )
    found: NDArray[Any] = combined.reduceat(
        combined.reduceat(entries, rows, axis=0), columns, axis=1
    )
    return found
