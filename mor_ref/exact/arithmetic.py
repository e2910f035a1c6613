"""Binary32 arithmetic: every operation exactly, then rounded once (ART-002)."""

import math
import struct
from fractions import Fraction

from mor_ref.definitions.format import Format
from mor_ref.exact.encoding import Ratio, floor_log2, goes_up, in_units_of
from mor_ref.exact.step import step

FLT_MAX = math.ldexp(2**24 - 1, 104)
_SMALLEST_UNIT = -149  # of the subnormal numbers
_LARGEST_UNIT = 104
_SMALLEST_SURE, _LARGEST_SURE = math.ldexp(1.0, -400), math.ldexp(1.0, 127)
_TO_25_BITS = 2.0**28 + 1  # Veltkamp's way to split off the upper 25 of 53 bits
_BINARY32 = struct.Struct("f")


def rn32(value: Fraction | Ratio) -> float:
    """Round a rational number to binary32 (ART-001); zero is positive."""
    if value.numerator == 0:
        return 0.0
    magnitude = Ratio(abs(value.numerator), value.denominator)
    unit = max(floor_log2(magnitude) - 23, _SMALLEST_UNIT)
    is_finite = unit <= _LARGEST_UNIT
    nearest = math.ldexp(units_next_to(magnitude, unit), unit) if is_finite else math.inf
    rounded = nearest if nearest <= FLT_MAX else math.inf
    return rounded if value.numerator > 0 else -rounded


def rn32_of_binary64(x: float) -> float:
    """Round a binary64 number to binary32 (QNT-004); zeros keep their sign, NaN stays."""
    sure = rn32_by_binary64(x)
    if sure is not None:
        return sure
    return rn32(Ratio.of(x, 1.0)) if math.isfinite(x) and x != 0 else x


def rn32_by_binary64(near: float) -> float | None:
    """Return RN32 of a real number, given the binary64 number nearest to it; None if in doubt.

    Rounding to binary64 keeps the order of numbers, and a number halfway between two neighbours in
    binary32 is one of binary64, with at most 25 significant bits. So the real number is on the same
    side of each of these as `near`, unless `near` is one of them. Zeros, and numbers close to the
    ends of both formats, are in doubt as well.
    """
    if not (_SMALLEST_SURE < near < _LARGEST_SURE or _SMALLEST_SURE < -near < _LARGEST_SURE):
        return None
    multiple = near * _TO_25_BITS
    has_25_bits = multiple - (multiple - near) == near
    (rounded,) = _BINARY32.unpack(_BINARY32.pack(near))
    return None if has_25_bits and rounded != near else float(rounded)


def units_next_to(magnitude: float | Fraction | Ratio, unit: int) -> int:
    """Count the units of 2^unit next to a positive number; in a tie, the count is even."""
    below, rest, whole = in_units_of(unit, magnitude)
    return below + goes_up("rne", rest, whole, odd=below % 2 == 1, negative=False)


def nearest_in(x: float, fmt: Format) -> float:
    """Return the nearest number of a format, ties to even; beyond the largest one, an infinity."""
    if x == 0 or not math.isfinite(x):
        return x
    unit = max(math.frexp(x)[1] - 1, fmt.smallest_exponent) - fmt.mantissa_bits
    near = math.ldexp(round(math.ldexp(abs(x), -unit)), unit)  # round takes ties to even
    return math.copysign(near if near <= fmt.largest else math.inf, x)


def _special(result: float, a: float, b: float) -> float:
    """Return a result of infinities, NaN or zeros, which needs no rounding."""
    return nan_of(a, b) if math.isnan(result) else result


@step
def nan_of(a: float, b: float) -> float:
    """Return the NaN of an operation on a and b: without a sign and a payload (ART-003)."""
    del a, b
    return math.nan


@step
def product(a: float, b: float) -> float:
    """Return RN32(a * b)."""
    sure = rn32_by_binary64(a * b)
    if sure is not None:
        return sure
    if not (math.isfinite(a) and math.isfinite(b)):
        return _special(a * b, a, b)
    (p, q), (r, s) = a.as_integer_ratio(), b.as_integer_ratio()
    result = rn32(Ratio(p * r, q * s))
    return math.copysign(result, math.copysign(1, a) * math.copysign(1, b))


@step
def quotient(a: float, b: float) -> float:
    """Return RN32(a / b)."""
    if b == 0:
        if a == 0 or math.isnan(a):
            return nan_of(a, b)
        return math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))
    sure = rn32_by_binary64(a / b)
    if sure is not None:
        return sure
    if not (math.isfinite(a) and math.isfinite(b)):
        return _special(a / b, a, b)
    result = rn32(Ratio.of(abs(a), abs(b)))
    return math.copysign(result, math.copysign(1, a) * math.copysign(1, b))


def total(a: float, b: float) -> float:
    """Return RN32(a + b); the sum of opposite numbers is +0, that of two zeros -0 if both are."""
    sure = rn32_by_binary64(a + b)
    if sure is not None:
        return sure
    if not (math.isfinite(a) and math.isfinite(b)) or (a == 0 and b == 0):
        return _special(a + b, a, b)
    (p, q), (r, s) = a.as_integer_ratio(), b.as_integer_ratio()
    return rn32(Ratio(p * s + r * q, q * s))


def difference(a: float, b: float) -> float:
    """Return RN32(a - b)."""
    return total(a, -b)


def bits_of(x: float) -> int:
    """Return the binary32 bit pattern of a positive finite binary32 number."""
    if x == 0:
        return 0
    exponent = max(floor_log2(x), -126)
    significand = int(math.ldexp(x, 23 - exponent))
    return ((exponent + 126) << 23) + significand  # the hidden bit adds one to the exponent
