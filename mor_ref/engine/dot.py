"""The chapter on dot products: pairs of rows with a profile, in threads."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, in_order
from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.engine.dot_amd import gtr_fdpa, tr_fdpa
from mor_ref.engine.dot_binary32 import f32_fma, f32_pairwise, ftz_mul_add, integers
from mor_ref.engine.dot_exact import accumulator_for, e_fdpa, exact
from mor_ref.engine.dot_nvidia import cut_rule, gst_fdpa, t_fdpa
from mor_ref.engine.dot_operands import (
    NO_RANGE,
    NO_ROOM,
    TABLE_BITS,
    Operand,
    Range,
    Scales,
    chunk_count,
    chunk_length,
    forms_of,
    room_of,
)
from mor_ref.engine.dot_rounding import Chunks, Pairs
from mor_ref.engine.kernel import Direct
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.processor_modes import check_processor

_SLICE = 1 << 17  # products of a slice, about: rows that are made for a kernel stay in the cache
_LONG = 1 << 14  # numbers of a row
_TILE, _SHORTEST, _LONGEST = 1 << 16, 16, 256  # numbers of rows that cross others, and such rows


class Loop(NamedTuple):
    """The loop of a family with its last arguments, and whether it takes codes of a byte."""

    run: Direct
    profile: DotProfile
    has_codes: bool


def dot(
    a: Operand,
    b: Operand,
    c: NDArray[np.float32],
    profile: DotProfile,
    *,
    crossed: bool = False,
    threads: int | None = None,
) -> None:
    """DOT-001: add the products of pairs of rows of operands to c."""
    loop = loop_of(profile, a.fmt, b.fmt, a.range, b.range)
    both = (a.entries, b.entries) if loop.has_codes else (a.in_binary32, b.in_binary32)
    entries_a, entries_b = map(in_order, both)
    scales = a.scales, b.scales
    add_up(loop, entries_a, entries_b, scales, c, crossed=crossed, threads=threads)


def add_up(
    loop: Loop,
    a: Bits,
    b: Bits,
    scales: tuple[Scales, Scales],
    c: NDArray[np.float32],
    *,
    crossed: bool = False,
    keeps: bool = False,
    threads: int | None = None,
) -> Chunks:
    """DOT-001: add the products of pairs of rows to c, (n,); return the chunks if they are kept.

    A pair is row n of a with row n of b. If `crossed`, it is each row of a with each row of b. Rows
    lie in order, as codes of a byte or as the bits of binary32, as the loop takes them.
    """
    rows, columns = a.shape
    chunks = room_for_chunks(c.size, chunk_count(loop.profile, columns)) if keeps else _NO_CHUNKS
    pairs, count = _pairs(rows, len(b), columns, crossed), thread_count(threads, c.size * columns)
    if count == 1:
        for own in pairs:
            _add_pairs(loop, a, b, scales, c, chunks, own)
    else:
        for_each(functools.partial(_add_pairs, loop, a, b, scales, c, chunks), pairs, count)
    return chunks


def _add_pairs(
    loop: Loop,
    a: Bits,
    b: Bits,
    scales: tuple[Scales, Scales],
    c: NDArray[np.float32],
    chunks: Chunks,
    pairs: Pairs,
) -> None:
    """Add the products of some pairs of rows to c."""
    check_processor()  # as kernels do that are not called directly
    room, columns = NO_ROOM, a.shape[1]
    if columns > _LONG:
        rows_of_both = pairs.last_a - pairs.first_a + pairs.last_b - pairs.first_b
        room = room_of(rows_of_both * (columns + chunk_length(loop.profile)))
    loop.run((), a, b, *scales, c, pairs, chunks, room)


@functools.lru_cache(maxsize=256)
def _pairs(rows_a: int, rows_b: int, columns: int, crossed: bool) -> tuple[Pairs, ...]:
    """Return the pairs of kernels, which make the rows of these pairs."""
    if not crossed:
        height = max(1, _SLICE // max(columns, 1))
        ends = ((top, min(top + height, rows_a)) for top in range(0, rows_a, height))
        return tuple(Pairs(*of_both, *of_both, 0) for of_both in ends)
    side = max(_SHORTEST, min(_LONGEST, _TILE // max(columns, 1)))
    return tuple(
        Pairs(top, min(top + side, rows_a), left, min(left + side, rows_b), rows_b)
        for top in range(0, rows_a, side)
        for left in range(0, rows_b, side)
    )


def room_for_chunks(n: int, count: int) -> Chunks:
    """Return room for the fields of so many chunks."""
    shape = (n, count)
    return Chunks(np.zeros(shape, np.int32), np.zeros(shape, np.int64), np.zeros(shape, np.float32))


_NO_CHUNKS = room_for_chunks(0, 0)


@functools.lru_cache(maxsize=1024)
def loop_of(
    profile: DotProfile, a: Format, b: Format, range_a: Range = NO_RANGE, range_b: Range = NO_RANGE
) -> Loop:
    """Return the loop for operands of these formats, whose scales have these ranges."""
    has_codes = a.bits <= TABLE_BITS and b.bits <= TABLE_BITS  # both: to have few kinds of kernels
    loop, *rule = _loop_and_rule(profile, a, b, range_a, range_b)
    forms = forms_of(a, b, profile, has_codes=has_codes)
    return Loop(Direct(loop, forms, *rule, reads=2), profile, has_codes)


def _loop_and_rule(
    profile: DotProfile, a: Format, b: Format, range_a: Range, range_b: Range
) -> tuple[Any, ...]:
    """Return the loop of a family, and its last arguments."""
    if profile.family in ("exact", "e_fdpa"):
        accumulator = accumulator_for(a, b, profile, range_a, range_b)
        return (exact if profile.family == "exact" else e_fdpa), accumulator
    rule = (cut_rule(profile),)
    loops: dict[str, tuple[Any, ...]] = {
        "f32_fma": (f32_fma,),
        "f32_pairwise": (f32_pairwise,),
        "t_fdpa": (t_fdpa, *rule, 0),
        "st_fdpa": (t_fdpa, *rule, 0),
        "gst_fdpa": (gst_fdpa, *rule),
        "promoted": (t_fdpa, *rule, PERIOD // max(profile.chunk, 1)),
        "ftz_mul_add": (ftz_mul_add, profile.flushed_every // max(profile.chunk, 1)),
        "tr_fdpa": (tr_fdpa, *rule),
        "gtr_fdpa": (gtr_fdpa, *rule),
        "int32": (integers, False),
        "switchback": (integers, True),
    }
    return loops[profile.family]
