"""A format that is a list of values: the code of each is its place."""

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from mor_ref.argument_checks import fault_of_name
from mor_ref.definitions.format import Format, FormatError
from mor_ref.definitions.formats import as_format
from mor_ref.processor_modes import check_processor

_MOST_VALUES = 256
_SMALLEST = Fraction(1, 1 << 149)  # a binary32 number


@dataclass(frozen=True, eq=False)
class TableFormat:
    """A format whose codes stand for the values of a table, in any order (BLF-009).

    A number takes the nearest value, and of two that are as near, the lower one. `limits` replace
    the midpoints: they lie between the values in ascending order, and a number that is not above
    one goes below it. All are rounded to binary32.

    >>> ternary = TableFormat("ternary", (-1, 0, 1))
    >>> ternary.bits, ternary.value(2), ternary.exact_limits[1]
    (2, 1.0, Fraction(1, 2))
    """

    name: str
    values: tuple[float, ...]
    limits: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_processor()
        fault = fault_of_name(self.name)
        if not fault:
            fault, values = _in_binary32("values", self.values)
            object.__setattr__(self, "values", values)
        if not fault and self.limits is not None:
            fault, limits = _in_binary32("limits", self.limits)
            object.__setattr__(self, "limits", tuple(limit + 0.0 for limit in limits))  # no -0
        fault = fault or _wrong_values(self) or _wrong_limits(self)
        if fault:
            raise FormatError(f"format {self.name!r} cannot exist: {fault}")
        if self.limits is not None and self.exact_limits == self._midpoints:
            object.__setattr__(self, "limits", None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableFormat) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def _written(self) -> tuple[str, str, str]:
        """All fields as text: -0 is not 0."""
        return self.name, repr(self.values), repr(self.limits)

    @cached_property
    def bits(self) -> int:
        """The width of a code."""
        return (len(self.values) - 1).bit_length()

    @property
    def code_count(self) -> int:
        """How many codes there are."""
        return len(self.values)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The codes in the ascending order of their values; -0 is below 0."""
        return tuple(sorted(range(len(self.values)), key=self._rank))

    def _rank(self, code: int) -> tuple[float, float]:
        return self.values[code], math.copysign(1.0, self.values[code])

    @cached_property
    def exact_limits(self) -> tuple[Fraction, ...]:
        """The limits between the values in ascending order, as they are compared."""
        return self._midpoints if self.limits is None else tuple(map(Fraction, self.limits))

    @cached_property
    def _midpoints(self) -> tuple[Fraction, ...]:
        pairs = pairwise(self.values[code] for code in self.order)
        return tuple(
            -_SMALLEST if a == b else (Fraction(a) + Fraction(b)) / 2  # between -0 and 0
            for a, b in pairs
        )

    @property
    def largest_code(self) -> int:
        """The code of the largest value."""
        return self.order[-1]

    @property
    def largest(self) -> float:
        """The largest value."""
        return self.values[self.largest_code]

    def value(self, code: int) -> float:
        """Return the value of a code."""
        return self.values[code]


ElementFormat = Format | TableFormat


def as_element_format(fmt: object) -> ElementFormat:
    """Return a table itself, or the format of a name or a dtype."""
    if callable(fmt) and not isinstance(fmt, type):
        raise TypeError(
            f"element is {fmt!r}, a function; give a Format, or its values as a TableFormat: a "
            "function of x that returns y is a representation, "
            "mor_ref.representations.FunctionRepresentation(function)"
        )
    return fmt if isinstance(fmt, TableFormat) else as_format(fmt)


def limits_in_binary32(table: TableFormat) -> tuple[float, ...]:
    """Return the largest numbers of binary32 that are at most the limits of a table.

    A number of binary32 is above a limit if it is above the number of this limit.
    """
    return tuple(map(_at_most, table.exact_limits))


def _at_most(limit: Fraction) -> float:
    """Return the largest number of binary32 that is at most a limit."""
    (word,) = struct.unpack("<i", struct.pack("<f", float(limit)))
    (near,) = struct.unpack("<f", struct.pack("<i", word))
    if Fraction(near) <= limit:
        return float(near)
    (below,) = struct.unpack("<f", struct.pack("<i", word - 1 if near > 0 else word + 1))
    return float(below)


def _in_binary32(field: str, given: object) -> tuple[str | None, tuple[float, ...]]:
    """Return the fault of a field of numbers, if it has one, and the numbers in binary32."""
    example = "give numbers, such as [-1, 0, 1]"
    if isinstance(given, str) or not isinstance(given, Iterable):
        return f"{field} is {given!r}; {example}", ()
    numbers: list[float] = []
    for number in given:
        try:
            (rounded,) = struct.unpack("<f", struct.pack("<f", number))
        except (OverflowError, struct.error):
            rounded = math.nan
        if isinstance(number, bool) or not math.isfinite(rounded):
            return f"{field} has {number!r}; {example}, which binary32 has", ()
        numbers.append(rounded)
    return None, tuple(numbers)


def _wrong_values(table: TableFormat) -> str | None:
    if not 2 <= len(table.values) <= _MOST_VALUES:
        return f"it has {len(table.values)} values; give 2 to {_MOST_VALUES}"
    for a, b in pairwise(table.order):
        if repr(table.values[a]) == repr(table.values[b]):
            return f"values has {table.values[a]!r} twice; give each value once"
    return None


def _wrong_limits(table: TableFormat) -> str | None:
    if table.limits is None:
        return None
    wanted = len(table.values) - 1
    if len(table.limits) != wanted:
        return f"it has {len(table.limits)} limits; give {wanted}, one between each two values"
    for a, b in pairwise(table.limits):
        if a >= b:
            return f"limits has {b!r} behind {a!r}; give them in ascending order"
    return None
