"""The products and terms of a dot product: their numbers, exponents and special values."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.exact.encoding import floor_log2, goes_up, in_units_of
from mor_ref.exact.step import step


class Factor(NamedTuple):
    """An element or a scale, and its exponent (DOT-004)."""

    value: float
    exponent: int


ONE = Factor(1.0, 0)
ZERO = Factor(0.0, 0)


class Product(NamedTuple):
    """Two elements, and the scales of their blocks."""

    a: Factor
    b: Factor
    scale_a: Factor = ONE
    scale_b: Factor = ONE

    @property
    def element_product(self) -> float | Fraction:
        """The product of the elements: exact, if it is finite."""
        return exact_product(self.a.value, self.b.value)

    @property
    def scale_product(self) -> float | Fraction:
        """The product of the scales: exact, if it is finite."""
        return exact_product(self.scale_a.value, self.scale_b.value)


class Term(NamedTuple):
    """A summand: its exact value, or an infinity or NaN, and its exponent (DOT-007)."""

    value: float | Fraction
    exponent: int


@dataclass(frozen=True)
class Chunk:
    """The largest exponent and the cut sum of a chunk, and c after it (DOT-003).

    A family that cuts nothing has no exponent. The sum of integers is its cut sum (DOT-019).
    """

    exponent: int | None
    cut_sum: int | None
    c: float


@step
def number(code: int, fmt: Format, profile: DotProfile) -> Factor:
    """Return the number of a code, and its exponent (DOT-004, DOT-005)."""
    read = code >> profile.ignored_bits << profile.ignored_bits
    return factor(fmt.value(read), fmt)


@step
def scale(code: int, fmt: Format) -> Factor:
    """Return the number of a scale, and its exponent (DOT-006)."""
    is_signed = fmt.name == "e4m3" and code & fmt.sign_bit
    return factor(fmt.value(code ^ fmt.sign_bit if is_signed else code), fmt)


@step
def factor(value: float, fmt: Format) -> Factor:
    """Return a number with its exponent, at least that of the smallest normal (DOT-004)."""
    lowest = fmt.smallest_exponent
    is_number = math.isfinite(value) and value != 0
    return Factor(value, max(floor_log2(abs(value)), lowest) if is_number else lowest)


@functools.lru_cache(maxsize=1 << 14)  # codes of small formats have few products
def exact_product(*factors: float | Fraction) -> float | Fraction:
    """Return a product: exact if the factors are finite, else an infinity or NaN (DOT-008)."""
    if all(map(math.isfinite, factors)):
        numerator = denominator = 1
        for x in factors:
            above, below = x.as_integer_ratio()
            numerator *= above
            denominator *= below
        return Fraction(numerator, denominator)
    return math.prod(math.copysign(1.0, x) if math.isfinite(x) and x else float(x) for x in factors)


@step
def special_sum(values: Sequence[float | Fraction]) -> float | None:
    """Return the sum if one of the values is infinite or NaN, or else None (DOT-008)."""
    special = [x for x in values if isinstance(x, float) and not math.isfinite(x)]
    if not special:
        return None
    return math.nan if math.isnan(sum(special)) else special[0]


@step
def fraction_bits(profile: DotProfile) -> int:
    """Return F, the number of bits below the largest exponent that are not cut (DOT-007)."""
    return profile.fraction_bits


@step
def cut(value: float | Fraction, unit: int) -> int:
    """Return a number in units of 2^unit, cut toward zero (DOT-007)."""
    numerator, denominator = value.as_integer_ratio()
    units = (abs(numerator) << max(-unit, 0)) // (denominator << max(unit, 0))
    return units if numerator > 0 else -units


@step
def rounded(value: Fraction, bits: int, fmt: Format, rounding: str) -> float:
    """Return a number with `bits` behind its leading one, or fewer if subnormal (DOT-010)."""
    if value == 0:
        return 0.0
    unit = max(floor_log2(abs(value)), fmt.smallest_exponent) - bits
    below, rest, whole = in_units_of(unit, abs(value))
    up = rounding == "rne" and goes_up("rne", rest, whole, odd=below % 2 == 1, negative=False)
    magnitude = math.ldexp(below + up, unit)
    return math.copysign(magnitude if magnitude <= fmt.largest else math.inf, value)
