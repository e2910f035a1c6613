"""Record of the bits that entries have instead of the expected ones."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mor_ref.verify.diagnosing.entries import Bits, Entries, Integers, Marks, spread

LEAST_BITS = 40.0  # of surprise: the chance that as many values agree by accident is 2^-40
_COUNTED = 2048  # entries that surprise
_NEAR = 2  # of the expected values in order: another rounding leads no further
_SEVERAL = 6  # values: a few, such as 0, are everywhere


@dataclass(frozen=True, eq=False)
class Alternative:
    """The bits that entries have instead of the expected ones, and which of them.

    `words` say it of an entry. `values` are the bits that each entry would have, where there are
    any: `is_there`. It `is_of_place` if they are the expected bits of another place. If it
    `needs_a_place`, it is nothing without a condition that says why others match. If it is
    `of_all`, it is nothing unless all entries that differ have these bits. `sure` are the bits of
    surprise of each value, if they are known.
    """

    words: str
    values: Bits
    is_there: Marks
    entries: Entries
    is_of_place: bool = True
    needs_a_place: bool = False
    of_all: bool = False
    sure: NDArray[np.float64] | None = None

    @cached_property
    def explains(self) -> Marks:
        """The entries that differ and have these bits."""
        e = self.entries
        found: Marks = e.differs & self.is_there & (self.values == e.given)
        return found

    @cached_property
    def explained(self) -> int:
        """How many entries that differ have these bits."""
        return int(np.count_nonzero(self.explains))

    @cached_property
    def would_change(self) -> Marks:
        """The entries that match, although other bits are expected at the other place."""
        e = self.entries
        is_other = (self.values != e.expected) & (self.values != e.given)
        found: Marks = e.matches & self.is_there & is_other
        return found

    @cached_property
    def kept(self) -> int:
        """How many entries match, although other bits are expected at the other place."""
        return int(np.count_nonzero(self.would_change))

    @property
    def is_far(self) -> bool:
        """Whether the values are too far from the expected ones for another rounding."""
        values = np.unique(self.entries.expected)
        ranks = [np.searchsorted(values, one) for one in (self.values, self.entries.expected)]
        far = self.explains & (np.abs(ranks[0] - ranks[1]) > _NEAR)
        is_most = 2 * int(np.count_nonzero(far)) > self.explained
        is_most &= len(np.unique(self.values[far])) >= _SEVERAL
        return is_most and surprise(self, far) >= 2 * LEAST_BITS


def surprise(one: Alternative, marks: Marks) -> float:
    """Return the bits of surprise of the marked values, if they are by accident.

    The chance of a value is its share of the expected ones: of the field, or of the case if larger.
    Copies are not further evidence: entries with equal bits and equal neighbours count once.
    """
    e = one.entries
    places = _once(e, np.flatnonzero(marks))
    places = spread(places, _COUNTED)
    values, rank, counts = np.unique(e.expected, return_inverse=True, return_counts=True)
    k = np.minimum(np.searchsorted(values, e.given[places]), len(values) - 1)
    is_known = values[k] == e.given[places]
    share = np.where(is_known, counts[k], 1) / e.size
    keys, in_case = np.unique(e.case * len(values) + rank, return_counts=True)
    own = e.case[places] * len(values) + k
    position = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    sizes = (e.rows * e.columns)[places]
    is_own = is_known & (keys[position] == own)
    of_case = np.where(is_own, in_case[position], 0) / sizes
    bits = -np.log2(np.clip(np.maximum(share, of_case), 1e-9, 1.0))
    return float((bits if one.sure is None else np.maximum(bits, one.sure[places])).sum())


def _once(e: Entries, places: Integers) -> Integers:
    """Return places, one of those that have the same bits and the same neighbours."""
    last = e.size - 1
    around = [e.expected[np.clip(places + k, 0, last)] for k in (-1, 0, 1)]
    context = np.stack([*around, e.given[places]], axis=1)
    return places[np.sort(np.unique(context, axis=0, return_index=True)[1])]
