"""Errors, sums and decisions that differ."""

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.policies import FitsRange, MeanRelativeError, Metric, NotWorseThan, name_of
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DECISIONS, ERRORS, IN_SCALES, POLICIES, SCALED
from mor_ref.deviations.exemptions import CLEAR_CHOICES, CLEAR_MEANS, SMALL_SUMS, for_generated
from mor_ref.exact.arithmetic import product, quotient, rn32, total
from mor_ref.exact.errors import ErrorSum, ErrorTerm, error_sum, error_term, error_units
from mor_ref.exact.policies import accepts, amin, kept, loses_nothing
from mor_ref.exact.quantization import restored, to_bf16

Reference = Callable[..., Any]
Pairs = Iterable[tuple[float, float]]
_RANGES = ("decisions", "policies")  # in policies_large, an earlier rung accepts


def _term(d: float, r: float) -> ErrorTerm:
    """An error of which r is known."""
    return ErrorTerm(d, r, error_units(r))


class _Unrounded(float):
    """A dequantized number that remembers what it was before it was rounded."""

    exact: Fraction

    def __eq__(self, other: object) -> bool:
        return float(self) == other and self.exact == getattr(other, "exact", self.exact)

    def __hash__(self) -> int:
        return super().__hash__()


def _fused_value(_: Reference, value: float, scale: float) -> float:
    inverse = quotient(1.0, scale)
    found = _Unrounded(product(value, inverse))
    is_finite = math.isfinite(value) and math.isfinite(inverse)
    found.exact = Fraction(value) * Fraction(inverse) if is_finite else Fraction(0)
    return found


def _is_unrounded(_x: float, y: float) -> bool:
    return isinstance(y, _Unrounded) and math.isfinite(y)


def _fused_error(_: Reference, x: float, y: _Unrounded) -> ErrorTerm:
    d = abs(rn32(Fraction(x) - y.exact))
    return _term(d, min(quotient(d, abs(x)), 1.0))


error_by_fused_multiply_add = Deviation(
    "error_by_fused_multiply_add",
    "d is |x - v * RN(1 / scale)| in one operation: the product is not rounded.",
    ("ERR-001", "QNT-002"),
    SCALED,
    (Change(restored, _fused_value), Change(error_term, _fused_error, _is_unrounded)),
)


@deviation(error_term, rules=("ERR-001",), domain=ERRORS)
def error_by_reciprocal(reference: Reference, x: float, y: float) -> ErrorTerm:
    """R is d * RN(1 / |x|): two roundings."""
    found: ErrorTerm = reference(x, y)
    if not math.isfinite(found.d):
        return found
    return _term(found.d, min(1.0, product(found.d, quotient(1.0, abs(x)))))


@deviation(error_term, rules=("ERR-001",), domain=ERRORS)
def error_relative_to_y(reference: Reference, x: float, y: float) -> ErrorTerm:
    """The distance is divided by |y|, not by |x|."""
    found: ErrorTerm = reference(x, y)
    if not math.isfinite(found.d) or found.d == 0:
        return found
    return _term(found.d, min(quotient(found.d, abs(y)), 1.0))


@deviation(error_term, rules=("ERR-001",), domain=ERRORS)
def error_after_bf16(reference: Reference, x: float, y: float) -> ErrorTerm:
    """Y is rounded to bfloat16 before the error is taken."""
    found: ErrorTerm = reference(x, formats["bf16"].value(to_bf16(y)))
    return found


@deviation(error_term, rules=("ERR-001",), domain=ERRORS, unseen=for_generated(ERRORS))
def error_without_a_cap(reference: Reference, x: float, y: float) -> ErrorTerm:
    """R may exceed 1."""
    found: ErrorTerm = reference(x, y)
    if math.isnan(found.d):
        return found
    r = quotient(found.d, abs(x))
    return ErrorTerm(found.d, r, error_units(min(r, 2.0**127)))


@deviation(error_units, rules=("ERR-001",), domain=ERRORS)
def error_truncated(_: Reference, r: float) -> int:
    """U is r * 2^23 cut to an integer of 32 bits instead of rounded."""
    return min(int(r * 2**23), 0xFFFFFFFF)


@deviation(error_term, rules=("ERR-001",), domain=ERRORS)
def error_absolute(reference: Reference, x: float, y: float) -> ErrorTerm:
    """R is the distance itself, not divided by |x|."""
    found: ErrorTerm = reference(x, y)
    return _term(found.d, min(found.d, 1.0))


@deviation(error_sum, rules=("ERR-002", "ERR-004"), domain=IN_SCALES)
def sum_in_floating_point(reference: Reference, pairs: Pairs) -> ErrorSum:
    """The sum is kept in binary32, from left to right."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    accumulated = 0.0
    for pair in found:
        accumulated = total(accumulated, float(reference([pair]).sum))
    return ErrorSum(int(accumulated), whole.nonzero, whole.nonfinite)


@deviation(error_sum, rules=("ERR-004", "ERR-005"), domain=IN_SCALES, unseen=SMALL_SUMS)
def sum_in_32_bits(reference: Reference, pairs: Pairs) -> ErrorSum:
    """The sum is kept in 32 bits, and wraps."""
    found: ErrorSum = reference(pairs)
    return ErrorSum(found.sum & 0xFFFFFFFF, found.nonzero, found.nonfinite)


@deviation(error_sum, rules=("ERR-002",), domain=IN_SCALES)
def zeros_count_in_the_mean(reference: Reference, pairs: Pairs) -> ErrorSum:
    """The mean is over all elements, those that are zero as well."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    return ErrorSum(whole.sum, len(found), whole.nonfinite)


@deviation(error_sum, rules=("ERR-003",), domain=IN_SCALES, unseen=for_generated(IN_SCALES))
def only_nan_is_lost(reference: Reference, pairs: Pairs) -> ErrorSum:
    """Infinite elements do not count as lost, only NaN."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    return ErrorSum(whole.sum, whole.nonzero, sum(math.isnan(x) for x, _ in found))


@deviation(error_sum, rules=("ERR-003",), domain=IN_SCALES, unseen=for_generated(IN_SCALES))
def only_inputs_are_lost(reference: Reference, pairs: Pairs) -> ErrorSum:
    """A finite x whose y becomes infinite in bfloat16 is not noticed."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    return ErrorSum(whole.sum, whole.nonzero, sum(not math.isfinite(x) for x, _ in found))


def _by_the_mean(metric: Metric, *_: Any) -> bool:
    return isinstance(metric, MeanRelativeError)


def _by_a_yardstick(metric: Metric, *_: Any) -> bool:
    return isinstance(metric, NotWorseThan)


def _by_the_range(metric: Metric, *_: Any) -> bool:
    return isinstance(metric, FitsRange)


@deviation(accepts, where=_by_the_mean, rules=("MOR-002",), domain=DECISIONS, unseen=CLEAR_MEANS)
def accepts_at_the_threshold(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """A mean that equals the threshold is accepted: <= for <."""
    return own.sum <= metric.limit * own.nonzero


@deviation(accepts, where=_by_the_mean, rules=("MOR-002",), domain=DECISIONS, unseen=CLEAR_MEANS)
def mean_in_floating_point(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """The mean is divided in binary32 and compared with the threshold as a binary32 number."""
    return own.nonzero == 0 or _mean(own) < quotient(float(metric.limit), float(1 << 23))


@deviation(accepts, where=_by_the_mean, rules=("MOR-002",), domain=DECISIONS, unseen=CLEAR_MEANS)
def threshold_in_binary32(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """The mean is divided in binary32 and compared with what was written as one: 0.045f."""
    return own.nonzero == 0 or _mean(own) < rn32(_written(metric.limit))


def _written(limit: int) -> Fraction:
    """The shortest decimal that has this limit."""
    threshold = Fraction(limit, 1 << 23)
    decimals = (round(threshold, digits) for digits in itertools.count(1))
    return next(number for number in decimals if round(number * (1 << 23)) == limit)


def _mean(own: ErrorSum) -> float:
    return quotient(rn32(Fraction(own.sum)), rn32(Fraction(own.nonzero << 23)))


@deviation(accepts, where=_by_the_mean, rules=("MOR-002", "ERR-005"), domain=DECISIONS)
def products_in_32_bits(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """T * nonzero is kept in 32 bits, and wraps."""
    return own.nonzero == 0 or own.sum < (metric.limit * own.nonzero & 0xFFFFFFFF)


@deviation(
    accepts,
    where=_by_the_mean,
    rules=("MOR-002",),
    domain=DECISIONS,
    unseen=for_generated(DECISIONS),
)
def nothing_accepts_a_unit_of_zeros(
    _: Reference, metric: MeanRelativeError, own: ErrorSum, *_rest: Any
) -> bool:
    """A unit of which no element counts is not accepted: 0 < 0 is false."""
    return own.sum < metric.limit * own.nonzero


@deviation(
    accepts, where=_by_a_yardstick, rules=("MOR-003",), domain=DECISIONS, unseen=CLEAR_CHOICES
)
def strict_not_worse_than(
    _: Reference, metric: NotWorseThan, own: ErrorSum, errors: dict[str, ErrorSum], *_rest: Any
) -> bool:
    """A tie does not accept: < for <=."""
    return own.sum < errors[name_of(metric.yardstick)].sum


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


@deviation(loses_nothing, rules=("MOR-001",), domain=DECISIONS, unseen=for_generated(DECISIONS))
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
