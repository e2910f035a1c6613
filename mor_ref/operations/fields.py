"""The fields of operations: what their bits mean, their format, and the axes they lie along."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from mor_ref.definitions.formats import formats
from mor_ref.definitions.integer_grids import IntegerGrid

Role = Literal["input", "expected"]

INTEGERS = ("u8", "u32", "u64")
CASE_FORMATS = ("source", "format", "format_a", "format_b", "scale_format")  # parameters of a case
_BITS = {"u8": 8, "u32": 32, "u64": 64, "f64": 64}


GridOf = Callable[[Mapping[str, Any]], IntegerGrid | None]


def _no_grid(_: Mapping[str, Any]) -> None:
    """Return that integers are of no grid."""


@dataclass(frozen=True)
class Field:
    """An array of an operation: what its bits mean, whether they go in or come out, by which rules.

    Its format is the name of a format, a kind of integer, or the parameter of a case that names
    one. `views` are the other layouts that a kernel may give it in. Integers that are `signed` are
    in two's complement. `grid` returns the grid that they are of, given the parameters of a case.
    It is None if they are of none, and if the numbers of a tensor decide whether they have a sign.
    """

    name: str
    role: Role
    format: str
    axes: str
    meaning: str
    rules: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    signed: bool = False
    grid: GridOf = _no_grid

    def number(self, bits: int) -> int:
        """Return the integer that bits are, if it is one in two's complement; else the bits.

        >>> given("sum u32 n", "a sum", signed=True).number(0xFFFFFFFF)
        -1
        """
        return signed_word(bits, _BITS[self.format]) if self.signed else bits

    @property
    def words(self) -> str:
        """What its bits mean, and how they are to be read."""
        return f"{self.meaning}, in two's complement" if self.signed else self.meaning


Fields = Mapping[str, Field]


@dataclass(frozen=True)
class FieldsOfEach:
    """The fields of each representation that a case tries, whose names are NAME.FIELD.

    `names` returns those of all representations that there are; a user's rows add to them.
    """

    names: Callable[[], Iterable[str]]
    declared: Callable[[str], tuple[Field, ...]]


@dataclass(frozen=True)
class Axes:
    """The sizes of an array, the outermost first, and how its entries lie (VEC-012)."""

    names: tuple[str, ...]
    layout: str = "row-major"


AXES: Mapping[str, Axes] = {
    "n": Axes(("rows",)),
    "nk": Axes(("rows", "numbers")),
    "nb": Axes(("rows", "blocks")),
    "rc": Axes(("rows", "columns")),
    "grid": Axes(("block rows", "block columns")),
    "group": Axes(("group rows", "group columns")),
    "unit": Axes(("unit rows", "unit columns")),
    "ends": Axes(("whole scales",)),
    "columns": Axes(("one", "columns")),
    "groups": Axes(("one", "groups")),
    "order": Axes(("one", "columns in order")),
    "pair": Axes(("rows", "pairs")),
    "bytes": Axes(("rows", "bytes")),
    "words": Axes(("rows", "words")),
    "pairs": Axes(("rows", "pairs"), "row-major, the even code of a pair in the low nibble"),
}


def given(entries: str, meaning: str, *, signed: bool = False, grid: GridOf = _no_grid) -> Field:
    """Return a field that an operation takes: its name, format and axes, and what it means.

    >>> given("x f32 n", "the number").format
    'f32'
    """
    return Field(*_parts(entries, "input"), meaning, signed=signed, grid=grid)


def expected(
    entries: str,
    meaning: str,
    rules: str = "",
    *,
    views: str = "",
    signed: bool = False,
    grid: GridOf = _no_grid,
) -> Field:
    """Return a field that an operation computes, by rules such as "MXS-007 MXS-008"."""
    parts = tuple(rules.split()), tuple(views.split())
    return Field(*_parts(entries, "expected"), meaning, *parts, signed, grid)


def _parts(entries: str, role: Role) -> tuple[str, Role, str, str]:
    name, fmt, axes = entries.split()
    return name, role, fmt, axes


def along(axes: Mapping[str, str], declared: Iterable[Field]) -> tuple[Field, ...]:
    """Return fields along other axes. Entries in rows of their own have no other layout.

    >>> tensor = expected("code e2m1 rc", "the codes", views="packed")
    >>> (code,) = along({"rc": "n"}, [tensor])
    >>> code.axes, code.views
    ('n', ())
    """
    moved = [replace(field, axes=axes.get(field.axes, field.axes)) for field in declared]
    return tuple(
        replace(field, views=()) if field.axes in ("n", "nk") else field for field in moved
    )


def format_meant(fmt: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of a format, which a field may leave to a parameter of the case."""
    return str(parameters.get(fmt, fmt))


def signed_word(bits: int, width: int) -> int:
    """Return the integer that a word of `width` bits has in two's complement."""
    return bits - (1 << width) if bits >> (width - 1) == 1 else bits


def bits_of(fmt: str) -> int:
    """Return the number of bits of a number."""
    return _BITS.get(fmt) or formats[fmt].bits


def bytes_of(fmt: str) -> int:
    """Return the number of bytes of an entry: the smallest whole number that holds its bits."""
    return next(size for size in (1, 2, 4, 8) if bits_of(fmt) <= 8 * size)
