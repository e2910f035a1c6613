"""The chapter on dot products: pairs of rows under a profile, in threads."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import GROUP, PERIOD, DotProfile
from mor_ref.definitions.formats import formats
from mor_ref.engine.dot_amd import gtr_fdpa, tr_fdpa
from mor_ref.engine.dot_binary32 import f32_fma, f32_pairwise, ftz_mul_add, integers
from mor_ref.engine.dot_exact import accumulator_for, e_fdpa, exact
from mor_ref.engine.dot_nvidia import cut_rule, gst_fdpa, t_fdpa
from mor_ref.engine.dot_operands import Operand, chunk_count, rows_of, top_of, unit_of
from mor_ref.engine.dot_rounding import TOWARD_ZERO, Chunks, Pairs
from mor_ref.engine.parallel import for_each, thread_count

_SLICE = 1 << 20  # products of a slice, about
_SIGNIFICAND = 53
_WITHOUT_CHUNK = ("exact", "f32_fma", "f32_pairwise", "int32", "switchback")

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
    check_profile(a, b, profile)
    is_whole = has_wholes(a, b, profile)
    rows = rows_of(a, profile, is_whole), rows_of(b, profile, is_whole)
    found = c.copy()
    columns = a.value.shape[1]
    chunks = room_for_chunks(c.size, chunk_count(profile, columns) if keeps else 0)
    loop, last_arguments = loop_of(a, b, profile)
    pairs_of_slice = max(1, _SLICE // max(columns, 1))

    def work(first: int) -> None:
        last = min(first + pairs_of_slice, found.size)
        pairs = Pairs(first, last, len(b.value) if crossed else 0)
        loop(*rows, found, pairs, chunks, *last_arguments)

    starts = range(0, found.size, pairs_of_slice)
    for_each(work, starts, thread_count(threads, found.size * columns))
    return Sums(found, chunks)


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
        "ftz_mul_add": (ftz_mul_add, ()),
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


def check_profile(a: Operand, b: Operand, profile: DotProfile) -> None:
    """Refuse a profile from elsewhere whose sums do not fit the words of the loops."""
    family, chunk = profile.family, profile.chunk
    bits = a.fmt.mantissa_bits + b.fmt.mantissa_bits + 2
    units = unit_of(a.fmt) + unit_of(b.fmt)
    widths = {
        "st_fdpa": bits + a.scale_bits + b.scale_bits,
        "gst_fdpa": top_of(a.fmt) + top_of(b.fmt) - units + 4 + a.scale_bits + b.scale_bits,
    }
    chunks = {"gst_fdpa": chunk % GROUP == 0, "promoted": chunk and PERIOD % chunk == 0}
    chunks |= {"ftz_mul_add": chunk in (2, 4), "gtr_fdpa": chunk % 2 == 0}
    lowest = formats[profile.result].smallest_exponent
    fault = None
    if widths.get(family, 0) > _SIGNIFICAND:
        fault = f"its terms of {a.fmt.name} and {b.fmt.name} have {widths[family]} bits; take "
        fault += f"formats and scales whose terms have at most {_SIGNIFICAND}"
    elif family not in _WITHOUT_CHUNK and not (chunk and chunks.get(family, True)):
        fault = f"chunk is {chunk}; take a length that groups of the family fill"
    elif family in TOWARD_ZERO and profile.zero_exponent > lowest:
        fault = f"zero_exponent is {profile.zero_exponent}; take one of at most {lowest}"
    if fault:
        raise ValueError(f"profile {profile.name!r} is not computed: {fault}")
