"""The number of a code, and the numbers of a format next to a number."""

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mor_ref.definitions.format import Format
from mor_ref.explanations.encoding import Neighbour


@dataclass(frozen=True)
class ExplainedCode:
    """A code with its number, and the next smaller and larger finite numbers, if there are any."""

    fmt: Format
    code: int
    value: float
    below: Neighbour | None
    above: Neighbour | None


class Neighbours(NamedTuple):
    """The finite numbers of a format next to a number, below and above it; None for none."""

    below: float | None
    above: float | None


def explain_code(code: int, fmt: Format) -> ExplainedCode:
    """Return the number of a code, and its neighbours.

    >>> from mor_ref import formats
    >>> found = explain_code(0x3A, formats["e4m3"])
    >>> found.value, float(found.below.value), float(found.above.value)
    (1.25, 1.125, 1.375)
    """
    value = fmt.value(code)
    if not math.isfinite(value):
        return ExplainedCode(fmt, code, value, None, None)
    place = _place_of(code, fmt)
    return ExplainedCode(fmt, code, value, _at(place - 1, fmt), _at(place + 1, fmt))


def numbers_next_to(x: float, fmt: Format) -> Neighbours:
    """Return the numbers of a format next to a number, which need not be one of them."""
    if math.isnan(x):
        return Neighbours(None, None)
    places = _finite_places(fmt)

    def number(place: int) -> float:
        return fmt.value(_code_at(place, fmt))

    first = bisect.bisect_left(places, x, key=number)
    last = bisect.bisect_right(places, x, key=number)
    return Neighbours(
        number(places[first - 1]) if first > 0 else None,
        number(places[last]) if last < len(places) else None,
    )


def _place_of(code: int, fmt: Format) -> int:
    """Return the place of a code in the order of its numbers: that of 0 is 0, if it has one."""
    if fmt.sign == "sign-magnitude":
        return fmt.sign_bit - code if code & fmt.sign_bit else code
    if fmt.sign == "twos-complement" and code & fmt.sign_bit:
        return code - fmt.code_count
    return code


def _code_at(place: int, fmt: Format) -> int:
    if place >= 0:
        return place
    return fmt.sign_bit - place if fmt.sign == "sign-magnitude" else place + fmt.code_count


def _finite_places(fmt: Format) -> range:
    """Return the places of all finite numbers of a format."""
    if fmt.sign == "twos-complement":
        return range(-fmt.sign_bit, fmt.sign_bit)
    last = fmt.largest_code
    return range(0 if fmt.sign == "none" else -last, last + 1)


def _at(place: int, fmt: Format) -> Neighbour | None:
    """Return the number at a place, if it is a finite one of the format."""
    if place not in _finite_places(fmt):
        return None
    code = _code_at(place, fmt)
    return Neighbour(Fraction(fmt.value(code)), code)
