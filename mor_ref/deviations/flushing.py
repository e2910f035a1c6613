"""Numbers of binary32 whose subnormal ones are flushed, as many processors do."""

import math

SMALLEST_NORMAL = 2.0**-126


def flushed(x: float) -> float:
    """Return a number of binary32, or a zero with its sign for a subnormal one."""
    return math.copysign(0.0, x) if abs(x) < SMALLEST_NORMAL else x
