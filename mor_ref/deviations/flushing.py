"""Flushing of subnormal binary32 numbers to zero, as on many processors."""

import math

SMALLEST_NORMAL = 2.0**-126


def flushed(x: float) -> float:
    """Return a binary32 number, or a zero with its sign if it is subnormal."""
    return math.copysign(0.0, x) if abs(x) < SMALLEST_NORMAL else x
