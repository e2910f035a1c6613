"""Errors and sums that differ."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import ERRORS, IN_SUMS, SCALED
from mor_ref.deviations.exemptions import (
    BETWEEN_ZERO_AND_TWICE_X,
    SMALL_SUMS,
)
from mor_ref.exact.arithmetic import product, quotient, rn32, total
from mor_ref.exact.errors import ErrorSum, ErrorTerm, error_sum, error_term, error_units
from mor_ref.exact.quantization import restored, to_bf16

Reference = Callable[..., Any]
Pairs = Iterable[tuple[float, float]]


def _term(d: float, r: float) -> ErrorTerm:
    """Return an error with this r."""
    return ErrorTerm(d, r, error_units(r))


class _Unrounded(float):
    """A dequantized number with its exact value before it was rounded."""

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


@deviation(error_term, rules=("ERR-001",), domain=ERRORS, exemptions=BETWEEN_ZERO_AND_TWICE_X)
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


@deviation(error_sum, rules=("ERR-002", "ERR-004"), domain=IN_SUMS)
def sum_in_floating_point(reference: Reference, pairs: Pairs) -> ErrorSum:
    """The sum is added in binary32, from left to right."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    accumulated = 0.0
    for pair in found:
        accumulated = total(accumulated, float(reference([pair]).sum))
    return ErrorSum(int(accumulated), whole.nonzero, whole.nonfinite)


@deviation(error_sum, rules=("ERR-004", "ERR-005"), domain=IN_SUMS, exemptions=SMALL_SUMS)
def sum_in_32_bits(reference: Reference, pairs: Pairs) -> ErrorSum:
    """The sum has 32 bits, and wraps."""
    found: ErrorSum = reference(pairs)
    return ErrorSum(found.sum & 0xFFFFFFFF, found.nonzero, found.nonfinite)


@deviation(error_sum, rules=("ERR-002",), domain=IN_SUMS)
def zeros_count_in_the_mean(reference: Reference, pairs: Pairs) -> ErrorSum:
    """The mean is over all elements, including zeros."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    return ErrorSum(whole.sum, len(found), whole.nonfinite)


@deviation(error_sum, rules=("ERR-003",), domain=IN_SUMS)
def only_nan_is_lost(reference: Reference, pairs: Pairs) -> ErrorSum:
    """Infinite elements do not count as lost, only NaN."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    return ErrorSum(whole.sum, whole.nonzero, sum(math.isnan(x) for x, _ in found))


@deviation(error_sum, rules=("ERR-003",), domain=IN_SUMS)
def only_inputs_are_lost(reference: Reference, pairs: Pairs) -> ErrorSum:
    """A finite x whose y becomes infinite in bfloat16 is not noticed."""
    found = list(pairs)
    whole: ErrorSum = reference(found)
    return ErrorSum(whole.sum, whole.nonzero, sum(not math.isfinite(x) for x, _ in found))


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
