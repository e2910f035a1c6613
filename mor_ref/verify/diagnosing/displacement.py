"""Displacement: the bits that were found are the expected ones of another place."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mor_ref.golden.model.views import split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import format_meant
from mor_ref.verify.comparing.distance import shown
from mor_ref.verify.diagnosing.entries import Bits, Entries, Integers, Marks
from mor_ref.verify.diagnosing.maps import AROUND, Map, exchange_of_lines, flat_shift, maps, shift

_SCREENED = 2048  # entries that each map is tried on first
_TRIED_ON_ALL = 6  # maps that explain the most of these
LEAST_BITS = 40.0  # of surprise: the chance that as many values agree by accident is 2^-40
_CASES_OF_LINES = 8  # cases in which exchanged rows and columns are looked for
_VOTED = 2
_FEW = 3  # expected values: of fewer, nothing is said that they have in common


@dataclass(frozen=True, eq=False)
class Instead:
    """The bits that entries have instead of the expected ones, and which of them.

    `words` say it of an entry. `values` are the bits that each entry would have, where there are
    any: `is_there`. It `is_of_place` if they are the expected bits of another place.
    """

    words: str
    values: Bits
    is_there: Marks
    entries: Entries
    is_of_place: bool = True

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
        found: Marks = ~e.differs & self.is_there & (self.values != e.expected)
        return found

    @cached_property
    def kept(self) -> int:
        """How many entries match, although other bits are expected at the other place."""
        return int(np.count_nonzero(self.would_change))


def displacement(entries: Entries) -> Instead | None:
    """Return what entries have instead of the expected bits: all of them, or most of them.

    A map is tried on some entries that differ; those that explain the most are tried on all.
    """
    at = entries.some(_SCREENED)
    rated = [(one, _share(one, entries, at)) for one in (*maps(entries), *_found(entries, at))]
    best = sorted((pair for pair in rated if pair[1] >= 1 / 2), key=lambda pair: -pair[1])
    found = [_of_map(one, entries) for one, _ in best[:_TRIED_ON_ALL]]
    found += _others(entries)
    claims = [one for one in found if _is_claimed(one)]
    return min(claims, key=lambda one: (-one.explained, one.kept), default=None)


def _is_claimed(one: Instead) -> bool:
    """Return whether it is more than chance, and explains more than it would change."""
    of = len(one.entries.differing)
    is_all = one.explained == of
    if one.explained < 2 or not (is_all or 2 * one.explained >= of):
        return False
    if not is_all and one.kept > one.explained:
        return False
    return _surprise(one) >= LEAST_BITS


def _surprise(one: Instead) -> float:
    """Return the bits of surprise of the values that it explains, if they are by accident.

    The chance of a value is its share of the expected ones: of the field, or of the case if larger.
    """
    e = one.entries
    places = np.flatnonzero(one.explains)
    places = places[:: max(1, -(-len(places) // _SCREENED))]
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
    return float(-np.log2(np.clip(np.maximum(share, of_case), 1e-9, 1.0)).sum())


def _share(one: Map, entries: Entries, at: Integers) -> float:
    """Return the share of some entries that differ which a map explains."""
    source = one.source(entries, at)
    is_right = (source >= 0) & (entries.expected[source] == entries.given[at])
    return float(np.count_nonzero(is_right)) / max(len(at), 1)


def _of_map(one: Map, entries: Entries) -> Instead:
    source = one.source(entries, np.arange(entries.size))
    return Instead(_said(one, entries), entries.expected[source], source >= 0, entries)


def _said(one: Map, entries: Entries) -> str:
    place = "[i, j]" if entries.axes == 2 else "[i]"
    if entries.noun == "nibble" and one.words == "[i, j ^ 1]":
        return "the two nibbles of each byte are swapped"
    if one.words.startswith("["):
        subject = f"nibble {place}" if entries.noun == "nibble" else place
        return f"{subject} has the expected value of {one.words}"
    if any(words in one.words for words in (" swapped", " other places", " another order")):
        return one.words
    return f"each {entries.noun} has the expected value of {one.words}"


# ---------------------------------------------------------------- maps that the values suggest


def _found(entries: Entries, at: Integers) -> Iterator[Map]:
    """Yield maps that the given values suggest: shifts of any length, exchanged rows or columns."""
    yield from _voted(entries, at)
    if entries.axes == 2:
        yield from _lines(entries)


def _voted(entries: Entries, at: Integers) -> Iterator[Map]:
    """Yield the most frequent shifts to a value that its case has once."""
    e = entries
    values, rank = np.unique(e.expected, return_inverse=True)
    keys, first, counts = np.unique(
        e.case * len(values) + rank, return_index=True, return_counts=True
    )
    k = np.minimum(np.searchsorted(values, e.given[at]), len(values) - 1)
    own = e.case[at] * len(values) + k
    position = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    is_once = (values[k] == e.given[at]) & (keys[position] == own) & (counts[position] == 1)
    here, there = at[is_once], first[position[is_once]]
    if not len(here):
        return
    for down, right in _most_frequent(e.row[there] - e.row[here], e.column[there] - e.column[here]):
        yield shift(down, right, e)
        yield shift(down, right, e, AROUND)
    for by, _ in _most_frequent(there - here, 0 * here):
        yield flat_shift(by)


def _most_frequent(*steps: Integers) -> list[tuple[int, int]]:
    found, counts = np.unique(np.stack(steps, axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_VOTED]
    return [(int(a), int(b)) for a, b in found[order].tolist()]


def _lines(entries: Entries) -> Iterator[Map]:
    """Yield the exchanges of whole rows, and of whole columns, that a few cases show."""
    at = entries.differing[np.minimum(entries.rows, entries.columns)[entries.differing] > 1]
    cases = np.unique(entries.case[at])[:_CASES_OF_LINES].tolist()
    for name in ("row", "column"):
        seen: list[dict[int, int]] = []
        for case in cases:
            pairs = _exchanged(entries, case, name)
            if pairs not in seen and len(set(pairs.values())) == len(pairs) > 1:
                seen.append(pairs)
                yield from _rolled(entries, case, pairs, name)
                yield exchange_of_lines(pairs, name, _of_lines(pairs, name))


def _rolled(entries: Entries, case: int, pairs: dict[int, int], name: str) -> Iterator[Map]:
    """Yield the shift around the end that whole rows or columns have, if they have one."""
    sides = entries.rows if name == "row" else entries.columns
    side = int(sides[np.flatnonzero(entries.case == case)[0]])
    steps = {(other - k) % side for k, other in pairs.items()}
    if len(steps) == 1:
        step = steps.pop()
        step = step if 2 * step <= side else step - side
        yield shift(*((step, 0) if name == "row" else (0, step)), entries, AROUND)


def _of_lines(pairs: dict[int, int], name: str) -> str:
    (a, b), *_ = pairs.items()
    if len(pairs) == 2 and pairs.get(b) == a:
        return f"{name}s {a} and {b} are swapped"
    few = [f"{k} has {name} {other}" for k, other in pairs.items()][:3]
    rest = f", and {len(pairs) - 3} more" if len(pairs) > 3 else ""
    return f"whole {name}s are in other places: {', '.join(few)}{rest}"


def _exchanged(entries: Entries, case: int, name: str) -> dict[int, int]:
    """Return, for the rows or columns of a case, the one whose bits each has instead."""
    (places,) = np.nonzero(entries.case == case)
    shape = int(entries.rows[places[0]]), int(entries.columns[places[0]])
    right, given = (array[places].reshape(shape) for array in (entries.expected, entries.given))
    if name == "column":
        right, given = right.T, given.T
    wrong = np.flatnonzero((right != given).any(axis=1)).tolist()
    known = {line.tobytes(): k for k, line in enumerate(right)}
    known |= {right[k].tobytes(): k for k in wrong}
    return {k: known[given[k].tobytes()] for k in wrong if given[k].tobytes() in known}


# ---------------------------------------------------------------- bits that are not of a place


def _others(entries: Entries) -> Iterator[Instead]:
    """Yield what entries have instead that is not of another place of the field."""
    for try_one in (_one_value, _offset, _bytes_reversed):
        found = try_one(entries)
        if found is not None:
            yield found
    yield from _other_fields(entries)


def _one_value(e: Entries) -> Instead | None:
    """Return the one value that all wrong entries have, if several are expected there."""
    values = np.unique(e.given[e.differing])
    if len(values) > 1 or len(np.unique(e.expected[e.differing])) < _FEW:
        return None
    value = int(values[0])
    kind = OPERATIONS[e.samples[0].operation].field(split(e.field)[0])[0]
    meant = {format_meant(kind, one.question.parameters) for one in e.samples}
    said = shown(value, meant.pop()) if len(meant) == 1 and e.noun == "entry" else f"{value:#x}"
    everywhere = np.full(e.size, value, np.uint64)
    return Instead(
        f"each {e.noun} is {said}", everywhere, np.ones(e.size, bool), e, is_of_place=False
    )


def _offset(e: Entries) -> Instead | None:
    """Return the expected bits and a constant, around the end, if all wrong entries have them."""
    bits = 4 if e.noun == "nibble" else 8 * _bytes_of(e)
    mask = np.uint64((1 << bits) - 1)
    steps = np.unique((e.given - e.expected)[e.differing] & mask)
    if len(steps) > 1 or len(np.unique(e.expected[e.differing])) < _FEW:
        return None
    step = int(steps[0])
    sign, size = ("+", step) if 2 * step < 1 << bits else ("-", (1 << bits) - step)
    values = (e.expected + steps[0]) & mask
    words = f"each {e.noun} is the expected one {sign} {size:,}"
    return Instead(words, values, np.ones(e.size, bool), e, is_of_place=False)


def _bytes_of(e: Entries) -> int:
    return max(one.pairs[e.field].expected.dtype.itemsize for one in e.samples)


def _bytes_reversed(e: Entries) -> Instead | None:
    size = _bytes_of(e)
    if e.noun == "nibble" or size == 1:
        return None
    turned = e.expected.astype(f"u{size}").byteswap().astype(np.uint64)
    words = "each entry has its bytes in reverse order"
    return Instead(words, turned, np.ones(e.size, bool), e, is_of_place=False)


def _other_fields(e: Entries) -> Iterator[Instead]:
    """Yield the other fields and inputs of the same shape and width that explain something."""
    if e.noun == "nibble":
        return
    names = {name for one in e.samples for name in (*one.pairs, *one.question.arrays)} - {e.field}
    for name in sorted(names):
        values, is_there = np.zeros(e.size, np.uint64), np.zeros(e.size, bool)
        first = 0
        is_input = False
        for one in e.samples:
            mine = one.pairs[e.field].expected
            is_input = name in one.question.arrays
            known = {
                **{key: pair.expected for key, pair in one.pairs.items()},
                **one.question.arrays,
            }
            other = known.get(name)
            if other is not None and (other.shape, other.dtype) == (mine.shape, mine.dtype):
                values[first : first + mine.size] = other.ravel()
                is_there[first : first + mine.size] = True
            first += mine.size
        whose = f"the bits of the input {name}" if is_input else f"the expected value of {name}"
        if is_there.any():
            yield Instead(f"each entry has {whose}", values, is_there, e)
