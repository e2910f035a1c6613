"""Record of the bits that entries have instead of the expected ones."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mor_ref.verify.diagnosing.entries import Bits, Entries, Integers, Marks, spread

LEAST_BITS = 40.0  # of surprise: by accident, values agree with chance 2^-40
_MANTISSA = np.uint64(0x7FFFFF)  # of binary32
_ENDS_IN = np.uint64(0xFF)  # bits that are 0 in a round number of 32 bits
_COUNTED = 2048  # entries whose surprise is counted
_NEAR = 2  # places among the sorted expected values, as far as another rounding can lead
_SEVERAL = 6  # values: fewer, such as 0 alone, are everywhere


@dataclass(frozen=True, eq=False)
class Alternative:
    """The bits that entries have instead of the expected ones, and the entries that have them.

    `words` describe the bits of an entry. `values` are the bits that each entry would have;
    `is_there` marks the entries with such bits. It `is_of_place` if the bits are the expected ones
    of another place. If it `needs_a_place`, it counts only with a condition that says why other
    entries match. If it is `of_all`, it counts only if all entries that differ have these bits. It
    `is_of_value` if its words name the bits themselves. `sure` holds the bits of surprise of each
    value, if known. `also` are the words of other causes of the same bits.
    """

    words: str
    values: Bits
    is_there: Marks
    entries: Entries
    is_of_place: bool = True
    needs_a_place: bool = False
    of_all: bool = False
    is_of_value: bool = False
    sure: NDArray[np.float64] | None = None
    also: tuple[str, ...] = ()

    @cached_property
    def explains(self) -> Marks:
        """The entries that differ and have these bits."""
        e = self.entries
        found: Marks = e.differs & self.is_there & (self.values == e.given)
        return found

    @cached_property
    def explained(self) -> int:
        """The count of entries that differ and have these bits."""
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
        """The count of entries that match, although other bits are expected at the other place."""
        return int(np.count_nonzero(self.would_change))

    @property
    def is_far(self) -> bool:
        """Whether the values are too far from the expected ones for another rounding to explain."""
        values = np.unique(self.entries.expected)
        ranks = [np.searchsorted(values, one) for one in (self.values, self.entries.expected)]
        far = self.explains & (np.abs(ranks[0] - ranks[1]) > _NEAR)
        is_most = 2 * int(np.count_nonzero(far)) > self.explained
        is_most &= len(np.unique(self.values[far])) >= _SEVERAL
        return is_most and surprise(self, far) >= 2 * LEAST_BITS


def sure_of(values: Bits, expected: Bits) -> NDArray[np.float64]:
    """Return the surprise of numbers of 32 bits: enough for each that is not round, else none.

    A number that differs from the expected one in the exponent alone has none: scales may share a
    mantissa, as those of gam do.
    """
    is_sure = (values & _ENDS_IN != 0) & ((values ^ expected) & _MANTISSA != 0)
    return np.where(is_sure, LEAST_BITS, 0.0)


def surprise(one: Alternative, marks: Marks) -> float:
    """Return the bits of surprise of the marked values, as if they agreed by accident.

    The chance of a value is its share among the expected values of the field, or of the case if
    that share is larger. Copies are not further evidence: entries with equal bits and equal
    neighbours count once.
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
    """Return places, but only one among those with equal bits and equal neighbours."""
    last = e.size - 1
    around = [e.expected[np.clip(places + k, 0, last)] for k in (-1, 0, 1)]
    context = np.stack([*around, e.given[places]], axis=1)
    return places[np.sort(np.unique(context, axis=0, return_index=True)[1])]
