"""Numbers as formulas mean them: real numbers, with the zeros, infinities and NaN of IEEE 754.

A number is a Fraction, or a float if it is a zero, an infinity or NaN. Results are exact; what
IEEE 754 says of its special numbers holds for these.
"""

import math
from collections.abc import Callable
from fractions import Fraction

Number = Fraction | float
ZERO = 0.0


def number(value: float | Fraction) -> Number:
    """Return an integer, a float or a fraction as a number.

    >>> number(1.5), number(-0.0), number(math.inf)
    (Fraction(3, 2), -0.0, inf)
    """
    is_special = isinstance(value, float) and (value == 0 or not math.isfinite(value))
    return value if is_special else Fraction(value) or ZERO


def total(a: Number, b: Number) -> Number:
    """Return a + b.

    >>> total(Fraction(1), ZERO), total(-ZERO, -ZERO)
    (Fraction(1, 1), -0.0)
    """
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b or ZERO
    if a == 0 and isinstance(b, Fraction):
        return b
    if b == 0 and isinstance(a, Fraction):
        return a
    return _weight(a) + _weight(b)


def difference(a: Number, b: Number) -> Number:
    """Return a - b."""
    return total(a, -b)


def product(a: Number, b: Number) -> Number:
    """Return a * b."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a * b
    return _weight(a) * _weight(b)


def quotient(a: Number, b: Number) -> Number:
    """Return a / b.

    >>> quotient(Fraction(-1), ZERO), quotient(Fraction(1), -math.inf)
    (-inf, -0.0)
    """
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a / b
    if b == 0:
        sign = math.copysign(1, _weight(a)) * math.copysign(1, b)
        return math.nan if a == 0 or math.isnan(a) else sign * math.inf
    return _weight(a) / _weight(b)


def _weight(a: Number) -> float:
    """Return a float that is a, or 1 with its sign, which does the same to special numbers."""
    return a if isinstance(a, float) else math.copysign(1.0, a)


def smallest(*numbers: Number) -> Number:
    """Return the smallest number, or NaN if one is NaN.

    >>> smallest(Fraction(2), Fraction(1), ZERO), smallest(Fraction(1), math.nan)
    (0.0, nan)
    """
    return math.nan if any(map(math.isnan, numbers)) else min(numbers)


def largest(*numbers: Number) -> Number:
    """Return the largest number, or NaN if one is NaN."""
    return math.nan if any(map(math.isnan, numbers)) else max(numbers)


def power(a: Number, n: Number) -> Number:
    """Return a to the power of an integer."""
    return number(Fraction(a) ** int(n))


def floor(a: "Number | Logarithm") -> Number:
    """Return the largest integer that is not above a."""
    return a.exponent() if isinstance(a, Logarithm) else _integer(math.floor, a)


def ceil(a: "Number | Logarithm") -> Number:
    """Return the smallest integer that is not below a."""
    if isinstance(a, Logarithm):
        return total(a.exponent(), ZERO if a.is_integer() else Fraction(1))
    return _integer(math.ceil, a)


def remainder(a: Number, b: Number) -> Number:
    """Return what is left of a after the largest multiple of b that is not above a."""
    return number(Fraction(a) % Fraction(b))


def quotient_rounded_down(a: Number, b: Number) -> Number:
    """Return the quotient of a and b, rounded down."""
    return number(Fraction(a) // Fraction(b))


def exclusive_or(a: Number, b: Number) -> Number:
    """Return the exclusive or of the bits of two integers."""
    return number(int(a) ^ int(b))


def rint(a: Number) -> Number:
    """Return the nearest integer, the even one in a tie; a zero keeps the sign of a."""
    return _signed(_integer(round, a), a)


def trunc(a: Number) -> Number:
    """Return the integer part of a."""
    return _integer(math.trunc, a)


def _integer(rounded: Callable[[Fraction], int], a: Number) -> Number:
    return number(rounded(a)) if isinstance(a, Fraction) else a


def _signed(a: Number, like: Number) -> Number:
    return math.copysign(ZERO, like) if a == 0 else a


class Logarithm:
    """The logarithm to the base 2 of a positive number; its floor and its ceiling are known."""

    def __init__(self, a: Number) -> None:
        self._a = Fraction(a)  # refuses infinities and NaN

    def exponent(self) -> Number:
        """Return the integer e with 2^e <= a < 2^(e + 1).

        >>> [Logarithm(Fraction(n, 4)).exponent() for n in (1, 3, 8, 9)]
        [Fraction(-2, 1), Fraction(-1, 1), Fraction(1, 1), Fraction(1, 1)]
        """
        above, below = self._a.numerator, self._a.denominator
        e = above.bit_length() - below.bit_length()
        return number(e if Fraction(2) ** e <= self._a else e - 1)

    def is_integer(self) -> bool:
        """Return whether the number is a power of two."""
        return Fraction(2) ** int(self.exponent()) == self._a
