"""Properties that may separate entries that differ from others: places and cases."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.entries import Entries, Integers, Marks

_POWERS = (2, 4, 8, 16, 32, 64, 128)
_LAUNCHED = (256, 512, 1024, 2048, 4096)  # entries of a thread block
_QUARTERS = {"half": 2, "a quarter": 1, "three quarters": 3}
_LINES = 3  # wrong rows or columns: with fewer, a distance is not evidence


@dataclass(frozen=True, eq=False)
class Flag:
    """A property that an entry has or not, and words for both.

    If there is a `line`, entries that have it are towards the end of their rows or columns: of two
    such properties of a line, one follows from the other, but for lines that are very short.
    """

    words: str
    otherwise: str
    marks: Marks
    line: str = ""


@dataclass(frozen=True, eq=False)
class Number:
    """A property that is a number. `has_order` is true if 'at most N' makes sense.

    `bits` is the cost of a limit: a number of many digits is a long description. If there is a
    `line`, entries of small numbers are towards the end of it, as for a flag.
    """

    words: str
    values: NDArray[np.number]
    has_order: bool = True
    shown: Callable[[float], str] = "{:,}".format
    bits: float = 8.0
    line: str = ""


@dataclass(frozen=True, eq=False)
class Category:
    """A property that is one of some names; `values` are indices of names."""

    words: str
    names: tuple[str, ...]
    values: Integers


Property = Flag | Number | Category


def of_cases(e: Entries) -> Iterator[Property]:
    """Yield the parameters of cases, and the shapes of their arrays."""
    names = dict.fromkeys(name for one in e.samples for name in one.question.parameters)
    for name in names:
        if name != RECIPE:
            said = [_said(one.question.parameters.get(name, "none")) for one in e.samples]
            known = tuple(sorted(set(said)))
            if len(known) > 1:
                yield Category(name, known, np.array([known.index(one) for one in said])[e.case])
    yield Number("the number of rows", e.rows)
    if e.axes == 2:
        yield Number("the number of columns", e.columns)


def _said(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def of_places(e: Entries) -> Iterator[Property]:
    """Yield the places of entries in their arrays and their blocks."""
    lines: Iterable[tuple[str, Integers, Integers]] = [("index", e.row, e.rows)]
    has_blocks = bool((e.tile_rows * e.tile_columns > 1).any())
    if has_blocks:
        yield from _of_blocks(e)
    if e.axes == 2:
        lines = [("row", e.row, e.rows), ("column", e.column, e.columns)]
    for name, line, side in lines:
        is_last = line == side - 1
        yield Flag(f"the {name} is the last", f"the {name} is not the last", is_last, name)
        yield Number(name, line)
        for m in (*_POWERS, *_step_of(e, line)):
            yield Number(f"{name} mod {m}", line % m, has_order=False)
        for m in _POWERS:
            after = line >= side - side % m
            words = (
                f"it is after the last whole {m} of the {name if name == 'index' else name + 's'}"
            )
            yield Flag(words, words.replace(" is ", " is not ", 1), after, name)
        yield Number(f"last {name} - {name}", side - 1 - line, line=name)
        yield from _of_shares(name, line, side)
    if e.axes == 2:
        yield from _of_places_row_by_row(e)
    if has_blocks:
        yield from _of_places_in_blocks(e)
    if e.axes == 2:
        for m in (1, *_POWERS):
            tiles = f"row // {m} + column // {m}" if m > 1 else "row + column"
            yield Number(f"({tiles}) mod 2", (e.row // m + e.column // m) % 2, has_order=False)


def _of_shares(name: str, line: Integers, side: Integers) -> Iterator[Property]:
    """Yield whether a line is after a share of all lines, if cases have different sizes."""
    if len(np.unique(side)) == 1:
        return  # the number of the line says as much
    lines = "entries" if name == "index" else f"{name}s"
    for share, quarters in _QUARTERS.items():
        down, up = line >= side * quarters // 4, line >= -(-side * quarters // 4)
        is_same = np.array_equal(down, up)
        for marks, rounded in ((down, "" if is_same else ", rounded down"), (up, ", rounded up")):
            if marks is down or not is_same:
                where = f"{share} of the {lines}{rounded}"
                yield Flag(f"{name} >= {where}", f"{name} < {where}", marks, name)


def _of_places_row_by_row(e: Entries) -> Iterator[Property]:
    """Yield the place among all entries of a case, and whether it is in the tail of a launch."""
    place, size = e.row * e.columns + e.column, e.rows * e.columns
    yield Number("the place, row by row,", place)
    for m in (*_POWERS, *_LAUNCHED):
        words = f"it is after the last whole {m:,} of all entries"
        yield Flag(words, words.replace(" is ", " is not ", 1), place >= size - size % m)


def _step_of(e: Entries, line: Integers) -> Iterator[int]:
    """Yield the common divisor of distances between wrong lines, unless it is a power of two."""
    wrong = np.unique(line[e.differing])
    step = int(np.gcd.reduce(wrong - wrong[0])) if len(wrong) >= _LINES else 0
    if step > 1 and step not in _POWERS:
        yield step


def _of_blocks(e: Entries) -> Iterator[Property]:
    """Yield the place of the block of an entry in its array."""
    row, column = e.row // e.tile_rows, e.column // e.tile_columns
    is_cut = (row + 1) * e.tile_rows > e.rows
    is_cut |= (column + 1) * e.tile_columns > e.columns
    yield Flag("it is in a partial block", "it is in a whole block", is_cut)
    last_right = (column + 1) * e.tile_columns >= e.columns
    last_below = (row + 1) * e.tile_rows >= e.rows
    yield Flag("it is in the last block", "it is not in the last block", last_right & last_below)
    yield Flag(
        "it is in the last block of its row of blocks",
        "it is not in the last block of its row of blocks",
        last_right,
        "column",
    )
    words = "it is in the last row of blocks", "it is not in the last row of blocks"
    yield Flag(*words, last_below, "row")


def _of_places_in_blocks(e: Entries) -> Iterator[Property]:
    row, column = e.row // e.tile_rows, e.column // e.tile_columns
    yield Number("row in the block", e.row % e.tile_rows)
    yield Number("column in the block", e.column % e.tile_columns)
    if (e.tile_rows > 1).any():
        yield Number("row of the block", row)
    if (e.tile_columns > 1).any():
        yield Number("column of the block", column)
    of_it = "row of the block" if (e.tile_rows > 1).any() else "row"
    yield Number(f"({of_it} + column of the block) mod 2", (row + column) % 2, has_order=False)
