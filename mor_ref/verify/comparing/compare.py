"""Where the results of a candidate differ from a suite's expected ones, bit for bit (CON-001)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST, SEPARATOR, digests_shape, seen, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.fields import Field, bytes_of, format_meant
from mor_ref.operations.shapes import shapes_of
from mor_ref.verify.candidates.candidate import NoArray
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed
from mor_ref.verify.comparing.compared_field import ComparedField, is_of_codes
from mor_ref.verify.comparing.digests import with_allowed_nans
from mor_ref.verify.comparing.integers import bits_given
from mor_ref.verify.comparing.moving_layouts import (
    MovedBack,
    is_moving,
    moved_back,
    named_otherwise,
)
from mor_ref.verify.comparing.names_given import NAME_SHOWN, misnamed, names_given
from mor_ref.verify.comparing.near_ties import FIELDS_OF_CODES, NearTies
from mor_ref.verify.comparing.nibbles import format_of_nibbles, of_halves, one_of_each_half
from mor_ref.verify.comparing.outside_domain import in_views

MISSING = "is missing"
_Names = tuple[str, str, str, str]  # of the case, of the field in the answer and in the suite; fmt


def paired(case: Case, field: str, name: str, actual: Any) -> tuple[Unsigned, Any]:
    """Return a field as it is expected and as it was given by a name, in the same view."""
    expected = case.arrays[field]
    if name == field:
        return expected, _of_shape(expected, actual)
    views = split(name)[1]
    if views:
        viewed = seen(expected, views, case.parameters)
        return viewed, _of_shape(viewed, actual)
    array = np.asarray(actual)
    # An array without entries could have rows without end, each with its digests.
    if array.dtype.kind in "ui" and digests_shape(array.shape) == expected.shape:
        return expected, seen(array, split(field)[1], case.parameters)
    return expected, actual


def _of_shape(expected: Unsigned, actual: Any) -> Any:
    """Return a single number as the array of one entry that is expected, such as one scale."""
    if actual is None or isinstance(actual, NoArray):
        return actual
    is_single = expected.size == 1 and np.ndim(actual) == 0
    return np.reshape(actual, expected.shape) if is_single else actual


def comparisons(
    operation: str,
    case: Case,
    fields: list[Field],
    answer: Mapping[str, Any],
    chosen: Mapping[str, str],
    allowed: Allowed = EVERY_BIT,
    left_out: Mapping[str, NDArray[np.bool_]] = MappingProxyType({}),
) -> Iterator[ComparedField]:
    """Compare these fields of a case with an answer; `chosen` is from `given_as`.

    `left_out` marks the entries of fields that are not compared.
    """
    given = names_given(fields, answer)
    near = NearTies(operation, case, allowed.ties) if allowed.ties else None
    for field in fields:
        if field.name not in case.arrays:
            continue

        def found_as(name: str, field: Field = field) -> ComparedField:
            names = case.name, name, field.name, format_meant(field.format, case.parameters)
            problem = misnamed(field, name, case.parameters)
            if problem is not None:
                return _not_compared(names, case.arrays[field.name], problem)
            marks = left_out.get(field.name)
            is_near = near if field.name in FIELDS_OF_CODES else None
            given_array = answer.get(name)
            return _comparison(operation, case, field, names, given_array, allowed, marks, is_near)

        name = chosen.get(field.name, field.name)
        found = found_as(name)
        others = (other for other in given.get(field.name, ()) if other != name)
        yield _contradicted(found, map(found_as, others)) if found.matches else found


def _contradicted(found: ComparedField, others: Iterable[ComparedField]) -> ComparedField:
    """Return a field that matches, as one that is not compared if it differs in another view."""
    for other in others:
        if not other.matches:
            names = found.case, found.field, found.suite_field, found.format
            right, wrong = found.field[:NAME_SHOWN], other.field[:NAME_SHOWN]
            problem = f"is as expected as {right!r}, but not as {wrong!r}; give it once"
            return _not_compared(names, found.expected, problem)
    return found


def _comparison(
    operation: str,
    case: Case,
    field: Field,
    names: _Names,
    given: Any,
    allowed: Allowed,
    left_out: NDArray[np.bool_] | None,
    near: NearTies | None,
) -> ComparedField:
    """Compare a field with the array that was given under a name that it can have."""
    name, moved = names[1], None
    fmt = _format_of_given(operation, field, name, case)
    declared = OPERATIONS[operation].field(split(field.name)[0])
    bits = bits_given(declared, bytes_of(fmt), case.parameters, given)
    if _is_of_digests(field) and name != field.name:
        bits, moved = _moved_back(operation, case, name, bytes_of(fmt), bits)
        name = split(name)[0]
    expected, actual = paired(case, field.name, name, bits)
    problem = problem_of(actual, expected)
    if problem is not None:
        problem += named_otherwise(field, names[1], case.arrays[field.name], given)
        return _not_compared(names, expected, problem)
    found, nans = with_allowed_nans(case, field.name, fmt, bits, actual, allowed)
    viewed = left_out
    if left_out is not None and left_out.any():
        viewed = in_views(left_out, split(field.name)[1] or split(name)[1], case.parameters)
        found = np.where(viewed, expected, found)
    if is_moving(name) and not _is_of_digests(field):
        compared = _of_moved(operation, names, case, expected, found, allowed, near)
        viewed = left_out
    else:
        is_plain, other = moved is not None, None
        if near is not None and not np.array_equal(found, expected):
            other, _ = paired(near.other_case, field.name, name, bits)
        compared = _compared(operation, names, expected, found, allowed, other, is_plain=is_plain)
        compared = compared if moved is None else _with_padding(compared, moved)
    nans += compared.allowed_nans
    return replace(compared, left_out=viewed, allowed_nans=nans)


def _not_compared(names: _Names, expected: Unsigned, problem: str) -> ComparedField:
    nothing = np.zeros(0, np.bool_)
    return ComparedField(*names, expected, nothing, nothing, 0, problem)


def _is_of_digests(field: Field) -> bool:
    return DIGEST in split(field.name)[1]


def _format_of_given(operation: str, field: Field, name: str, case: Case) -> str:
    """Return the format of a field as it was given: unless as digests, that of the operation."""
    plain = field.name.partition(SEPARATOR)[0]
    fmt = field.format if name == field.name else OPERATIONS[operation].field(plain).format
    return format_meant(fmt, case.parameters)


def _moved_back(
    operation: str, case: Case, name: str, size: int, bits: Any
) -> tuple[Any, MovedBack | None]:
    """Return a field that was given in a layout as the plain array, which is digested; or why not.

    Without a layout, it is the plain array.
    """
    plain, views = split(name)
    if not views:
        return bits, None
    declared = OPERATIONS[operation]
    first = case.arrays[next(iter(declared.inputs))].shape
    shape = shapes_of(declared.first_axes, case.parameters, first)[declared.field(plain).axes]
    problem = problem_of(bits, seen(np.zeros(shape, f"u{size}"), views, case.parameters))
    if problem is not None:
        return NoArray(problem), None
    moved = moved_back(name, bits, shape, case.parameters)
    return moved.plain, moved


def _of_moved(
    operation: str,
    names: _Names,
    case: Case,
    expected: Unsigned,
    bits: NDArray[Any],
    allowed: Allowed,
    near: NearTies | None,
) -> ComparedField:
    """Compare a view that moves entries; if it differs, entry by entry of the plain array."""
    plain = case.arrays[names[2]]
    if np.array_equal(bits, expected):
        return _compared(operation, names, plain, plain, allowed, None, is_plain=True)
    moved = moved_back(names[1], bits, plain.shape, case.parameters)
    other = None if near is None else near.other_case.arrays[names[2]]
    found = _compared(operation, names, plain, moved.plain, allowed, other, is_plain=True)
    return _with_padding(found, moved)


def _with_padding(found: ComparedField, moved: MovedBack) -> ComparedField:
    """Return the comparison of a plain array with the faults of its layout."""
    if not found.count and moved.problem is not None:
        return replace(found, problem=moved.problem)
    return replace(found, padding=moved.padding)


def _compared(
    operation: str,
    names: _Names,
    expected: Unsigned,
    bits: NDArray[Any],
    allowed: Allowed,
    other: Unsigned | None,
    *,
    is_plain: bool = False,
) -> ComparedField:
    """Compare arrays of one view. `other` has the codes on the other side of ties, if allowed."""
    differs, counts, ties, given = bits != expected, (0, 0), 0, bits
    _, field, suite_field, fmt = names
    field = suite_field if is_plain else field
    nibbles = format_of_nibbles(operation, fmt, suite_field, field)
    if other is not None:
        is_other = one_of_each_half(bits, expected, other) if nibbles else bits == other
        marks = differs & is_other
        differs, bits, ties = differs & ~marks, np.where(marks, expected, bits), int(marks.sum())
    meant = formats.known(nibbles or fmt)
    is_of_each = nibbles or is_of_codes(fmt, field, suite_field)
    if not allowed.is_nothing and meant is not None and is_of_each:
        nans, zeros = (
            of_halves(kind, bits, expected, meant) if nibbles else kind(bits, expected, meant)
            for kind in (allowed.nans, allowed.zeros)
        )
        differs = differs & ~nans & ~zeros
        bits = np.where(nans | zeros, expected, bits)
        counts = int(nans.sum()), int(zeros.sum())
    count = int(np.count_nonzero(differs))
    if not count:  # a mark for each entry of a large tensor takes room
        differs = np.broadcast_to(np.False_, differs.shape)
    return ComparedField(
        *names, expected, bits, differs, count, None, *counts, ties, given=given, is_plain=is_plain
    )


def problem_of(actual: Any, expected: NDArray[Any]) -> str | None:
    """PRO-007: why the given array cannot be compared with the expected one, if it cannot."""
    if actual is None:
        return MISSING
    if isinstance(actual, NoArray):
        return actual.problem
    array = np.asarray(actual)
    if array.dtype.kind not in "ui":
        return f"has dtype {array.dtype}; give bit patterns as unsigned integers"
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        return f"holds {int(array.min())}; give bit patterns as unsigned integers"
    if array.shape != expected.shape:
        return f"has shape {array.shape}, and {expected.shape} is expected"
    return None
