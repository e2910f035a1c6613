"""Where the results of a candidate differ from a suite's expected ones, bit for bit (CON-001)."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.suite import Case, Field
from mor_ref.golden.model.views import DIGEST, SEPARATOR, digests_shape, seen, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.fields import bytes_of, format_meant, grid_of
from mor_ref.verify.candidates.candidate import NoArray
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed, is_nan
from mor_ref.verify.comparing.cells import picture_of_marks
from mor_ref.verify.comparing.difference import MOST_ENTRIES, Difference, Entry, KindOfEntries
from mor_ref.verify.comparing.digests import with_allowed_nans
from mor_ref.verify.comparing.inputs_of_entry import Index, Input, origins
from mor_ref.verify.comparing.integers import bits_given
from mor_ref.verify.comparing.kinds import MismatchKind, kinds_of
from mor_ref.verify.comparing.moving_layouts import is_moving, moved_back, named_otherwise
from mor_ref.verify.comparing.names_given import misnamed
from mor_ref.verify.comparing.nibbles import first_unlike, format_of_nibbles, of_halves
from mor_ref.verify.comparing.outside_domain import in_views

MISSING = "is missing"


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


class Placed(NamedTuple):
    """Place of a part of a field: its first row in x and in the field, and the field's shape."""

    row_of_x: int
    row: int
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ComparedField:
    """A field of a case next to the given array, both in the same view.

    `field` is its name in the answer, and `suite_field` its name in the suite. If its view only
    moves entries, it `is_plain`: both arrays are plain, and `padding` counts the entries of the
    view beyond these that are not 0. `differs` marks the entries that differ, and `count` is their
    number; `problem` says why nothing could be compared. Where other bits are allowed, `actual` has
    the expected ones, and they are counted. So it has where entries are `left_out`.
    """

    case: str
    field: str
    suite_field: str
    format: str
    expected: Unsigned
    actual: NDArray[Any]
    differs: NDArray[np.bool_]
    count: int
    problem: str | None = None
    allowed_nans: int = 0
    allowed_zeros: int = 0
    padding: int = 0
    is_plain: bool = False
    left_out: NDArray[np.bool_] | None = None

    @property
    def view(self) -> str:
        """The name of the arrays: that of the suite, unless they are in a view of the answer."""
        return self.field if SEPARATOR in self.field and not self.is_plain else self.suite_field

    def difference(
        self, operation: str, asked: Case | None, placed: Placed | None = None
    ) -> Difference:
        """Return the comparison as a record.

        `asked` is the case without expected fields, or None if its inputs are not known. If the
        field is `placed`, it is a part of a larger one.
        """
        shape, whole = self.expected.shape, placed or Placed(0, 0, self.expected.shape)
        names, size = (self.case, self.field, self.suite_field, self.format), math.prod(whole.shape)
        if self.problem is not None:
            return Difference(*names, 0, size, whole.shape, problem=self.problem)
        views = self.suite_field, self.view
        inputs_of = None if asked is None else origins(operation, asked, *views, whole.row_of_x)
        entry_of = partial(self._entry, whole.row, inputs_of)
        entries = tuple(entry_of(place) for place in _first_places(self.differs))
        nans = int((self.differs & _both_nan(self)).sum())
        nibbles = format_of_nibbles(operation, self.format, *views)
        places = np.flatnonzero(self.differs)
        kinds = tuple(
            KindOfEntries(kind.words, kind.entries, entry_of(place))
            for kind in self._kinds(nibbles)
            for place in [tuple(map(int, np.unravel_index(places[kind.place], shape)))]
        )
        picture = picture_of_marks(self.differs, whole.row, whole.shape)
        grid = None if asked is None else grid_of(self.suite_field, asked.parameters)
        return Difference(
            *names,
            self.count,
            size,
            whole.shape,
            entries,
            picture,
            None,
            nans,
            kinds,
            nibbles,
            self.padding,
            are_signed=grid is not None and grid.signed,
        )

    def _kinds(self, nibbles: str | None) -> list[MismatchKind]:
        """Return how the entries differ; of bytes with two codes, how the first code does."""
        actual, expected = self.actual[self.differs], self.expected[self.differs]
        if nibbles is not None:
            return kinds_of(*first_unlike(actual, expected), nibbles)
        return kinds_of(actual, expected, self.format if _has_values(self) else None)

    def _entry(
        self, row: int, inputs_of: Callable[[Index], tuple[Input, ...]] | None, place: Index
    ) -> Entry:
        inputs = inputs_of(place) if inputs_of else ()
        at = (place[0] + row, *place[1:])
        return Entry(at, int(self.expected[place]), int(self.actual[place]), inputs)


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
    problems = misnamed(fields, answer, case.parameters)
    for field in fields:
        if field.name in case.arrays:
            name = chosen.get(field.name, field.name)
            names = case.name, name, field.name, format_meant(field.format, case.parameters)
            problem, expected, actual = problems.get(field.name), case.arrays[field.name], None
            if problem is None:
                fmt, given = _format_of_given(operation, field, name, case), answer.get(name)
                bits = bits_given(field.name, bytes_of(fmt), case.parameters, given)
                expected, actual = paired(case, field.name, name, bits)
                problem = problem_of(actual, expected)
                if problem is not None:
                    problem += named_otherwise(field, name, case.arrays[field.name], given)
            if problem is None:
                found, nans = with_allowed_nans(case, field.name, fmt, bits, actual, allowed)
                marks = viewed = left_out.get(field.name)
                if marks is not None and marks.any():
                    views = split(name)[1] or split(field.name)[1]
                    viewed = in_views(marks, views, case.parameters)
                    found = np.where(viewed, expected, found)
                if SEPARATOR not in field.name and is_moving(name):
                    one = _of_moved(operation, names, case, expected, found, allowed)
                else:
                    one = _compared(operation, names, expected, found, allowed)
                nans += one.allowed_nans
                yield replace(one, left_out=marks if one.is_plain else viewed, allowed_nans=nans)
            else:
                nothing = np.zeros(0, np.bool_)
                yield ComparedField(*names, expected, nothing, nothing, 0, problem)


def _format_of_given(operation: str, field: Field, name: str, case: Case) -> str:
    """Return the format of a field as it was given: without a view, it is that of the operation."""
    plain = field.name.partition(SEPARATOR)[0]
    fmt = OPERATIONS[operation].field(plain)[0] if name == plain else field.format
    return format_meant(fmt, case.parameters)


_Names = tuple[str, str, str, str]


def _of_moved(
    operation: str,
    names: _Names,
    case: Case,
    expected: Unsigned,
    bits: NDArray[Any],
    allowed: Allowed,
) -> ComparedField:
    """Compare a view that moves entries; if it differs, entry by entry of the plain array."""
    plain = case.arrays[names[2]]
    if np.array_equal(bits, expected):
        return _compared(operation, names, plain, plain, allowed, is_plain=True)
    moved = moved_back(names[1], bits, plain)
    found = _compared(operation, names, plain, moved.plain, allowed, is_plain=True)
    if moved.padding and not found.count:
        return replace(found, problem=moved.only_padding)
    return replace(found, padding=moved.padding)


def _compared(
    operation: str,
    names: _Names,
    expected: Unsigned,
    bits: NDArray[Any],
    allowed: Allowed,
    *,
    is_plain: bool = False,
) -> ComparedField:
    differs, counts = bits != expected, (0, 0)
    _, field, suite_field, fmt = names
    field = suite_field if is_plain else field
    nibbles = format_of_nibbles(operation, fmt, suite_field, field)
    if not allowed.is_nothing and (nibbles or _is_of_codes(fmt, field, suite_field)):
        meant = formats[nibbles or fmt]
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
    return ComparedField(*names, expected, bits, differs, count, None, *counts, is_plain=is_plain)


def _is_of_codes(fmt: str, *names: str) -> bool:
    """Return whether a field, under its names, has a code of a format in each entry."""
    return fmt in formats and not {"packed", DIGEST} & {v for name in names for v in split(name)[1]}


def _has_values(compared: ComparedField) -> bool:
    """Return whether each entry is a number: of a format, or a whole one."""
    names = compared.view, compared.suite_field
    views = {view for name in names for view in split(name)[1]}
    return "packed" not in names and not {"packed", DIGEST} & views


def _both_nan(compared: ComparedField) -> NDArray[np.bool_]:
    """Return where both have a NaN; nowhere if the entries are not codes."""
    if not _is_of_codes(compared.format, compared.view, compared.suite_field):
        return np.zeros(compared.differs.shape, np.bool_)
    fmt = formats[compared.format]
    return is_nan(compared.actual, fmt) & is_nan(compared.expected, fmt)


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


def _first_places(differs: NDArray[np.bool_]) -> Iterator[Index]:
    """Yield the first marked places; the places of all would take eight bytes for each."""
    flat, at = differs.reshape(-1), 0
    for _ in range(min(MOST_ENTRIES, int(np.count_nonzero(flat)))):
        at += int(flat[at:].argmax())
        yield tuple(map(int, np.unravel_index(at, differs.shape)))
        at += 1
