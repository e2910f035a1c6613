"""Decisions and outputs of policies that differ."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import as_format
from mor_ref.definitions.policies import FitsRange, MeanRelativeError, Metric, NotWorseThan
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DECISIONS, POLICIES
from mor_ref.deviations.exemptions import CLEAR_CHOICES, CLEAR_MEANS, for_generated
from mor_ref.exact.arithmetic import quotient, rn32
from mor_ref.exact.errors import ErrorSum
from mor_ref.exact.policies import accepts, amin, kept, loses_nothing
from mor_ref.exact.quantization import to_bf16

Reference = Callable[..., Any]
_RANGES = ("decisions", "policies")  # in policies_large, an earlier rung accepts


def _by_the_mean(metric: Metric, *_: Any) -> bool:
    return isinstance(metric, MeanRelativeError)


def _by_a_yardstick(metric: Metric, *_: Any) -> bool:
    return isinstance(metric, NotWorseThan)


def _by_the_range(metric: Metric, *_: Any) -> bool:
    return isinstance(metric, FitsRange)


@deviation(
    accepts, where=_by_the_mean, rules=("MOR-002",), domain=DECISIONS, exemptions=CLEAR_MEANS
)
def accepts_at_the_threshold(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """A mean that equals the threshold is accepted: <= for <."""
    return own.sum <= metric.limit * own.nonzero


@deviation(
    accepts, where=_by_the_mean, rules=("MOR-002",), domain=DECISIONS, exemptions=CLEAR_MEANS
)
def mean_in_floating_point(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """The mean is divided in binary32 and compared with the threshold as a binary32 number."""
    return own.nonzero == 0 or _mean(own) < quotient(float(metric.limit), float(1 << 23))


@deviation(
    accepts, where=_by_the_mean, rules=("MOR-002",), domain=DECISIONS, exemptions=CLEAR_MEANS
)
def threshold_in_binary32(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """The mean is divided in binary32 and compared with the threshold rounded to it: 0.045f."""
    return own.nonzero == 0 or _mean(own) < rn32(_written(metric.limit))


def _written(limit: int) -> Fraction:
    """Return the shortest decimal that has this limit."""
    threshold = Fraction(limit, 1 << 23)
    decimals = (round(threshold, digits) for digits in itertools.count(1))
    return next(number for number in decimals if round(number * (1 << 23)) == limit)


def _mean(own: ErrorSum) -> float:
    return quotient(rn32(Fraction(own.sum)), rn32(Fraction(own.nonzero << 23)))


@deviation(accepts, where=_by_the_mean, rules=("MOR-002", "ERR-005"), domain=DECISIONS)
def products_in_32_bits(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """T * nonzero has 32 bits, and wraps."""
    return own.nonzero == 0 or own.sum < (metric.limit * own.nonzero & 0xFFFFFFFF)


@deviation(
    accepts,
    where=_by_the_mean,
    rules=("MOR-002",),
    domain=DECISIONS,
    exemptions=for_generated(DECISIONS),
)
def nothing_accepts_a_unit_of_zeros(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """A unit with no element that counts is not accepted: 0 < 0 is false."""
    return own.sum < metric.limit * own.nonzero


@deviation(
    accepts, where=_by_a_yardstick, rules=("MOR-003",), domain=DECISIONS, exemptions=CLEAR_CHOICES
)
def strict_not_worse_than(
    _: Reference, metric: NotWorseThan, own: ErrorSum, errors: dict[str, ErrorSum], *_rest: Any
) -> bool:
    """A tie does not accept: < for <=."""
    return own.sum < errors[metric.yardstick.name].sum


@deviation(accepts, where=_by_the_range, rules=("MOR-004",), domain=_RANGES)
def range_with_subnormals(
    _: Reference, metric: FitsRange, own: ErrorSum, _errors: Any, amax: float, amin: float
) -> bool:
    """The range of fits_range reaches down to the subnormal numbers."""
    fmt = as_format(metric.fmt)
    ratio = Fraction(fmt.largest) / Fraction(fmt.value(1))
    return own.nonzero == 0 or Fraction(amax) <= Fraction(amin) * ratio


@deviation(accepts, where=_by_the_range, rules=("MOR-004",), domain=_RANGES)
def range_by_rounded_quotient(
    _: Reference, metric: FitsRange, own: ErrorSum, _errors: Any, amax: float, amin: float
) -> bool:
    """Amax / amin is rounded to binary32 before it is compared."""
    fmt = as_format(metric.fmt)
    ratio = rn32(Fraction(fmt.largest) / Fraction(fmt.smallest_normal or 1))
    return own.nonzero == 0 or quotient(amax, amin) <= ratio


@deviation(amin, rules=("MOR-004",), domain=POLICIES)
def amin_of_zeros(_: Reference, numbers: list[float]) -> float:
    """Amin counts zeros."""
    return min((abs(x) for x in numbers if math.isfinite(x)), default=0.0)


@deviation(loses_nothing, rules=("MOR-001",), domain=DECISIONS, exemptions=for_generated(DECISIONS))
def lost_elements_are_accepted(_: Reference, own: ErrorSum) -> bool:
    """A unit with elements that are lost can be accepted."""
    del own
    return True


@deviation(kept, rules=("MOR-006",), domain=("policies",))
def fallback_rounded_again(_: Reference, x: float, own: int | None) -> int:
    """A bfloat16 input that falls back is encoded again: payloads of NaN are lost."""
    del own
    return to_bf16(x)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
