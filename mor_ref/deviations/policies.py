"""Decisions and outputs of policies that differ."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DECISIONS, POLICY_SUITES, THAT_LOSE_NOTHING
from mor_ref.exact.arithmetic import quotient, rn32
from mor_ref.exact.errors import ErrorSum
from mor_ref.exact.metrics import fits_range, is_not_worse, mean_is_below
from mor_ref.exact.policies import amin, kept, loses_nothing
from mor_ref.exact.quantization import to_bf16

Reference = Callable[..., Any]


@deviation(mean_is_below, rules=("MOR-002",), domain=DECISIONS)
def accepts_at_the_threshold(_: Reference, own: ErrorSum, limit: int) -> bool:
    """A mean that equals the threshold is accepted: <= for <."""
    return own.sum <= limit * own.nonzero


@deviation(mean_is_below, rules=("MOR-002",), domain=DECISIONS)
def mean_in_floating_point(_: Reference, own: ErrorSum, limit: int) -> bool:
    """The mean is divided in binary32 and compared with the threshold as a binary32 number."""
    return own.nonzero == 0 or _mean(own) < quotient(float(limit), float(1 << 23))


@deviation(mean_is_below, rules=("MOR-002",), domain=DECISIONS)
def threshold_in_binary32(_: Reference, own: ErrorSum, limit: int) -> bool:
    """The mean is divided in binary32 and compared with the threshold rounded to it: 0.045f."""
    return own.nonzero == 0 or _mean(own) < rn32(_written(limit))


def _written(limit: int) -> Fraction:
    """Return the shortest decimal that has this limit."""
    threshold = Fraction(limit, 1 << 23)
    decimals = (round(threshold, digits) for digits in itertools.count(1))
    return next(number for number in decimals if round(number * (1 << 23)) == limit)


def _mean(own: ErrorSum) -> float:
    return quotient(rn32(Fraction(own.sum)), rn32(Fraction(own.nonzero << 23)))


@deviation(mean_is_below, rules=("MOR-002", "ERR-005"), domain=DECISIONS)
def products_in_32_bits(_: Reference, own: ErrorSum, limit: int) -> bool:
    """T * nonzero has 32 bits, and wraps."""
    return own.nonzero == 0 or own.sum < (limit * own.nonzero & 0xFFFFFFFF)


@deviation(
    mean_is_below,
    rules=("MOR-002",),
    domain=DECISIONS,
)
def nothing_accepts_a_unit_of_zeros(_: Reference, own: ErrorSum, limit: int) -> bool:
    """A unit with no element that counts is not accepted: 0 < 0 is false."""
    return own.sum < limit * own.nonzero


@deviation(is_not_worse, rules=("MOR-003",), domain=DECISIONS)
def strict_not_worse_than(_: Reference, own: ErrorSum, yardstick: ErrorSum) -> bool:
    """A tie does not accept: < for <=."""
    return own.sum < yardstick.sum


@deviation(fits_range, rules=("MOR-004",), domain=DECISIONS)
def range_with_subnormals(
    _: Reference, own: ErrorSum, amax: float, amin: float, fmt: Format
) -> bool:
    """The range of fits_range reaches down to the subnormal numbers."""
    ratio = Fraction(fmt.largest) / Fraction(fmt.value(1))
    return own.nonzero == 0 or Fraction(amax) <= Fraction(amin) * ratio


@deviation(fits_range, rules=("MOR-004",), domain=DECISIONS)
def range_by_rounded_quotient(
    _: Reference, own: ErrorSum, amax: float, amin: float, fmt: Format
) -> bool:
    """Amax / amin is rounded to binary32 before it is compared."""
    ratio = rn32(Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1))
    return own.nonzero == 0 or quotient(amax, amin) <= ratio


@deviation(amin, rules=("MOR-004",), domain=POLICY_SUITES)
def amin_of_zeros(_: Reference, numbers: list[float]) -> float:
    """Amin counts zeros."""
    return min((abs(x) for x in numbers if math.isfinite(x)), default=0.0)


@deviation(loses_nothing, rules=("MOR-001",), domain=THAT_LOSE_NOTHING)
def lost_elements_are_accepted(_: Reference, own: ErrorSum) -> bool:
    """A unit with elements that are lost can be accepted."""
    del own
    return True


@deviation(kept, rules=("MOR-006",), domain=POLICY_SUITES)
def fallback_rounded_again(_: Reference, x: float, own: int | None) -> int:
    """A bfloat16 input that falls back is encoded again: payloads of NaN are lost."""
    del own
    return to_bf16(x)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
