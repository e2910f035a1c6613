"""Binary32 as kernels often have it: subnormal numbers are zeros, and logarithms are rounded."""

import math
from fractions import Fraction

from mor_ref.exact.arithmetic import rn32

SMALLEST_NORMAL = 2.0**-126


def flushed(x: float) -> float:
    """Return a binary32 number, or a zero with its sign if it is subnormal."""
    return math.copysign(0.0, x) if abs(x) < SMALLEST_NORMAL else x


def log2_in_binary32(x: float) -> float:
    """Return the logarithm of a positive number; binary64 has more bits than the rounding needs."""
    mantissa, exponent = math.frexp(x)
    return rn32(Fraction(math.log2(mantissa)) + exponent)
