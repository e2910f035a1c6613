"""Exchanged axes, such as rows stored by position and head instead of by head and position."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from math import isqrt
from typing import NamedTuple

import numpy as np

from mor_ref.verify.diagnosing.entries import Entries, Integers, spread
from mor_ref.verify.diagnosing.maps import Map

_TRIED = 64  # differing entries of one case, on which all axes are tried
_MOST_AXES, _KEPT = 1024, 2  # axes tried for each kind of lines, and the best ones
_LEAST = 1 / 2  # the share of these entries that axes explain


class _Axes(NamedTuple):
    """The sizes of four axes, with the second and third exchanged; a size of 0 is the rest.

    The sizes are in the order of the given lines. In the expected order, the third comes before the
    second.
    """

    outer: int
    second: int
    third: int
    inner: int


def exchanged_axes(e: Entries) -> Iterator[Map]:
    """Yield the axes exchanged in the case with the most differences, the simplest first.

    The axes divide rows, columns, or all places row by row. If tensors have other sizes, one of the
    axes is longer or shorter.
    """
    case = int(np.bincount(e.case[e.differing]).argmax())
    at = spread(e.differing[e.case[e.differing] == case], _TRIED)
    rows, columns = int(e.rows[at[0]]), int(e.columns[at[0]])
    yield from _of_lines(e, at, "row", _all_axes(rows))
    if e.axes == 2:
        yield from _of_lines(e, at, "column", _all_axes(columns))
        yield from _of_lines(e, at, "place", _of_rows_and_columns(rows, columns))


def _of_lines(e: Entries, at: Integers, name: str, tried: tuple[_Axes, ...]) -> Iterator[Map]:
    if not tried:
        return
    place, _ = _lines(e, at, name)
    axes = [size[:, np.newaxis] for size in np.array(tried, np.int64).T]
    source = _entry(e, at, name, _exchanged(place, axes))
    shares = (e.expected[source] == e.given[at]).mean(axis=1)
    for k in np.argsort(-shares, kind="stable")[:_KEPT]:
        if shares[k] >= _LEAST:
            yield from _maps(e, name, tried[k])


def _maps(e: Entries, name: str, axes: _Axes) -> Iterator[Map]:
    """Yield the map of these axes; if sizes of cases differ, a map for each axis that may vary."""
    _, sides = _lines(e, e.differing, name)
    if (sides == sides[0]).all():
        yield Map(_words(e, name, axes), partial(_source, name=name, axes=axes))
        return
    for varying in ("second", "third", "outer"):
        one = axes._replace(**{varying: 0})
        yield Map(_words(e, name, one), partial(_source, name=name, axes=one))


def _words(e: Entries, name: str, axes: _Axes) -> str:
    outer, second, third, inner = (f"{size}" if size else "n" for size in axes)
    noun = "nibbles" if e.noun == "nibble" else "entries"
    lines = noun if e.axes == 1 or name == "place" else f"{name}s"
    given, expected = (
        ", ".join(size for size in sizes if size != "1")
        for sizes in ((outer, second, third, inner), (outer, third, second, inner))
    )
    return f"{lines} are in another order: [{given}] instead of [{expected}]"


def _source(e: Entries, at: Integers, *, name: str, axes: _Axes) -> Integers:
    """Return the entries that other entries come from: themselves if the axes do not fit a case."""
    place, side = _lines(e, at, name)
    known = int(np.prod([size for size in axes if size]))
    is_whole = side % known == 0 if 0 in axes else side == known
    sizes = [size or np.maximum(side // known, 1) for size in axes]
    return _entry(e, at, name, np.where(is_whole, _exchanged(place, sizes), place))


def _exchanged(place: Integers, axes: Sequence[Integers | int]) -> Integers:
    """Return the places with the second and the third axis exchanged."""
    _, second, third, inner = axes
    line = place // inner
    outer, j, k = line // third // second, line // third % second, line % third
    found: Integers = ((outer * third + k) * second + j) * inner + place % inner
    return found


def _lines(e: Entries, at: Integers, name: str) -> tuple[Integers, Integers]:
    """Return the rows, columns or places of entries, and their count in the case."""
    if name == "row":
        return e.row[at], e.rows[at]
    if name == "column":
        return e.column[at], e.columns[at]
    return at - e.start[at], e.rows[at] * e.columns[at]


def _entry(e: Entries, at: Integers, name: str, line: Integers) -> Integers:
    """Return the entries on other lines."""
    if name == "row":
        return e.start[at] + line * e.columns[at] + e.column[at]
    if name == "column":
        return at - e.column[at] + line
    return e.start[at] + line


@cache
def _all_axes(side: int) -> tuple[_Axes, ...]:
    """Return the axes that divide this many lines, the simplest first."""
    found = [
        _Axes(outer, rest // third, third, inner)
        for inner in _divisors(side)
        for outer in _divisors(side // inner)
        for rest in (side // inner // outer,)
        for third in _divisors(rest)[1:-1]
    ]
    found.sort(key=lambda one: (one.outer > 1) + (one.inner > 1))
    return tuple(found[:_MOST_AXES])


def _of_rows_and_columns(rows: int, columns: int) -> tuple[_Axes, ...]:
    """Return the axes of rows and of blocks of columns, in both orders."""
    if rows == 1:
        return ()
    found = [(columns // inner, inner) for inner in _divisors(columns)[1:-1]]
    return tuple(
        _Axes(1, *sizes, inner)
        for blocks, inner in found
        for sizes in ((blocks, rows), (rows, blocks))
    )


@cache
def _divisors(size: int) -> tuple[int, ...]:
    small = [k for k in range(1, isqrt(size) + 1) if size % k == 0]
    return tuple(sorted({*small, *(size // k for k in small)}))
