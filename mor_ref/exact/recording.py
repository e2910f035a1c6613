"""Measures of a quantized operand: signal, noise, flushed, saturated, exponents of scales."""

import math
from collections.abc import Iterable
from fractions import Fraction

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import difference
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.quantization import to_bf16
from mor_ref.exact.step import step

Pairs = Iterable[tuple[float, float]]  # x and y of elements


def signal(pairs: Pairs) -> Fraction:
    """Return the sum of the squares of x (TRN-010)."""
    return sum((Fraction(x) ** 2 for x, _ in pairs if math.isfinite(x)), Fraction(0))


def noise(pairs: Pairs) -> Fraction:
    """Return the sum of the squares of the differences (TRN-010)."""
    lost = (difference_of(x, y) for x, y in pairs)
    return sum((Fraction(d) ** 2 for d in lost if math.isfinite(d)), Fraction(0))


@step
def difference_of(x: float, y: float) -> float:
    """Return d of an element (TRN-010)."""
    return formats["bf16"].value(to_bf16(difference(x, y)))


def sqnr(signal: Fraction, noise: Fraction) -> float:
    """Return the ratio in decibels (TRN-010)."""
    return 10 * math.log10(signal / noise) if noise else math.inf


@step
def is_flushed(x: float, y: float) -> bool:
    """Return whether a number became zero (TRN-011)."""
    return x != 0 and y == 0


@step
def is_saturated(xs: float, fmt: Format) -> bool:
    """Return whether a scaled number is beyond what rounds to the largest (TRN-011)."""
    largest = fmt.largest_code
    gap = Fraction(fmt.value(largest)) - Fraction(fmt.value(largest - 1))
    return math.isfinite(xs) and abs(Fraction(xs)) > Fraction(fmt.value(largest)) + gap / 2


@step
def scale_exponent(scale: float, *, divides: bool) -> int:
    """Return the exponent of a scale that multiplies, or divides (TRN-012)."""
    exponent = floor_log2(scale)
    return -exponent if divides else exponent
