"""Numbers with scales that bring them next to the edges of a format."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.exact import arithmetic
from mor_ref.golden.inputs.edges import SPECIALS, Bits, bell, edges_of, values_of
from mor_ref.golden.inputs.extremes import HUGE
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_bits, numbers_of
from mor_ref.operations.random_numbers import SIGNIFICANDS


def scaled_numbers(fmt: Format, size: Size) -> tuple[Bits, Bits]:
    """Return numbers and their scales; some scales are extreme."""
    edges = [bits for bits in edges_of(fmt).tolist() if not bits >> 31]
    scales = [1.0, 0.75, 149.33332824707031, 1.0606060028076172, 2.0**127, 2.0**-126, 3.0e-38]
    xs: list[int] = []
    found: list[int] = []
    for number in (fmt.largest / 3.0, fmt.largest / 2.9999, *scales):
        scale = arithmetic.rn32(Fraction(number))
        stride = 1 if scale == 1 else max(1, len(edges) // 120)  # every edge once
        own: list[int] = []
        for edge in numbers_of(np.array(edges[::stride], np.uint32), "f32"):
            if math.isfinite(edge):
                bits = f32_bits(arithmetic.quotient(edge, scale))
                above = min(bits + 1, 0x7F7FFFFF) | 0x80000000
                own += (max(bits - 1, 0), bits, bits | 0x80000000, above)
        for bits in _rounding_to_ties(fmt, scale):
            own += [bits, bits | 0x80000000]
        own += [*SPECIALS, *bell(32, size.seed, 40).tolist()]
        xs += own
        found += [f32_bits(scale)] * len(own)
    for bits, scale in _with_extreme_scales(fmt):
        xs.append(bits)
        found.append(f32_bits(scale))
    return np.array(xs, np.uint32), np.array(found, np.uint32)


def _with_extreme_scales(fmt: Format) -> Iterator[tuple[int, float]]:
    """Yield numbers and scales; a quotient, or the inverse of a scale, is nearly subnormal."""
    values = [float(v) for v in values_of(fmt)[1:]]
    exponents = (*range(100, 128, 2), 127, -126, -124, -118, -110)
    for n, exponent in enumerate(exponents):
        for k in range(3):
            significand = SIGNIFICANDS[(5 * n + 7 * k + 4) % len(SIGNIFICANDS)]
            scale = arithmetic.rn32(Fraction(significand) * Fraction(2) ** (exponent - 23))
            for value in values[(n + k) % 7 :: max(1, len(values) // 14)]:
                x = arithmetic.quotient(value, scale)
                if math.isfinite(x):
                    yield f32_bits(x), scale
            for bits in (*HUGE, 0xFF7FFFFF) if exponent < 0 else ():
                yield bits, scale


def _rounding_to_ties(fmt: Format, scale: float) -> Iterator[int]:
    """Yield numbers whose product with a scale becomes a tie of a format only by rounding."""
    for tie in ((a + b) / 2 for a, b in itertools.pairwise(values_of(fmt))):
        near = f32_bits(arithmetic.rn32(tie / Fraction(scale)))
        around = [bits for bits in (near - 1, near, near + 1) if 0 < bits < 0x7F800000]
        for bits, x in zip(around, numbers_of(np.array(around, np.uint32), "f32"), strict=True):
            product = Fraction(x) * Fraction(scale)
            if product != tie and arithmetic.rn32(product) == tie:
                yield bits
