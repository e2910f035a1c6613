"""Units at which decisions turn, from thresholds and formats alone."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from mor_ref.definitions.format import Format
from mor_ref.exact.arithmetic import FLT_MAX, bits_of, rn32

Numbers = list[float]
Unit = tuple[Numbers, Numbers]  # x and y

_LIMITS = (1, 3, 377487, 419430, 1 << 22, 1 << 23)  # T of the mean: 0.045 and 0.05 are two of them
_LARGE = range(1319413953331, 1319413953531, 8)  # times T, no number of binary64
_COUNTS = (0, 1, 2, 3, 255, 1 << 8, 1 << 14, (1 << 24) + 1, (1 << 32) + 1, 1 << 40, *_LARGE)
_LOST = (0, 1, 1 << 8, 1 << 16, 1 << 32)
_YARDSTICKS = (0, 1, 1 << 23, (1 << 24) + 1, (1 << 32) + 5, (1 << 53) + 1, (1 << 63) - 1)
_MOST = (1 << 64) - 1
_STEPS = (-(1 << 33), -(1 << 31), -2, -1, 0, 1, 2, 1 << 31, 1 << 33, 1 << 63)
_AWAY = (-(1 << 23), -1, 0, 1, 1 << 22, 1 << 23, 1 << 24)
_TINY = (27 * 2.0**-23, *(2.0**-k for k in (6, 10, 12, 14, 18, 20, 22, 23, 24, 26, 40)))


class Sums(NamedTuple):
    """What a decision is about; the magnitudes are bits."""

    sum: int
    nonzero: int
    nonfinite: int = 0
    limit: int = 0
    yardstick_sum: int = 0
    amax: int = 0
    amin: int = 0


def means() -> Iterator[Sums]:
    """Yield units whose mean is a threshold, and those next to it and far away."""
    for limit, nonzero in itertools.product(_LIMITS, _COUNTS):
        at = limit * nonzero
        wide = (int(math.nextafter(float(at), end)) for end in (0.0, math.inf))
        for total in sorted({0, *wide, *(at + step for step in _STEPS)}):
            if 0 <= total <= _MOST:
                yield Sums(total, nonzero, limit=limit)
        yield from (Sums(0, nonzero, lost, limit) for lost in _LOST)


def yardsticks() -> Iterator[Sums]:
    """Yield units whose sum is that of a yardstick, and those next to it and far away."""
    for yardstick in _YARDSTICKS:
        for total in sorted({0, *(yardstick + step for step in _STEPS)}):
            if 0 <= total <= _MOST:
                yield Sums(total, 1, yardstick_sum=yardstick)
        yield from (Sums(0, 1, lost, yardstick_sum=yardstick) for lost in _LOST)


def ranges(fmt: Format) -> Iterator[Sums]:
    """Yield units whose magnitudes span what a format does, and those next to it."""
    ratio = Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1)
    yield Sums(0, 0)
    yield from (Sums(0, 2, lost, amax=1 << 30, amin=1 << 30) for lost in _LOST)
    for field, significand in itertools.product(range(0, 240, 3), (0, 1, 0x2AAAAB, 0x555555)):
        low = max((field << 23) + significand, 1)
        amin = (
            math.ldexp(low, -149)
            if field == 0
            else math.ldexp((1 << 23) + significand, field - 150)
        )
        at = bits_of(min(rn32(min(Fraction(amin) * ratio, Fraction(FLT_MAX))), FLT_MAX))
        for high in sorted({max(low, at + step) for step in _AWAY}):
            if high < 0x7F800000:
                yield Sums(0, 2, amax=high, amin=low)


def units(metric: str, threshold: Fraction) -> Iterator[Unit]:
    """Yield units of up to twelve numbers at a threshold and next to it, and others."""
    yield [0.0], [0.0]
    yield [0.0], [1.0]
    yield [1.5 * 2.0**127, 2.0**127], [-1.5 * 2.0**127, 2.0**127]  # an infinite d
    yield [1.0, 2.0], [1.0, 2.0]
    yield [1.0, 2.0], [1.0, 2.0 + 2.0**-10]
    yield [1.0, 1.0], [1.0, 0.125]
    yield [2.0**-149, 2.0**-130], [0.0, 2.0**-130]
    if metric == "largest_by_row":
        yield from _rows(threshold)
    elif metric == "cosine":
        yield from _angles()
    else:
        yield from _errors(threshold)


def _errors(ratio: Fraction) -> Iterator[Unit]:
    """Yield units whose signal is some times their noise, as a square of a ratio or its inverse."""
    x, d = float(ratio.denominator), float(ratio.numerator)
    for times, scale in ((1, 1.0), (33, 1.0), (1, 2.0**60), (1, 2.0**-60)):
        at = [x * times * scale], [(x - d) * times * scale]
        yield at
        for tiny in (one * scale for one in _TINY):
            yield [*at[0], tiny], [*at[1], tiny]  # a number without an error
            yield [*at[0], 0.0], [*at[1], tiny]
        yield at[0] * 8, at[1] * 8


def _angles() -> Iterator[Unit]:
    """Yield units whose cosine is 0.96, and those next to it; and opposite ones."""
    for scale in (1.0, 2.0**60, 2.0**-60):
        x, y = [3.0 * scale, 4.0 * scale], [4.0 * scale, 3.0 * scale]
        yield x, y
        for tiny in (one * scale for one in _TINY):
            yield from (([*x, a], [*y, b]) for a, b in ((tiny, 0.0), (tiny, tiny), (tiny, -tiny)))
        yield x, [-number for number in y]
        yield x, x


def _rows(limit: Fraction) -> Iterator[Unit]:
    """Yield units of three rows of four, one of them at a part of its amax, or next to it."""
    fine = [64.0, 1.0, 0.0, 0.0]
    for scale, whole in itertools.product((1.0, 2.0**100, 2.0**-100), range(1, 42)):
        amax = whole * scale
        d = rn32(limit * Fraction(amax))
        near = {d, rn32(Fraction(rn32(limit)) * Fraction(amax)), math.nextafter(d, 0.0)}
        for error in sorted({rn32(Fraction(one)) for one in near}):
            row, own = [amax, 0.0, 0.0, 0.0], [amax, error, 0.0, 0.0]
            yield [*row, *fine, *fine], [*own, *fine, *fine]
            yield [*fine, *row, *fine], [*fine, *own, *fine]
            yield [*fine, *fine, *row], [*fine, *fine, *own]


def pairs() -> Iterator[Unit]:
    """Yield numbers to sum, with their y: exact sums are not those in floating point."""
    yield [1.0, 2.0**-80, 3.0, 5.0], [1.0, 2.0**-80, 2.0, 5.5]
    yield [1.0] + [1.0 + 2.0**-23] * 4, [1.0] * 5
    yield [2.0**-130, 2.0**-140, 1.0, 1.0], [2.0**-131, 0.0, 1.0, 1.0]
    yield [1.0, -1.0, 2.0, 3.0], [-1.0, 1.0, 2.0, -3.0]
    yield [1.0, 1.0, 1.0, 1.0, 7.0], [1.0, 1.0, 1.0, 1.0, 6.0]
    yield [1.0], [2.0**-30]  # d is rounded to 1
    yield [FLT_MAX, 1.0], [-FLT_MAX, 1.0]
    yield [2.0**-133] * 300, [2.0**-133] * 300  # words of a sum that carry
    yield [1.5 * 2.0**-117] * 300, [-(2.0**-117)] * 300
