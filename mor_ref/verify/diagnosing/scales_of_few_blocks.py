"""Numbers of a few blocks, computed with scales of other blocks, as after a race."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mor_ref.verify.diagnosing.entries import Entries, Integers, Marks
from mor_ref.verify.diagnosing.maps import Map, flat_shift, shift
from mor_ref.verify.diagnosing.scaled_cases import PARTS, Fields, ScaledCase

_FEW = 64  # blocks that differ
_LEAST = 4  # entries that differ in a block, on average; fewer could be those of another rounding
_MOST = 1 << 22  # numbers that are computed

Computed = Callable[[ScaledCase, Fields, Integers], NDArray[np.integer]]


def few_blocks(
    e: Entries, cases: Sequence[ScaledCase], axes: str, scales: dict[str, Entries], of: Computed
) -> tuple[str, Marks] | None:
    """Return which other blocks have the scales of the blocks that differ, and their entries.

    None is returned if scales of other blocks do not explain all entries of these blocks. `of`
    returns the numbers of a case at some places with given scales.
    """
    first, *_ = scales.values()
    wrong = np.unique(np.concatenate([one.part[axes][e.differs[one.places]] for one in cases]))
    together = np.stack([each.expected for each in scales.values()])
    kinds, kind = np.unique(together, axis=1, return_inverse=True)
    there = [(one, np.flatnonzero(np.isin(one.part[axes], wrong))) for one in cases]
    is_few = len(wrong) <= min(_FEW, first.size // 2)
    is_small = kinds.shape[1] * sum(len(at) for _, at in there) <= _MOST
    if not is_few or not is_small or len(e.differing) < _LEAST * len(wrong):
        return None
    fits = np.ones((kinds.shape[1], first.size), np.bool_)
    marks = np.zeros(e.size, np.bool_)
    for one, at in there:
        marks[one.places[at]] = True
        for k, values in enumerate(kinds.T if len(at) else ()):
            found = of(one, _everywhere(one, scales, values, len(at)), at)
            fits[k, one.part[axes][at[found != e.given[one.places[at]]]]] = False
    if not fits[:, wrong].any(axis=0).all():
        return None
    part = PARTS[axes]
    where = _where(first, wrong, lambda source: fits[kind.reshape(-1)[source], wrong], part)
    return f"in {len(wrong):,} of {first.size:,} {part}s, the expected {{}} of {where}", marks


def _everywhere(
    one: ScaledCase, scales: dict[str, Entries], values: NDArray[np.unsignedinteger], size: int
) -> Fields:
    """Return fields that have one value each for all numbers."""
    return {
        name: np.full(size, value, one.known[name].dtype)
        for name, value in zip(scales, values, strict=True)
    }


def _where(scales: Entries, wrong: Integers, fits: Callable[[Integers], Marks], part: str) -> str:
    """Return the words for the parts next to the wrong ones, if their scales fit in all."""
    for one in _neighbours(scales):
        source = one.source(scales, wrong)
        if (source >= 0).all() and fits(source).all():
            if one.words.startswith("["):
                return f"the {part} at {one.words}"
            return one.words.replace("the entry", f"the {part}")
    return f"another {part}"


def _neighbours(scales: Entries) -> Iterator[Map]:
    for by in (-1, 1):
        yield from (shift(0, by, scales), flat_shift(by), shift(by, 0, scales))
