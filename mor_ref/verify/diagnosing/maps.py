"""Maps from the place of an entry to another place that a kernel may confuse with it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mor_ref.verify.diagnosing.cases_before import NONE, cases_before
from mor_ref.verify.diagnosing.entries import Entries, Integers

_POWERS = (1, 2, 4, 8, 16, 32, 64, 128)
AROUND, _OR_THE_END = ", around the end", ", or of the last one"
_OR_THE_FIRST = ", or of the first one"
Place = tuple[Integers, Integers]


@dataclass(frozen=True)
class Map:
    """A map of places: `words` describe the source of an entry, and `source` returns it.

    `source` takes entries and some of their places. It returns -1 for a place without a source.
    """

    words: str
    source: Callable[[Entries, Integers], Integers]


def maps(entries: Entries) -> Iterator[Map]:
    """Yield the maps that are tried on a field, the simplest first."""
    if entries.axes == 2:
        yield from _transposing()
    yield from _shifting(entries)
    yield from _grouping(entries)
    yield from _exchanging(entries)
    yield from _mirroring(entries)
    yield from _of_cases_before(entries)


def shift(down: int, right: int, entries: Entries, end: str = "") -> Map:
    """Return the map to the entry `down` rows below and `right` columns to the right.

    `end` says which entry replaces one beyond the first or last row or column: none, the entry at
    the other end, or the entry at this end.
    """

    def moved(e: Entries, at: Integers) -> Place:
        row, column = e.row[at] + down, e.column[at] + right
        if end == AROUND:
            return row % e.rows[at], column % e.columns[at]
        if end == _OR_THE_END:
            return np.clip(row, 0, e.rows[at] - 1), np.clip(column, 0, e.columns[at] - 1)
        return row, column

    said = _OR_THE_FIRST if end == _OR_THE_END and down + right < 0 else end
    return _of_places(place_words(_plus("i", down), _plus("j", right), entries) + said, moved)


def flat_shift(by: int) -> Map:
    """Return the map to the entry `by` places later, row by row."""
    side = "after" if by > 0 else "before"
    near = "the entry" if abs(by) == 1 else f"the entry {abs(by)} places"
    words = f"{near} {side} it, row by row"

    def source(e: Entries, at: Integers) -> Integers:
        place = at - e.start[at] + by
        is_there = (place >= 0) & (place < e.rows[at] * e.columns[at])
        return np.where(is_there, e.start[at] + place, -1)

    return Map(words, source)


def exchange_of_lines(pairs: dict[int, int], name: str, words: str) -> Map:
    """Return the map of rows or columns to other ones."""
    side = max((*pairs, *pairs.values())) + 1
    table = np.arange(side)
    for k, other in pairs.items():
        table[k] = other

    def moved(e: Entries, at: Integers) -> Place:
        line = e.row[at] if name == "row" else e.column[at]
        other = np.where(line < side, table[np.minimum(line, side - 1)], line)
        return (other, e.column[at]) if name == "row" else (e.row[at], other)

    return _of_places(words, moved)


def place_words(row: str, column: str, entries: Entries) -> str:
    """Return the words for a place, which has a column only if there are two axes."""
    return f"[{row}, {column}]" if entries.axes == 2 else f"[{row}]"


def _of_places(words: str, moved: Callable[[Entries, Integers], Place]) -> Map:
    def source(e: Entries, at: Integers) -> Integers:
        row, column = moved(e, at)
        is_there = (row >= 0) & (row < e.rows[at]) & (column >= 0) & (column < e.columns[at])
        return np.where(is_there, e.start[at] + row * e.columns[at] + column, -1)

    return Map(words, source)


def _plus(name: str, by: int) -> str:
    return name if not by else f"{name} {'+' if by > 0 else '-'} {abs(by)}"


def _transposing() -> Iterator[Map]:
    def as_written(e: Entries, at: Integers) -> Place:
        place = at - e.start[at]
        return place % e.rows[at], place // e.rows[at]

    def as_read(e: Entries, at: Integers) -> Integers:
        return e.start[at] + e.column[at] * e.rows[at] + e.row[at]

    def in_blocks(e: Entries, at: Integers) -> Place:
        row, column, high, wide = e.row[at], e.column[at], e.tile_rows[at], e.tile_columns[at]
        return row // high * high + column % wide, column // wide * wide + row % high

    yield _of_places("[j, i]", lambda e, at: (e.column[at], e.row[at]))
    yield _of_places("the transposed field at the same place, row by row", as_written)
    yield Map("the field at the same place, column by column", as_read)
    yield _of_places("the place that is transposed inside its block", in_blocks)
    for m in _POWERS[1:]:
        words = f"the place that is transposed inside its tile of {m}x{m}"
        yield _of_places(words, _inside_tiles(m))


def _inside_tiles(m: int) -> Callable[[Entries, Integers], Place]:
    """Return the function to the transposed place in a whole tile; other places stay."""

    def moved(e: Entries, at: Integers) -> Place:
        row, column = e.row[at], e.column[at]
        is_whole = (row < e.rows[at] // m * m) & (column < e.columns[at] // m * m)
        there = row // m * m + column % m, column // m * m + row % m
        return np.where(is_whole, there[0], row), np.where(is_whole, there[1], column)

    return moved


def _shifting(entries: Entries) -> Iterator[Map]:
    steps = [sign * by for by in _POWERS for sign in (1, -1)]
    for end in ("", _OR_THE_END, AROUND):
        if end == _OR_THE_END:
            yield from _of_line("0", _with(lambda line, m: line * m, 0), entries)
        for by in steps:
            if entries.axes == 2:
                yield shift(0, by, entries, end)
            yield shift(by, 0, entries, end)
    if entries.axes == 2:
        yield from map(flat_shift, (1, -1, 2, -2, 4, -4, 8, -8, 16, -16))
        for sign, word in ((1, "after"), (-1, "before")):
            yield _of_places(
                f"the same place in the block {word} it in its row of blocks", _tile(0, sign)
            )
            below = "below" if sign > 0 else "above"
            yield _of_places(f"the same place in the block {below} it", _tile(sign, 0))


def _tile(down: int, right: int) -> Callable[[Entries, Integers], Place]:
    """Return the function to the same place in another block."""
    return lambda e, at: (
        e.row[at] + down * e.tile_rows[at],
        e.column[at] + right * e.tile_columns[at],
    )


def _grouping(entries: Entries) -> Iterator[Map]:
    for m in _POWERS[1:]:
        for words, moved in (
            ("{} - {} mod %d", lambda line, m: line - line % m),
            ("{} // %d", lambda line, m: line // m),
            ("{} mod %d", lambda line, m: line % m),
            ("%d * {}", lambda line, m: line * m),
        ):
            yield from _of_line(words % m, _with(moved, m), entries)


def _exchanging(entries: Entries) -> Iterator[Map]:
    for m in _POWERS:
        yield from _of_line(f"{{}} ^ {m}", _with(lambda line, m: line ^ m, m), entries)


def _with(
    moved: Callable[[Integers, int], Integers], m: int
) -> Callable[[Integers, Integers], Integers]:
    return lambda line, _: moved(line, m)


def _mirroring(entries: Entries) -> Iterator[Map]:
    yield from _of_line("last - {}", lambda line, side: side - 1 - line, entries)
    for words, moved in (
        ("their halves interleaved", _interleaved),
        ("all even ones first", _even_first),
        *_inside_groups(),
    ):
        lines = ("row", "column") if entries.axes == 2 else ("row",)
        for name in lines:
            noun = f"{name}s" if entries.axes == 2 else "entries"
            yield _of_one_line(f"{noun} are in another order: {words}", moved, name)


def _inside_groups() -> Iterator[tuple[str, Callable[[Integers, Integers], Integers]]]:
    """Yield the same orders inside whole groups of lines; lines after the groups stay."""
    for m in (4, 8, 16, 32):
        yield f"halves of each {m} interleaved", _inside(m, _interleaved)
        yield f"even ones first in each {m}", _inside(m, _even_first)


def _inside(
    m: int, moved: Callable[[Integers, Integers], Integers]
) -> Callable[[Integers, Integers], Integers]:
    def found(line: Integers, side: Integers) -> Integers:
        there = line // m * m + moved(line % m, np.full_like(side, m))
        return np.where(line < side // m * m, there, line)

    return found


def _interleaved(line: Integers, side: Integers) -> Integers:
    return line // 2 + line % 2 * ((side + 1) // 2)


def _even_first(line: Integers, side: Integers) -> Integers:
    half = (side + 1) // 2
    return np.where(line < half, 2 * line, 2 * (line - half) + 1)


def _of_line(
    words: str, moved: Callable[[Integers, Integers], Integers], entries: Entries
) -> Iterator[Map]:
    """Yield a map of columns, and the same map of rows."""
    said = {name: words.replace("{}", name) for name in ("i", "j")}
    if entries.axes == 2:
        yield _of_one_line(place_words("i", said["j"], entries), moved, "column")
    yield _of_one_line(place_words(said["i"], "j", entries), moved, "row")


def _of_one_line(words: str, moved: Callable[[Integers, Integers], Integers], name: str) -> Map:
    """Return a map of rows, or of columns."""
    if name == "column":
        return _of_places(words, lambda e, at: (e.row[at], moved(e.column[at], e.columns[at])))
    return _of_places(words, lambda e, at: (moved(e.row[at], e.rows[at]), e.column[at]))


def _of_cases_before(entries: Entries) -> Iterator[Map]:
    """Yield the maps to the same place in the case that was asked before."""
    for words, before in cases_before(entries.samples):
        said = f"the same place in the preceding case{words}"
        yield Map(said, partial(_of_case, np.array(before)))


def _of_case(before: Integers, e: Entries, at: Integers) -> Integers:
    """Return the same place in another case, row by row; -1 if that case is smaller."""
    bounds = np.array([(places.start, places.stop) for places in e.slices])
    other, place = before[e.case[at]], at - e.start[at]
    source = bounds[other, 0] + place
    return np.where((other != NONE) & (source < bounds[other, 1]), source, -1)
