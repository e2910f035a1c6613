"""How entries differ: a few kinds in words, each with the number of entries and one of them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.operations.fields import INTEGERS
from mor_ref.verify.comparing.allowed import is_nan

_NEAR = 9  # codes: all entries further away are of one kind

Integers = NDArray[np.int64]
Marks = NDArray[np.bool_]


class MismatchKind(NamedTuple):
    """A way in which entries differ: how many do, and the place of the one in the middle."""

    words: str
    entries: int
    place: int


def kinds_of(actual: NDArray[Any], expected: NDArray[Any], fmt: str | None) -> list[MismatchKind]:
    """Return the kinds of some entries that all differ, the most frequent first.

    `fmt` is the format of their codes, or None if they are bits of something else.

    >>> import numpy as np
    >>> actual, expected = np.array([8, 9, 8, 0x7F, 0]), np.array([7, 8, 7, 0, 0x80])
    >>> for kind in kinds_of(actual, expected, "e4m3"):
    ...     print(kind)
    MismatchKind(words='1 ulp above', entries=3, place=1)
    MismatchKind(words='NaN where a number is expected', entries=1, place=3)
    MismatchKind(words='the sign of zero', entries=1, place=4)
    """
    found = []
    left = np.ones(expected.shape, np.bool_)
    for words, marks in _marked(actual, expected, fmt):
        places = np.flatnonzero(marks & left)
        left &= ~marks
        if places.size:
            found.append(MismatchKind(words, places.size, int(places[places.size // 2])))
    return sorted(found, key=lambda kind: -kind.entries)


def _marked(
    actual: NDArray[Any], expected: NDArray[Any], fmt: str | None
) -> Iterator[tuple[str, Marks]]:
    """Yield the words of each kind and its entries; an entry is of the first kind that has it."""
    if fmt is not None and fmt in formats:
        form = formats[fmt]
        yield f"not of {form.bits} bits", (actual >= form.code_count) | (actual < 0)
        found = np.where(actual < form.code_count, actual, 0).astype(np.int64)
        yield from _of_codes(found, expected.astype(np.int64), form)
    elif fmt in INTEGERS and expected.dtype.itemsize < 8:
        yield from _of_steps(actual.astype(np.int64) - expected.astype(np.int64), "")
    yield "other bits", np.ones(expected.shape, np.bool_)


def _of_codes(actual: Integers, expected: Integers, fmt: Format) -> Iterator[tuple[str, Marks]]:
    """Yield the kinds of codes: those with NaN, infinities and zeros before the distances."""
    nan, nan_expected = is_nan(actual, fmt), is_nan(expected, fmt)
    yield "another NaN", nan & nan_expected
    yield "NaN where a number is expected", nan
    yield "a number where NaN is expected", nan_expected
    sizes = _magnitudes(actual, fmt), _magnitudes(expected, fmt)
    if fmt.infinity_code is not None:
        infinite = [size == fmt.infinity_code for size in sizes]
        yield "an infinity of the other sign", infinite[0] & infinite[1]
        yield "infinity where a finite number is expected", infinite[0]
        yield "a finite number where infinity is expected", infinite[1]
    if fmt.sign == "sign-magnitude":
        equal = sizes[0] == sizes[1]
        yield "the sign of zero", equal & (sizes[0] == 0)
        yield "the other sign", equal
    if not fmt.is_power_of_two:
        yield "0 where another number is expected", sizes[0] == 0
    yield from _of_steps(ranks(actual, fmt) - ranks(expected, fmt), " ulp")


def _of_steps(steps: Integers, unit: str) -> Iterator[tuple[str, Marks]]:
    """Yield the kinds of distances, which are not 0."""
    for side, away in (("above", steps), ("below", -steps)):
        yield f"1{unit} {side}", away == 1
        yield f"2 to {_NEAR}{unit} {side}", (away > 1) & (away <= _NEAR)
        yield f"{_NEAR + 1}{unit} or more {side}", away > _NEAR


def _magnitudes(codes: Integers, fmt: Format) -> Integers:
    found: Integers = np.abs(ranks(codes, fmt))
    return found


def ranks(codes: Integers, fmt: Format) -> Integers:
    """Return the places of codes in the order of their values."""
    magnitudes = codes & ~fmt.sign_bit
    places: Integers = np.where(codes & fmt.sign_bit, -magnitudes, magnitudes)
    if fmt.sign == "twos-complement":
        places = codes - np.where(codes & fmt.sign_bit, fmt.code_count, 0)
    return places
