"""The fields of operations: which format their entries have, and along which axes they lie."""

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mor_ref.definitions.affine import IntegerGrid, affine_profile, integer_grid
from mor_ref.definitions.formats import formats

Fields = Mapping[str, tuple[str, str]]  # names to formats and kinds of axes

INTEGERS = ("u8", "u32", "u64")
CASE_FORMATS = ("source", "format", "format_a", "format_b", "scale_format")  # parameters of a case
_GRID_FIELDS = ("code", "zero_point")
_BITS = {"u8": 8, "u32": 32, "u64": 64, "f64": 64}


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
    "pairs": Axes(("rows", "pairs"), "row-major, the even code of a pair in the low nibble"),
}


class LateFields(Mapping[str, tuple[str, str]]):
    """Fields that are computed at each access, as a user's rows add to them."""

    def __init__(self, compute: Callable[[], Fields]) -> None:
        self._compute = compute

    def __getitem__(self, name: str) -> tuple[str, str]:
        return self._compute()[name]

    def items(self) -> ItemsView[str, tuple[str, str]]:
        """Return the names with their fields, which are computed once for all of them."""
        return self._compute().items()

    def __iter__(self) -> Iterator[str]:
        return iter(self._compute())

    def __len__(self) -> int:
        return len(self._compute())


def fields(text: str) -> dict[str, tuple[str, str]]:
    """Return the fields of a text: kind of axes, names and format, such as "n xs,y f32".

    >>> fields("n xs,y f32; n code format")
    {'xs': ('f32', 'n'), 'y': ('f32', 'n'), 'code': ('format', 'n')}
    """
    by_name: dict[str, tuple[str, str]] = {}
    for row in text.split(";"):
        axes, names, fmt = row.split()
        by_name |= dict.fromkeys(names.split(","), (fmt, axes))
    return by_name


def each_field(names: Iterable[str], *parts: str) -> str:
    """Return the fields of representations as names of such a text.

    >>> each_field(["e4m3", "e5m2"], "sum")
    'e4m3.sum,e5m2.sum'
    """
    return ",".join(f"{name}.{part}" for name in names for part in parts)


def format_meant(fmt: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of a format, which a field may leave to a parameter of the case."""
    return str(parameters.get(fmt, fmt))


def grid_of(field: str, parameters: Mapping[str, Any]) -> IntegerGrid | None:
    """Return the grid of a field's integers; None if they are of none."""
    is_of_grid = "grid" in parameters and field in _GRID_FIELDS
    return integer_grid(parameters["grid"]) if is_of_grid else None


def integer_meant(bits: int, field: str, parameters: Mapping[str, Any]) -> int:
    """Return bits as they are, or the integer of a signed grid that a word of 32 bits has."""
    grid = grid_of(field, parameters)
    return signed_word(bits) if grid is not None and grid.signed else bits


def signed_word(bits: int) -> int:
    """Return the integer of a word of 32 bits in two's complement."""
    return bits - (1 << 32) if bits >> 31 == 1 else bits


def sign_is_open(field: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether the numbers of a tensor decide if a field's integers are signed (AFF-005)."""
    if grid_of(field, parameters) is None or not parameters.get("symmetric", True):
        return False
    return affine_profile(parameters["profile"]).sign_by_numbers


def bits_of(fmt: str) -> int:
    """Return the number of bits of a number."""
    return _BITS.get(fmt) or formats[fmt].bits


def bytes_of(fmt: str) -> int:
    """Return the number of bytes of an entry: the smallest whole number that holds its bits."""
    return next(size for size in (1, 2, 4, 8) if bits_of(fmt) <= 8 * size)
