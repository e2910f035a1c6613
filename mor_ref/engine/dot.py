"""The chapter on dot products: pairs of rows with a profile, in threads."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.engine.dot_amd import gtr_fdpa, tr_fdpa
from mor_ref.engine.dot_binary32 import f32_fma, f32_pairwise, ftz_mul_add, integers
from mor_ref.engine.dot_exact import ScalesOfTerms, accumulator_for, e_fdpa, exact, scales_of_terms
from mor_ref.engine.dot_nvidia import cut_rule, gst_fdpa, t_fdpa
from mor_ref.engine.dot_operands import Operand, chunk_count, rows_of
from mor_ref.engine.dot_rounding import Chunks, Pairs
from mor_ref.engine.kernel import Direct
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.processor_modes import check_processor

_SLICE = 1 << 20  # products of a slice, about


class Sums(NamedTuple):
    """The results of pairs of rows, and the fields of their chunks if they were asked for."""

    c: NDArray[np.float32]
    chunks: Chunks


def dot(
    a: Operand,
    b: Operand,
    c: NDArray[np.float32],
    profile: DotProfile,
    *,
    crossed: bool = False,
    keeps: bool = False,
    threads: int | None = None,
) -> Sums:
    """DOT-001: add the products of pairs of rows to c, (n,), which is not changed.

    A pair is row n of a with row n of b. If `crossed`, it is each row of a with each row of b.
    """
    loop = _loop(profile, a.fmt, b.fmt, scales_of_terms(a, b))
    rows = rows_of(a, profile, loop.has_wholes), rows_of(b, profile, loop.has_wholes)
    columns = a.shape[1]
    sums = c.copy()
    chunks = room_for_chunks(c.size, chunk_count(profile, columns)) if keeps else _NO_CHUNKS
    pairs_of_slice = max(1, _SLICE // max(columns, 1))

    def work(first: int) -> None:
        check_processor()  # as kernels do that are not called directly
        last = min(first + pairs_of_slice, sums.size)
        pairs = Pairs(first, last, b.shape[0] if crossed else 0)
        loop.run(_MADE_HERE, *rows, sums, pairs, chunks)

    starts = range(0, sums.size, pairs_of_slice)
    for_each(work, starts, thread_count(threads, sums.size * columns))
    return Sums(sums, chunks)


def room_for_chunks(n: int, count: int) -> Chunks:
    """Return room for the fields of so many chunks."""
    shape = (n, count)
    return Chunks(np.zeros(shape, np.int32), np.zeros(shape, np.int64), np.zeros(shape, np.float32))


_NO_CHUNKS = room_for_chunks(0, 0)
_MADE_HERE = ()  # the kind of arrays of which none is somebody's


class Loop(NamedTuple):
    """The loop of a family, and whether its sums are of integers, as far as one word holds them."""

    run: Direct
    has_wholes: bool


@functools.lru_cache(maxsize=1024)
def _loop(profile: DotProfile, a: Format, b: Format, scales: ScalesOfTerms) -> Loop:
    """Return the loop of the family of a profile, with its last arguments."""
    if profile.family in ("exact", "e_fdpa"):
        accumulator = accumulator_for(a, b, profile, scales)
        if profile.family == "exact":
            return Loop(Direct(exact, accumulator), bool(accumulator.run))
        return Loop(Direct(e_fdpa, accumulator), False)
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
    return Loop(Direct(*loops[profile.family]), profile.family in ("int32", "switchback"))
