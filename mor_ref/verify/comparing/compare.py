"""Where the results of a candidate differ from a suite's expected ones, bit for bit (CON-001)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.suite import Case, Field
from mor_ref.golden.model.views import DIGEST, SEPARATOR, digests_shape, seen, split, unsuited
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.fields import format_meant
from mor_ref.operations.operation import Parameters
from mor_ref.verify.candidates.candidate import NoArray
from mor_ref.verify.comparing.allowed import EVERY_BIT, Allowed, is_nan
from mor_ref.verify.comparing.difference import Difference, Entry, KindOfEntries
from mor_ref.verify.comparing.inputs_of_entry import Index, Input, origins
from mor_ref.verify.comparing.kinds import kinds_of
from mor_ref.verify.comparing.moved_back import is_moving, moved_back, named_otherwise

MISSING = "is missing"
_SHOWN = 8  # entries of a field
_NAME_SHOWN = 100  # characters of a name
_PICTURE = (24, 64)  # rows and columns that a picture of mismatches has at most


def fields_of(entry: Mapping[str, Any]) -> list[Field]:
    """Return the fields that the manifest lists for a suite."""
    return [
        Field(f["name"], f["role"], f["format"], f["meaning"], tuple(f["rules"]), tuple(f["views"]))
        for f in entry["fields"]
    ]


def given_as(fields: list[Field], answer: Mapping[str, Any]) -> dict[str, str]:
    """Map each field that an answer has to the name by which the answer has it.

    An answer may have a view of a field (VEC-003), and may omit fields. If it has a field twice,
    the first name counts.
    """
    chosen: dict[str, str] = {}
    for field, name in _given(fields, answer):
        chosen.setdefault(field.name, name)
    return chosen


def _given(fields: list[Field], answer: Mapping[str, Any]) -> Iterator[tuple[Field, str]]:
    """Yield the expected fields that an answer has, each with the name by which it has it."""
    by_name = {split(field.name)[0]: field for field in fields}
    for name in answer:
        field = by_name.get(name.split(SEPARATOR)[0])
        if field is not None and field.role == "expected":
            yield field, name


def misnamed(
    fields: list[Field], answer: Mapping[str, Any], parameters: Parameters
) -> dict[str, str]:
    """Return the expected fields that cannot be compared as an answer names them, and why."""
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for field, name in _given(fields, answer):
        reason = _reason_against(field, name, parameters)
        if field.name in first:
            one = first[field.name][:_NAME_SHOWN]
            reason = f"is given as {one!r} and as {name[:_NAME_SHOWN]!r}; give it once"
        if reason is not None:
            found.setdefault(field.name, reason)
        first.setdefault(field.name, name)
    return found


def _reason_against(field: Field, name: str, parameters: Parameters) -> str | None:
    """Return why a field cannot be given by a name, or None."""
    if name == field.name:
        return None
    base, *views = name.split(SEPARATOR)
    unknown = [view for view in views if view not in field.views]
    if unknown:
        known = ", ".join(field.views) or "none"
        return f"is given, but {base} has no view {unknown[0][:_NAME_SHOWN]!r}; it has {known}"
    if len(set(views)) < len(views):  # replicated so often, it would fill the memory
        return f"is a view of a view of the same name; give a view of {base} once"
    reason = unsuited(views, parameters)
    return None if reason is None else f"is given, but {reason}"


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


@dataclass(frozen=True, eq=False)
class Comparison:
    """A field of a case next to the given array, both in the same view.

    `field` is its name in the answer, and `suite_field` its name in the suite. If its view only
    moves entries, it `is_plain`: both arrays are plain, and `padding` counts the entries of the
    view beyond these that are not 0. `differs` marks the entries that differ, and `count` is their
    number; `problem` says why nothing could be compared. Where other bits are allowed, `actual` has
    the expected ones, and they are counted.
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

    @property
    def view(self) -> str:
        """The name of the arrays: that of the suite, unless they are in a view of the answer."""
        return self.field if SEPARATOR in self.field and not self.is_plain else self.suite_field

    def difference(self, operation: str, asked: Case | None) -> Difference:
        """Return the comparison as a record.

        `asked` is the case without expected fields, or None if its inputs are not known.
        """
        names, size = (self.case, self.field, self.suite_field, self.format), self.expected.size
        if self.problem is not None:
            return Difference(*names, 0, size, self.expected.shape, problem=self.problem)
        inputs_of = (
            None if asked is None else origins(operation, asked, self.suite_field, self.view)
        )
        entries = tuple(self._entry(place, inputs_of) for place in _first_places(self.differs))
        nans = int((self.differs & _both_nan(self)).sum())
        fmt = self.format if _has_values(self) else None
        shape, picture = self.expected.shape, _picture(self.differs)
        places = np.flatnonzero(self.differs)
        kinds = tuple(
            KindOfEntries(kind.words, kind.entries, self._entry(place, inputs_of))
            for kind in kinds_of(self.actual[self.differs], self.expected[self.differs], fmt)
            for place in [tuple(map(int, np.unravel_index(places[kind.place], shape)))]
        )
        return Difference(
            *names, self.count, size, shape, entries, picture, None, nans, kinds, self.padding
        )

    def _entry(self, place: Index, inputs_of: Callable[[Index], tuple[Input, ...]] | None) -> Entry:
        inputs = inputs_of(place) if inputs_of else ()
        return Entry(place, int(self.expected[place]), int(self.actual[place]), inputs)


def comparisons(
    case: Case,
    fields: list[Field],
    answer: Mapping[str, Any],
    chosen: Mapping[str, str],
    allowed: Allowed = EVERY_BIT,
) -> Iterator[Comparison]:
    """Compare these fields of a case with an answer; `chosen` is from `given_as`."""
    problems = misnamed(fields, answer, case.parameters)
    for field in fields:
        if field.name in case.arrays:
            name = chosen.get(field.name, field.name)
            names = case.name, name, field.name, format_meant(field.format, case.parameters)
            problem, expected, actual = problems.get(field.name), case.arrays[field.name], None
            if problem is None:
                expected, actual = paired(case, field.name, name, answer.get(name))
                problem = problem_of(actual, expected)
                if problem is not None:
                    problem += named_otherwise(field, name, case.arrays[field.name], actual)
            if problem is None and SEPARATOR not in field.name and is_moving(name):
                yield _of_moved(names, case, expected, np.asarray(actual), allowed)
            elif problem is None:
                yield _compared(names, expected, np.asarray(actual), allowed)
            else:
                nothing = np.zeros(0, np.bool_)
                yield Comparison(*names, expected, nothing, nothing, 0, problem)


_Names = tuple[str, str, str, str]


def _of_moved(
    names: _Names, case: Case, expected: Unsigned, bits: NDArray[Any], allowed: Allowed
) -> Comparison:
    """Compare a view that moves entries; if it differs, entry by entry of the plain array."""
    plain = case.arrays[names[2]]
    if np.array_equal(bits, expected):
        return _compared(names, plain, plain, allowed, is_plain=True)
    moved = moved_back(names[1], bits, plain)
    found = _compared(names, plain, moved.plain, allowed, is_plain=True)
    if moved.padding and not found.count:
        return replace(found, problem=moved.only_padding)
    return replace(found, padding=moved.padding)


def _compared(
    names: _Names,
    expected: Unsigned,
    bits: NDArray[Any],
    allowed: Allowed,
    *,
    is_plain: bool = False,
) -> Comparison:
    differs, counts = bits != expected, (0, 0)
    _, field, suite_field, fmt = names
    if not allowed.is_nothing and _is_of_codes(
        fmt, suite_field if is_plain else field, suite_field
    ):
        meant = formats[fmt]
        nans = allowed.nans(bits, expected, meant)
        zeros = allowed.zeros(bits, expected, meant)
        differs = differs & ~nans & ~zeros
        bits = np.where(nans | zeros, expected, bits)
        counts = int(nans.sum()), int(zeros.sum())
    count = int(np.count_nonzero(differs))
    if not count:  # a mark for each entry of a large tensor takes room
        differs = np.broadcast_to(np.False_, differs.shape)
    return Comparison(*names, expected, bits, differs, count, None, *counts, is_plain=is_plain)


def _is_of_codes(fmt: str, *names: str) -> bool:
    """Return whether a field, under its names, has a code of a format in each entry."""
    return fmt in formats and not {"packed", DIGEST} & {v for name in names for v in split(name)[1]}


def _has_values(compared: Comparison) -> bool:
    """Return whether each entry is a number: of a format, or a whole one."""
    names = compared.view, compared.suite_field
    views = {view for name in names for view in split(name)[1]}
    return "packed" not in names and not {"packed", DIGEST} & views


def _both_nan(compared: Comparison) -> NDArray[np.bool_]:
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
        return f"is not an array ({actual.reason}); give NumPy arrays"
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
    for _ in range(min(_SHOWN, int(np.count_nonzero(flat)))):
        at += int(flat[at:].argmax())
        yield tuple(map(int, np.unravel_index(at, differs.shape)))
        at += 1


def _picture(wrong: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Count the entries that differ in each cell of a coarse grid over the field."""
    flat = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim > 1 else wrong.reshape(1, -1)
    edges = [
        np.unique(np.linspace(0, side, min(side, most) + 1).astype(int))[:-1]
        for side, most in zip(flat.shape, _PICTURE, strict=True)
    ]
    ends = [*edges[0][1:], len(flat)]
    by_rows = [flat[i:j].sum(axis=0) for i, j in zip(edges[0], ends, strict=True)]
    counts = np.add.reduceat(by_rows, edges[1], axis=1)
    return tuple(tuple(row) for row in counts.tolist())
