"""A field of an answer next to the expected one, and the record of their differences."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST, SEPARATOR, split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.verify.comparing.allowed import is_nan
from mor_ref.verify.comparing.cells import picture_of_marks
from mor_ref.verify.comparing.difference import MOST_ENTRIES, Difference, Entry, KindOfEntries
from mor_ref.verify.comparing.inputs_of_entry import Index, Input, origins
from mor_ref.verify.comparing.kinds import MismatchKind, kinds_of
from mor_ref.verify.comparing.nibbles import first_unlike, format_of_nibbles


class Placed(NamedTuple):
    """Place of a part of a field: its first row in x and in the field, and the field's shape."""

    row_of_x: int
    row: int
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ComparedField:
    """A field of a case next to the given array, both in the same view.

    `field` is its name in the answer, and `suite_field` its name in the suite. If its view leads
    back to the plain array, it `is_plain`: both arrays are as the suite has them, and `padding`
    counts the entries of the view beyond these that are not 0. `differs` marks the entries that
    differ, and `count` is their number; `problem` says why nothing could be compared. Where other
    bits are allowed, `actual` has the expected ones, and they are counted. So it has where entries
    are `left_out`. `given` has the bits before that.
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
    allowed_ties: int = 0
    padding: int = 0
    is_plain: bool = False
    left_out: NDArray[np.bool_] | None = None
    given: NDArray[Any] | None = None

    @property
    def matches(self) -> bool:
        """Whether it could be compared, and nothing differs."""
        return self.problem is None and not self.count

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
        declared = OPERATIONS[operation].field(split(self.suite_field)[0])
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
            are_signed=declared.signed and _has_values(self),
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


def is_of_codes(fmt: str, *names: str) -> bool:
    """Return whether a field, under its names, has a code of a format in each entry."""
    return fmt in formats and not {"packed", DIGEST} & {v for name in names for v in split(name)[1]}


def _has_values(compared: ComparedField) -> bool:
    """Return whether each entry is a number: of a format, or a whole one."""
    names = compared.view, compared.suite_field
    views = {view for name in names for view in split(name)[1]}
    return "packed" not in names and not {"packed", DIGEST} & views


def _both_nan(compared: ComparedField) -> NDArray[np.bool_]:
    """Return where both have a NaN; nowhere if the entries are not codes."""
    if not is_of_codes(compared.format, compared.view, compared.suite_field):
        return np.zeros(compared.differs.shape, np.bool_)
    fmt = formats[compared.format]
    return is_nan(compared.actual, fmt) & is_nan(compared.expected, fmt)


def _first_places(differs: NDArray[np.bool_]) -> Iterator[Index]:
    """Yield the first marked places; the places of all would take eight bytes for each."""
    flat, at = differs.reshape(-1), 0
    for _ in range(min(MOST_ENTRIES, int(np.count_nonzero(flat)))):
        at += int(flat[at:].argmax())
        yield tuple(map(int, np.unravel_index(at, differs.shape)))
        at += 1
