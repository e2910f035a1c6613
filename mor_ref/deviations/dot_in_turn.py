"""Dot products that differ: f32_fma with several accumulators, which take products in turn."""

import functools
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.dot import DotProfile
from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.exact import dot
from mor_ref.exact.dot_binary32 import total
from mor_ref.exact.dot_terms import Chunk

_COUNTS = (2, 4, 8)  # accumulators of a loop that is unrolled
_LANES = (4, 8, 16)  # of a vector of 128, 256 and 512 bits


def _is_fma(_a: Any, _b: Any, _c: float, profile: DotProfile, *_: Any) -> bool:
    return profile.family == "f32_fma"


def _in_turn(
    name: str, summary: str, count: int, join: Callable[[list[float]], float]
) -> Deviation:
    """Return the deviation of several accumulators; the first one starts from c."""

    def rows(reference: Callable[..., Any], a: Any, b: Any, c: float, *more: Any) -> list[Chunk]:
        sums = [c, *[0.0] * (count - 1)]
        for n in range(min(count, len(a))):
            sums[n] = reference(a[n::count], b[n::count], sums[n], *more)[-1].c
        return [Chunk(None, None, join(sums))]

    return Deviation(
        name, summary, ("DOT-013",), ("dot",), (Change(dot.dot_chunks, rows, _is_fma),)
    )


def _in_order(sums: list[float]) -> float:
    return functools.reduce(total, sums)


def _halves(sums: list[float]) -> float:
    """Return the sum of the lanes of a vector; its upper half is added to the lower one."""
    half = len(sums) // 2
    return sums[0] if not half else _halves(list(map(total, sums[:half], sums[half:])))


DEVIATIONS = (
    *(
        _in_turn(
            f"dot_in_{count}_accumulators",
            f"{count} accumulators take products in turn; they are added in order.",
            count,
            _in_order,
        )
        for count in _COUNTS
    ),
    *(
        _in_turn(
            f"dot_in_{lanes}_lanes",
            f"{lanes} lanes of a vector take products in turn; its halves are then added.",
            lanes,
            _halves,
        )
        for lanes in _LANES
    ),
)
