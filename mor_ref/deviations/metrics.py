"""Sums of units that differ, and metrics that compare them otherwise."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from mor_ref.definitions.unit_sums import WORDS, UnitSums
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import ACCEPTANCE, IN_UNIT_SUMS
from mor_ref.exact import arithmetic
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.errors import UNIT_OF_SQUARES, absolute_error
from mor_ref.exact.metrics import has_small_errors, is_along, is_loud, is_measured, is_near
from mor_ref.exact.unit_sums import product, unit_sums

Reference = Callable[..., Any]
Pairs = Iterable[tuple[float, float]]
Terms = Sequence[tuple[float, float]]  # pairs of factors

_WORD = 1 << 32
_BEYOND = 1 << 600  # for an infinite sum
_SMALLEST_NORMAL = 2.0**-126


# ---------------------------------------------------------------------- sums


def _with_sums(reference: Reference, pairs: Pairs, total: Callable[[Terms], int]) -> UnitSums:
    """Return the sums of a unit, whose squares and products are added by another function."""
    elements = list(pairs)
    errors = [d for x, y in elements if math.isfinite(d := absolute_error(x, y))]
    whole: UnitSums = reference(elements)
    return replace(
        whole,
        signal=total([(x, x) for x, _ in elements]),
        noise=total([(d, d) for d in errors]),
        energy=total([(y, y) for _, y in elements]),
        product=total(elements),
    )


def _rounded_total(add: Callable[[float, float, float], float], terms: Terms) -> int:
    """Return a sum from left to right; `add` adds a product of two numbers to it."""
    rounded = 0.0
    for a, b in terms:
        rounded = add(rounded, a, b)
    if math.isnan(rounded):
        return 0
    if math.isinf(rounded):
        return int(math.copysign(_BEYOND, rounded))
    return _in_units(Fraction(rounded))


def _in_units(number: Fraction) -> int:
    return int(number / UNIT_OF_SQUARES)


def _add_in_binary32(rounded: float, a: float, b: float) -> float:
    return arithmetic.total(rounded, arithmetic.product(a, b))


def _add_in_binary64(rounded: float, a: float, b: float) -> float:
    return rounded + a * b


@deviation(unit_sums, rules=("MOR-009",), domain=IN_UNIT_SUMS)
def unit_sums_in_binary32(reference: Reference, pairs: Pairs) -> UnitSums:
    """Squares and products are rounded to binary32, and added in it, from left to right."""
    return _with_sums(reference, pairs, partial(_rounded_total, _add_in_binary32))


@deviation(unit_sums, rules=("MOR-009",), domain=IN_UNIT_SUMS)
def unit_sums_in_binary64(reference: Reference, pairs: Pairs) -> UnitSums:
    """Squares and products, which binary64 holds, are added in it, from left to right."""
    return _with_sums(reference, pairs, partial(_rounded_total, _add_in_binary64))


@deviation(unit_sums, rules=("MOR-009",), domain=IN_UNIT_SUMS)
def unit_sums_lose_carries(reference: Reference, pairs: Pairs) -> UnitSums:
    """The words of a sum have 32 bits, and wrap: nothing is carried to the next word."""
    return _with_sums(reference, pairs, _total_without_carries)


def _total_without_carries(terms: Terms) -> int:
    words = [0] * WORDS
    for a, b in terms:
        term = product(a, b)
        for k in range(WORDS):
            word = abs(term) >> 32 * k & _WORD - 1
            words[k] = (words[k] + (word if term > 0 else -word)) % _WORD
    total = sum(word << 32 * k for k, word in enumerate(words))
    return total - (1 << 32 * WORDS) if words[-1] >> 31 else total


@deviation(unit_sums, rules=("MOR-009", "ERR-006"), domain=IN_UNIT_SUMS)
def noise_of_unrounded_distances(reference: Reference, pairs: Pairs) -> UnitSums:
    """The noise is the sum of (x - y)^2: the distance is not rounded to binary32."""
    elements = list(pairs)
    whole: UnitSums = reference(elements)
    exact = (Fraction(x) - Fraction(y) for x, y in elements if _is_measured(x, y))
    return replace(whole, noise=sum(_in_units(distance**2) for distance in exact))


def _is_measured(x: float, y: float) -> bool:
    return math.isfinite(absolute_error(x, y))


@deviation(unit_sums, rules=("MOR-009",), domain=IN_UNIT_SUMS)
def subnormal_numbers_are_not_summed(reference: Reference, pairs: Pairs) -> UnitSums:
    """Subnormal x and y count as 0 in all sums."""
    flushed = [tuple(v if abs(v) >= _SMALLEST_NORMAL else 0.0 for v in pair) for pair in pairs]
    found: UnitSums = reference(flushed)
    return found


@deviation(unit_sums, rules=("MOR-009",), domain=IN_UNIT_SUMS)
def products_without_signs(reference: Reference, pairs: Pairs) -> UnitSums:
    """The product is the sum of |x * y|."""
    elements = list(pairs)
    whole: UnitSums = reference(elements)
    return replace(whole, product=sum(abs(product(x, y)) for x, y in elements))


@deviation(unit_sums, rules=("MOR-009",), domain=IN_UNIT_SUMS)
def last_numbers_are_not_summed(reference: Reference, pairs: Pairs) -> UnitSums:
    """The numbers of a unit behind its last four are left out."""
    elements = list(pairs)
    found: UnitSums = reference(elements[: len(elements) // 4 * 4])
    return found


# ---------------------------------------------------------------------- decisions


@deviation(is_measured, rules=("MOR-009",), domain=ACCEPTANCE)
def infinite_errors_are_left_out(_: Reference, sums: UnitSums) -> bool:
    """A unit with an infinite d may be accepted: its other elements decide."""
    del sums
    return True


@deviation(is_near, rules=("MOR-010",), domain=ACCEPTANCE)
def frobenius_at_the_threshold(_: Reference, sums: UnitSums, limit: Fraction) -> bool:
    """An error that equals the threshold is accepted: <= for <."""
    return is_measured(sums) and sums.noise <= limit * sums.signal


@deviation(is_near, rules=("MOR-010",), domain=ACCEPTANCE)
def frobenius_by_a_root(_: Reference, sums: UnitSums, limit: Fraction) -> bool:
    """The root of noise / signal is taken in binary64, and compared with the threshold in it."""
    return is_measured(sums) and sums.relative_frobenius < math.sqrt(limit)


@deviation(is_loud, rules=("MOR-011",), domain=ACCEPTANCE)
def sqnr_above_the_threshold(_: Reference, sums: UnitSums, ratio: int) -> bool:
    """An SQNR that equals the threshold is refused: < for <=."""
    return is_measured(sums) and (sums.noise == 0 or ratio * sums.noise < sums.signal << 23)


@deviation(is_loud, rules=("MOR-011",), domain=ACCEPTANCE)
def sqnr_by_a_logarithm(_: Reference, sums: UnitSums, ratio: int) -> bool:
    """The SQNR is computed in binary64, in decibels, and compared with the threshold."""
    return is_measured(sums) and sums.sqnr >= round(10 * math.log10(ratio / (1 << 23)), 5)


@deviation(is_along, rules=("MOR-012",), domain=ACCEPTANCE)
def cosine_above_the_threshold(_: Reference, sums: UnitSums, limit: Fraction) -> bool:
    """A cosine that equals the threshold is refused: > for >=."""
    if sums.signal == 0:
        return sums.energy == 0
    return sums.product > 0 and sums.product**2 > limit**2 * sums.signal * sums.energy


@deviation(is_along, rules=("MOR-012",), domain=ACCEPTANCE)
def cosine_by_a_root(_: Reference, sums: UnitSums, limit: Fraction) -> bool:
    """The cosine is the product over the root of signal * energy, in binary64."""
    return sums.cosine >= float(limit)


@deviation(is_along, rules=("MOR-012",), domain=ACCEPTANCE)
def cosine_of_either_sign(_: Reference, sums: UnitSums, limit: Fraction) -> bool:
    """The squares alone are compared: an opposite y is accepted."""
    if sums.signal == 0:
        return sums.energy == 0
    return sums.product**2 >= limit**2 * sums.signal * sums.energy


@deviation(has_small_errors, rules=("MOR-013",), domain=ACCEPTANCE)
def largest_at_the_threshold(_: Reference, rows: Iterable[UnitSums], limit: Fraction) -> bool:
    """A largest d that equals its part of amax is accepted: <= for <."""
    return all(
        is_measured(row) and Fraction(row.largest) <= limit * Fraction(row.amax) for row in rows
    )


@deviation(has_small_errors, rules=("MOR-013",), domain=ACCEPTANCE)
def largest_by_unit(reference: Reference, rows: Iterable[UnitSums], limit: Fraction) -> bool:
    """The largest d of all rows is compared with the largest amax of them."""
    found = list(rows)
    largest, amax = (max(getattr(row, name) for row in found) for name in ("largest", "amax"))
    accepted: bool = reference([replace(found[0], largest=largest, amax=amax)], limit)
    return accepted and all(map(is_measured, found))


@deviation(has_small_errors, rules=("MOR-013",), domain=ACCEPTANCE)
def largest_without_the_last_row(
    reference: Reference, rows: Sequence[UnitSums], limit: Fraction
) -> bool:
    """The last row of a unit is left out."""
    accepted: bool = reference(list(rows)[:-1], limit)
    return accepted


@deviation(has_small_errors, rules=("MOR-013",), domain=ACCEPTANCE)
def part_of_amax_in_binary32(_: Reference, rows: Iterable[UnitSums], limit: Fraction) -> bool:
    """The threshold and its product with amax are rounded to binary32."""
    return all(
        is_measured(row)
        and (row.largest == 0 or row.largest < rn32(Fraction(rn32(limit)) * Fraction(row.amax)))
        for row in rows
    )


def _unless_zero(reference: Reference, sums: UnitSums, limit: Any) -> bool:
    accepted: bool = sums.signal != 0 and reference(sums, limit)
    return accepted


units_of_zeros_are_refused = Deviation(
    "units_of_zeros_are_refused",
    "A unit of zeros that stays zero is refused: 0 / 0 is a NaN.",
    ("MOR-010", "MOR-011", "MOR-012"),
    ACCEPTANCE,
    tuple(Change(step, _unless_zero) for step in (is_near, is_loud, is_along)),
)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
