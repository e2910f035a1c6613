"""The chapter on dot products: pairs of rows with a profile, in threads."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.engine.dot_amd import gtr_fdpa, tr_fdpa
from mor_ref.engine.dot_binary32 import f32_fma, f32_pairwise, ftz_mul_add, integers
from mor_ref.engine.dot_exact import accumulator_for, e_fdpa, exact
from mor_ref.engine.dot_nvidia import cut_rule, gst_fdpa, t_fdpa
from mor_ref.engine.dot_operands import Operand, chunk_count, rows_of
from mor_ref.engine.dot_rounding import Chunks, Pairs
from mor_ref.engine.parallel import for_each, thread_count

_SLICE = 1 << 20  # products of a slice, about

Kernel = Callable[..., None]


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
    is_whole = has_wholes(a, b, profile)
    rows = rows_of(a, profile, is_whole), rows_of(b, profile, is_whole)
    columns = a.value.shape[1]
    sums = c.copy()
    chunks = room_for_chunks(c.size, chunk_count(profile, columns) if keeps else 0)
    loop, last_arguments = loop_of(a, b, profile)
    pairs_of_slice = max(1, _SLICE // max(columns, 1))

    def work(first: int) -> None:
        last = min(first + pairs_of_slice, sums.size)
        pairs = Pairs(first, last, len(b.value) if crossed else 0)
        loop(*rows, sums, pairs, chunks, *last_arguments)

    starts = range(0, sums.size, pairs_of_slice)
    for_each(work, starts, thread_count(threads, sums.size * columns))
    return Sums(sums, chunks)


def room_for_chunks(n: int, count: int) -> Chunks:
    """Return room for the fields of so many chunks."""
    shape = (n, count)
    return Chunks(np.zeros(shape, np.int32), np.zeros(shape, np.int64), np.zeros(shape, np.float32))


def loop_of(a: Operand, b: Operand, profile: DotProfile) -> tuple[Kernel, tuple[Any, ...]]:
    """Return the loop of the family of a profile, and its last arguments."""
    rule = (cut_rule(profile),)
    loops: dict[str, tuple[Kernel, tuple[Any, ...]]] = {
        "f32_fma": (f32_fma, ()),
        "f32_pairwise": (f32_pairwise, ()),
        "t_fdpa": (t_fdpa, (*rule, 0)),
        "st_fdpa": (t_fdpa, (*rule, 0)),
        "gst_fdpa": (gst_fdpa, rule),
        "promoted": (t_fdpa, (*rule, PERIOD // max(profile.chunk, 1))),
        "ftz_mul_add": (ftz_mul_add, (profile.flushed_every // max(profile.chunk, 1),)),
        "tr_fdpa": (tr_fdpa, rule),
        "gtr_fdpa": (gtr_fdpa, rule),
        "int32": (integers, (False,)),
        "switchback": (integers, (True,)),
    }
    if profile.family in loops:
        return loops[profile.family]
    accumulator = accumulator_for(a, b, profile)
    if profile.family == "exact":
        return exact, (accumulator,)
    return e_fdpa, (accumulator,)


def has_wholes(a: Operand, b: Operand, profile: DotProfile) -> bool:
    """Return whether a sum is of integers, as far as one word holds it."""
    if profile.family == "exact":
        return bool(accumulator_for(a, b, profile).run)
    return profile.family in ("int32", "switchback")
