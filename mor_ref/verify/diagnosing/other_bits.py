"""Bits of entries that are not the expected bits of another place."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.views import split
from mor_ref.operations import OPERATIONS
from mor_ref.operations.fields import format_meant
from mor_ref.verify.comparing.distance import shown
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import Bits, Entries

_FEW = 3  # expected values; fewer are not evidence
_STUCK = 3  # bits that are stuck together


def other_bits(entries: Entries) -> Iterator[Alternative]:
    """Yield alternatives whose bits do not come from another place of the field."""
    of_values = _one_value, _one_for_another, _one_bit_inverted, _offset, _mirrored, _complement
    for try_one in (*of_values, _stuck, _bits_reversed, _bytes_reversed):
        found = try_one(entries)
        if found is not None:
            yield found
    yield from _other_fields(entries)


def only_value(e: Entries) -> Alternative | None:
    """Return the one value that all wrong entries have, if it has 8 bits or fewer."""
    values = np.unique(e.given[e.differing])
    return _value(e, int(values[0])) if len(values) == 1 and _bytes_of(e) == 1 else None


def frequent_value(e: Entries) -> Iterator[Alternative]:
    """Yield the most frequent value of wrong entries."""
    values, counts = np.unique(e.given[e.differing], return_counts=True)
    yield _value(e, int(values[counts.argmax()]))


def _one_value(e: Entries) -> Alternative | None:
    """Return the value that all wrong entries have, if several values are expected."""
    values = np.unique(e.given[e.differing])
    return _value(e, int(values[0])) if len(values) == 1 and _has_several(e) else None


def _value(e: Entries, value: int) -> Alternative:
    words = f"each {e.noun} is {_said(e, value)}"
    return replace(_everywhere(e, words, np.full(e.size, value, np.uint64)), is_of_value=True)


def _said(e: Entries, value: int) -> str:
    fmt = _format_of(e)
    return shown(int(value), fmt) if fmt is not None else f"{int(value):#x}"


def _one_for_another(e: Entries) -> Alternative | None:
    """Return the one value that replaces another one in all wrong entries, such as 0 for -0.

    An expected NaN does not count: deviations name the steps that make it.
    """
    given, expected = (np.unique(bits[e.differing]) for bits in (e.given, e.expected))
    fmt = _format_of(e)
    nans = formats[fmt].nan_codes if fmt is not None and fmt in formats else ()
    if len(given) > 1 or len(expected) > 1 or any(int(expected[0]) in codes for codes in nans):
        return None
    is_one = e.expected == expected[0]
    words = f"each {e.noun} that is to be {_said(e, expected[0])} is {_said(e, given[0])}"
    found = _everywhere(e, words, np.where(is_one, given[0], e.expected))
    if found.kept:
        return None
    sure = np.full(e.size, -np.log2(is_one.mean()))  # no other value is wrong
    return replace(found, sure=sure, is_of_value=True)


def _has_several(e: Entries) -> bool:
    return len(np.unique(e.expected[e.differing])) >= _FEW


def _everywhere(e: Entries, words: str, values: Bits) -> Alternative:
    return Alternative(words, values, np.ones(e.size, bool), e, is_of_place=False)


def _format_of(e: Entries) -> str | None:
    """Return the format of all entries; None if there are several, or entries are nibbles."""
    kind = OPERATIONS[e.samples[0].operation].field(split(e.field)[0]).format
    meant = {format_meant(kind, one.question.parameters) for one in e.samples}
    return meant.pop() if len(meant) == 1 and e.noun == "entry" else None


def _bits_of(e: Entries) -> int:
    """Return the count of bits of an entry."""
    fmt = _format_of(e)
    if fmt is not None and fmt in formats:
        return formats[fmt].bits
    return 4 if e.noun == "nibble" else 8 * _bytes_of(e)


def _sign_bit_of(e: Entries) -> int:
    """Return the sign bit of the format, or 0 if the entries have no sign bit."""
    fmt = _format_of(e)
    return formats[fmt].sign_bit if fmt is not None and fmt in formats else 0


def _bit_words(mask: int, e: Entries) -> str:
    """Return the names of a few bits; the lowest one is bit 0."""
    if mask == _sign_bit_of(e):
        return "the sign bit"
    *first, last = [str(k) for k in range(mask.bit_length()) if mask >> k & 1]
    return f"bits {', '.join(first)} and {last}" if first else f"bit {last}"


def _one_bit_inverted(e: Entries) -> Alternative | None:
    """Return the expected bits with one bit inverted, if all wrong entries have them."""
    masks = np.unique((e.given ^ e.expected)[e.differing])
    mask = int(masks[0])
    if len(masks) > 1 or mask & mask - 1 or not _has_several(e):
        return None
    words = f"each {e.noun} has {_bit_words(mask, e)} inverted"
    found = _everywhere(e, words, e.expected ^ masks[0])
    return replace(found, needs_a_place=mask != _sign_bit_of(e))


def _stuck(e: Entries) -> Alternative | None:
    """Return the expected bits, with a few bits that are always 0, or always 1."""
    apart = (e.given ^ e.expected)[e.differing]
    mask = np.bitwise_or.reduce(apart)
    count = int(mask).bit_count()
    if 2 * count > _bits_of(e) or count > _STUCK or not _has_several(e):
        return None
    for value, values in ((0, e.expected & ~mask), (1, e.expected | mask)):
        found = _everywhere(
            e,
            f"{_bit_words(int(mask), e)} of each {e.noun} "
            f"{'is' if count == 1 else 'are'} always {value}",
            values,
        )
        if found.explained == len(e.differing):
            return replace(found, needs_a_place=True)
    return None


def _offset(e: Entries) -> Alternative | None:
    """Return the expected bits plus a constant, modulo their width, if all wrong entries fit."""
    bits = 4 if e.noun == "nibble" else 8 * _bytes_of(e)
    mask = np.uint64((1 << bits) - 1)
    steps = np.unique((e.given - e.expected)[e.differing] & mask)
    if len(steps) > 1 or not _has_several(e):
        return None
    step = int(steps[0])
    sign, size = ("+", step) if 2 * step < 1 << bits else ("-", (1 << bits) - step)
    return _everywhere(
        e, f"each {e.noun} is the expected one {sign} {size:,}", (e.expected + steps[0]) & mask
    )


def _mirrored(e: Entries) -> Alternative | None:
    """Return a constant minus the expected bits, as for inverses of powers of two."""
    sums = np.unique((e.given + e.expected)[e.differing])
    if len(sums) > 1 or not _has_several(e):
        return None
    found = _everywhere(
        e, f"each {e.noun} is {int(sums[0]):,} minus the expected one", sums[0] - e.expected
    )
    return replace(found, needs_a_place=True)


def _complement(e: Entries) -> Alternative | None:
    """Return the codes with negative ones in two's complement."""
    sign = np.uint64(_sign_bit_of(e))
    if not sign:
        return None
    magnitude = e.expected & (sign - np.uint64(1))
    values = np.where(
        e.expected & sign, (sign * np.uint64(2) - magnitude) % (sign * np.uint64(2)), e.expected
    )
    found = _everywhere(e, f"each negative {e.noun} is in two's complement", values)
    return replace(found, needs_a_place=True)


def _bits_reversed(e: Entries) -> Alternative | None:
    """Return the expected bits in reverse order."""
    bits, turned = _bits_of(e), np.zeros(e.size, np.uint64)
    for k in range(bits):
        turned |= (e.expected >> np.uint64(k) & np.uint64(1)) << np.uint64(bits - 1 - k)
    return _everywhere(e, f"each {e.noun} has its {bits} bits in reverse order", turned)


def _bytes_of(e: Entries) -> int:
    return max(one.pairs[e.field].expected.dtype.itemsize for one in e.samples)


def _bytes_reversed(e: Entries) -> Alternative | None:
    size = _bytes_of(e)
    if e.noun == "nibble" or size == 1:
        return None
    turned = e.expected.astype(f"u{size}").byteswap().astype(np.uint64)
    return _everywhere(e, "each entry has its bytes in reverse order", turned)


def _other_fields(e: Entries) -> Iterator[Alternative]:
    """Yield the other fields and inputs that have the same shape and width."""
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
            yield Alternative(f"each entry has {whose}", values, is_there, e)
