"""Parts of blocks, or of a tensor, whose amax kernels take for that of the whole."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mor_ref.operations.bits import Unsigned
from mor_ref.operations.shapes import Sides
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import Integers, Marks

_REACHES = tuple(1 << k for k in range(5, 13))  # of warps, tiles and groups of threads
_VECTORS = (4, 2, 8, 16)  # of loads; those of four numbers are the most frequent
_OF_LINES = {"its row": ("column",), "its column": ("row",)}

Kept = Callable[[Sides, Sides], Marks]


class Part(NamedTuple):
    """A part in words, which have room for the name of the whole, and its numbers.

    `kept` takes the shape of a tensor and the sides of its blocks. It returns marks that broadcast
    to the shape.
    """

    words: str
    kept: Kept

    def of(self, x: Unsigned, sides: Sides) -> Unsigned | None:
        """Return a tensor with zeros outside of the part; None if this changes no number."""
        kept = self.kept(x.shape, sides)
        return None if kept.all() else np.where(kept, x, x.dtype.type(0))


def parts_of_blocks(noun: str) -> Iterator[Part]:
    """Yield the parts of blocks: the first or the last rows, columns or numbers.

    Other parts leave out the end of the tensor, such as a vector or a tile that is cut.
    """
    names = _OF_LINES.get(noun, tuple(_PLACES))
    for name in names:
        yield Part(f"the first {name} of {{}}", _first(name, 1))
    yield from _without_rest(names, _VECTORS)
    for name in names:
        yield Part(f"{{}} without the last {name}{{}}", _all_but_last(name))
    for name in names:
        for n in _REACHES:
            yield Part(f"the first {n:,} {name}s of {{}}", _first(name, n))
            yield Part(f"the last {n:,} {name}s of {{}}", _last(name, n))
    yield from _without_rest(names, _REACHES)


def _without_rest(names: Sequence[str], sizes: Sequence[int]) -> Iterator[Part]:
    for name in reversed(names):
        size = "size" if name == "number" else f"{name}s"
        for n in sizes:
            yield Part(f"{{}} without the last {size} % {n} {name}s{{}}", _whole(name, n))


def named(part: Part, noun: str) -> str:
    """Return the words of a part of the tensor, or of a row or a block of it."""
    return part.words.format(noun, " of the tensor" if noun == "its block" else "")


def joined_parts(found: Iterable[tuple[Alternative, bool]]) -> list[Alternative]:
    """Return alternatives, each with the words of the parts that give the same bits.

    With each comes whether it is of a part.
    """
    joined: list[Alternative] = []
    for one, is_of_part in found:
        alike = (k for k, other in enumerate(joined) if is_of_part and _is_same(one, other))
        same = next(alike, None)
        if same is None:
            joined.append(one)
        else:
            joined[same] = replace(joined[same], also=(*joined[same].also, one.words))
    return joined


def _is_same(one: Alternative, other: Alternative) -> bool:
    return all(
        np.array_equal(*both)
        for both in ((one.is_there, other.is_there), (one.values, other.values))
    )


# ---------------------------------------------------------------- places of numbers


class _Line(NamedTuple):
    """The place of each line or number in its block, and how many the block has."""

    place: Integers
    size: Integers


def _lines(size: int, side: int) -> _Line:
    line = np.arange(size)
    start = line // side * side
    return _Line(line - start, np.minimum(side, size - start))


def _rows(shape: Sides, sides: Sides) -> _Line:
    found = _lines(shape[0], sides[0])
    return _Line(found.place[:, np.newaxis], found.size[:, np.newaxis])


def _columns(shape: Sides, sides: Sides) -> _Line:
    found = _lines(shape[1], sides[1])
    return _Line(found.place[np.newaxis], found.size[np.newaxis])


def _numbers(shape: Sides, sides: Sides) -> _Line:
    """Return the places of numbers in their blocks, row by row."""
    rows, columns = _rows(shape, sides), _columns(shape, sides)
    return _Line(rows.place * columns.size + columns.place, rows.size * columns.size)


_PLACES: dict[str, Callable[[Sides, Sides], _Line]] = {
    "row": _rows,
    "column": _columns,
    "number": lru_cache(maxsize=8)(_numbers),
}


def _first(name: str, n: int) -> Kept:
    return lambda shape, sides: _PLACES[name](shape, sides).place < n


def _last(name: str, n: int) -> Kept:
    def kept(shape: Sides, sides: Sides) -> Marks:
        line = _PLACES[name](shape, sides)
        found: Marks = line.place >= line.size - n
        return found

    return kept


def _whole(name: str, n: int) -> Kept:
    """Return the function that leaves out the end of the tensor, after the last whole n."""

    def kept(shape: Sides, _: Sides) -> Marks:
        line = _PLACES[name](shape, shape)
        found: Marks = line.place < line.size // n * n
        return found

    return kept


def _all_but_last(name: str) -> Kept:
    def kept(shape: Sides, _: Sides) -> Marks:
        line = _PLACES[name](shape, shape)
        found: Marks = line.place < line.size - 1
        return found

    return kept
