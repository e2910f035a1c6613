"""Operators on decisions: comparisons, their tests, what they are told, and sums of units.

Each is called with the right function and its operands, and returns what a wrong program uses.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.unit_sums import WORDS, UnitSums
from mor_ref.deviations.floating_point import flushed
from mor_ref.exact import arithmetic
from mor_ref.exact.arithmetic import bits_of, quotient, rn32
from mor_ref.exact.encoding import encode
from mor_ref.exact.errors import UNIT_OF_SQUARES, ErrorSum, absolute_error
from mor_ref.exact.metrics import is_measured
from mor_ref.exact.quantization import to_bf16
from mor_ref.exact.unit_sums import product
from mor_ref.mistakes.mistake import Operator

Right = Callable[..., Any]
Pairs = Iterable[tuple[float, float]]
Terms = Sequence[tuple[float, float]]  # pairs of factors

_ONE = 1 << 23  # of what a relative error is a multiple of
_WORD = 1 << 32
_BEYOND = 1 << 600  # for an infinite sum


# ---------------------------------------------------------------------- comparisons


def _in_binary32(x: Any) -> float:
    return rn32(Fraction(x)) if x else 0.0


def _in_binary64(x: Any) -> float:
    try:
        return float(x)
    except OverflowError:  # beyond its largest number
        return math.copysign(math.inf, x)


def _signed(x: int, bits: int) -> int:
    half = 1 << bits - 1
    return (x + half) % (1 << bits) - half


def _of(change: Callable[[Any], Any]) -> Right:
    return lambda right, a, b: right(change(a), change(b))


_EVERYWHERE = (
    Operator("in-binary32", "is of numbers that are rounded to binary32", _of(_in_binary32)),
    Operator("in-binary64", "is of numbers that are rounded to binary64", _of(_in_binary64)),
    Operator("never", "never holds", lambda *_: False),
    Operator("always", "always holds", lambda *_: True),
)
_STRICT = (
    Operator("with-equals", "has <= for <: equal numbers are accepted", lambda _, a, b: a <= b),
    *_EVERYWHERE,
)
_NOT_STRICT = {
    "at-most": (
        Operator(
            "without-equals", "has < for <=: equal numbers are refused", lambda _, a, b: a < b
        ),
        *_EVERYWHERE,
    ),
    "threshold": (
        Operator(
            "without-equals", "has > for >=: equal numbers are refused", lambda _, a, b: a > b
        ),
        *_EVERYWHERE,
    ),
}


def in_units(power: int) -> Operator:
    """Return the operator of binary32 on sums of squares, or products of them.

    They are integers in units of 2^-298, to a power.
    """
    unit = UNIT_OF_SQUARES**power
    (usual,) = (one for one in _EVERYWHERE if one.name == "in-binary32")
    return usual._replace(wrong=_of(lambda x: _in_binary32(x * unit)))


OF_INTEGERS = (  # at comparisons of two sums
    Operator("of-32-bits", "is of the lower 32 bits of the sums", _of(lambda x: x % _WORD)),
    Operator(
        "signed",
        "is of signed integers of 64 bits: 2^63 is negative",
        _of(lambda x: _signed(x, 64)),
    ),
    Operator(
        "of-difference-in-32-bits",
        "is of the sign of a difference of 32 bits",
        lambda right, a, b: right(_signed(a - b, 32), 0),
    ),
    Operator(
        "of-difference-in-64-bits",
        "is of the sign of a difference of 64 bits",
        lambda right, a, b: right(_signed(a - b, 64), 0),
    ),
)
_MULTIPLIED = (
    Operator("of-32-bits", "has 32 bits, and wraps", lambda right, a, b: right(a, b) % _WORD),
)
_TESTS = (Operator("left-out", "is left out", lambda *_: False),)
_GUARDS = (Operator("left-out", "is left out", lambda *_: True),)


# ---------------------------------------------------------------------- what all rungs ask


def _of_count(bits: int) -> Right:
    return lambda right, own: right(replace(own, nonfinite=own.nonfinite % (1 << bits)))


_LOSSLESS = (
    Operator(
        "losses-ignored", "a unit with elements that are lost can be accepted", lambda *_: True
    ),
    *(
        Operator(
            f"losses-of-{bits}-bits",
            f"lost elements are counted in {bits} bits: 2^{bits} of them are none",
            _of_count(bits),
        )
        for bits in (8, 16, 32)
    ),
    Operator(
        "zeros-first",
        "a unit without a number that counts is accepted, whatever it loses",
        lambda right, own: right(own) or own.nonzero == 0,
    ),
)


# ---------------------------------------------------------------------- means


def _mean(compute: Callable[[ErrorSum, int], bool]) -> Right:
    """Return a decision about a mean; a unit in which nothing counts is accepted."""
    return lambda _, own, limit: own.nonzero == 0 or compute(own, limit)


def _mean_in_binary32(own: ErrorSum) -> float:
    return quotient(_in_binary32(own.sum), _in_binary32(own.nonzero << 23))


def _written(limit: int) -> Fraction:
    """Return the shortest decimal that has this limit."""
    threshold = Fraction(limit, _ONE)
    decimals = (round(threshold, digits) for digits in itertools.count(1))
    return next(number for number in decimals if round(number * _ONE) == limit)


_MEANS = (
    Operator(
        "with-equals",
        "a mean that equals the threshold is accepted: sum <= T * nonzero",
        lambda _, own, t: own.sum <= t * own.nonzero,
    ),
    Operator(
        "count-of-32-bits",
        "nonzero is kept in 32 bits",
        lambda right, own, t: right(replace(own, nonzero=own.nonzero % _WORD), t),
    ),
    Operator(
        "mean-in-binary32",
        "the mean is divided in binary32, and compared with the threshold in it",
        _mean(lambda own, t: _mean_in_binary32(own) < quotient(float(t), float(_ONE))),
    ),
    Operator(
        "threshold-in-binary32",
        "the mean is divided in binary32 and compared with the threshold rounded to it: 0.045f",
        _mean(lambda own, t: _mean_in_binary32(own) < rn32(_written(t))),
    ),
    Operator(
        "mean-in-binary64",
        "the mean is a quotient in binary64",
        _mean(lambda own, t: own.sum / _ONE / own.nonzero < t / _ONE),
    ),
    Operator(
        "sum-in-binary32",
        "the sum is rounded to binary32",
        _mean(lambda own, t: _in_binary32(own.sum) < t * own.nonzero),
    ),
    Operator(
        "mean-rounded-down",
        "the mean is a quotient of integers, cut to one, and at most T",
        _mean(lambda own, t: own.sum // own.nonzero <= t),
    ),
    Operator(
        "mean-to-nearest",
        "the mean is a quotient of integers, rounded to nearest",
        _mean(lambda own, t: (own.sum + own.nonzero // 2) // own.nonzero < t),
    ),
)


# ---------------------------------------------------------------------- ranges

Range = Callable[[float, float, float, float], bool]  # of amax, amin, largest, smallest normal


def _range(compute: Range) -> Right:
    """Return a decision about a range; a unit in which nothing counts is accepted."""

    def wrong(_: Right, own: ErrorSum, amax: float, amin: float, fmt: Format) -> bool:
        if own.nonzero == 0:
            return True
        return compute(amax, amin, fmt.largest, fmt.smallest_normal or 1.0)

    return wrong


def _below_range(right: Right, own: ErrorSum, amax: float, amin: float, fmt: Format) -> bool:
    del right
    ratio = Fraction(fmt.largest) / Fraction(fmt.value(1))
    return own.nonzero == 0 or Fraction(amax) <= Fraction(amin) * ratio


def _exponent(x: float) -> int:
    return math.frexp(x)[1]


def _log2(x: float) -> float:
    return math.log2(x) if x else -math.inf


_RANGES = (
    Operator("with-subnormals", "the range reaches down to the subnormal numbers", _below_range),
    Operator(
        "in-binary32",
        "the range and its product with amin are rounded to binary32",
        _range(lambda a, b, high, low: a <= arithmetic.product(b, quotient(high, low))),
    ),
    Operator(
        "by-quotient",
        "amax / amin is rounded to binary32 before it is compared",
        _range(lambda a, b, high, low: quotient(a, b) <= quotient(high, low)),
    ),
    Operator(
        "by-reciprocal",
        "amax is multiplied by RN(1 / amin)",
        _range(lambda a, b, high, low: arithmetic.product(a, quotient(1.0, b)) <= high / low),
    ),
    Operator(
        "from-above",
        "amax / range is rounded to binary32, and compared with amin",
        _range(lambda a, b, high, low: quotient(a, quotient(high, low)) <= b),
    ),
    Operator(
        "by-logarithms",
        "logarithms of amax and amin are subtracted, in binary64",
        _range(lambda a, b, high, low: _log2(a) - _log2(b) <= math.log2(high) - math.log2(low)),
    ),
    Operator(
        "of-exponents",
        "the exponents of amax and amin alone are compared",
        _range(
            lambda a, b, high, low: _exponent(a) - _exponent(b) <= _exponent(high) - _exponent(low)
        ),
    ),
    Operator(
        "of-bits",
        "the bits of amax and amin are subtracted, as if they were a logarithm",
        _range(lambda a, b, high, low: bits_of(a) - bits_of(b) <= bits_of(high) - bits_of(low)),
    ),
    Operator(
        "flushed-amin",
        "a subnormal amin is zero",
        lambda right, own, amax, amin, fmt: right(own, amax, flushed(amin), fmt),
    ),
    Operator(
        "flushed",
        "subnormal amin and amax are zero",
        lambda right, own, amax, amin, fmt: right(own, flushed(amax), flushed(amin), fmt),
    ),
)
_SMALLEST = (
    Operator(
        "of-zeros",
        "amin counts zeros",
        lambda _, numbers: min((abs(x) for x in numbers if math.isfinite(x)), default=0.0),
    ),
    Operator(
        "infinite-of-nothing",
        "amin of a unit of zeros is infinite",
        lambda right, numbers: right(numbers) or math.inf,
    ),
    Operator(
        "of-normal-numbers",
        "amin does not count subnormal numbers",
        lambda right, numbers: right([flushed(x) for x in numbers]),
    ),
    Operator(
        "signed",
        "amin is that of the positive numbers",
        lambda right, numbers: right([x for x in numbers if x > 0]),
    ),
)


# ---------------------------------------------------------------------- sums of squares

_ZEROS = (
    Operator(
        "zeros-refused",
        "a unit of zeros that stays zero is refused: 0 / 0 is NaN",
        lambda right, sums, limit: sums.signal != 0 and right(sums, limit),
    ),
)
ZEROS_EVERYWHERE = _ZEROS[0]
_NEAR = (
    *_ZEROS,
    Operator(
        "root-in-binary64",
        "the root of noise / signal is compared with the threshold, in binary64",
        lambda _, sums, limit: is_measured(sums) and sums.relative_frobenius < math.sqrt(limit),
    ),
)
_LOUD = (
    *_ZEROS,
    Operator(
        "decibels-in-binary64",
        "the SQNR is computed in decibels, and compared with the threshold, in binary64",
        lambda _, sums, ratio: (
            is_measured(sums) and sums.sqnr >= round(10 * math.log10(ratio / _ONE), 5)
        ),
    ),
)
_ALONG = (
    *_ZEROS,
    Operator(
        "root-in-binary64",
        "the cosine is the product over the root of signal * energy, in binary64",
        lambda _, sums, limit: sums.cosine >= float(limit),
    ),
)


def _of_unit(right: Right, rows: Iterable[UnitSums], limit: Fraction) -> bool:
    found = list(rows)
    largest, amax = (max(getattr(row, name) for row in found) for name in ("largest", "amax"))
    accepted: bool = right([replace(found[0], largest=largest, amax=amax)], limit)
    return accepted and all(map(is_measured, found))


def _limit_in_binary32(_: Right, rows: Iterable[UnitSums], limit: Fraction) -> bool:
    return all(
        is_measured(row)
        and (row.largest == 0 or row.largest < rn32(Fraction(rn32(limit)) * Fraction(row.amax)))
        for row in rows
    )


_SMALL = (
    Operator(
        "of-unit", "the largest d of all rows is compared with the largest amax of them", _of_unit
    ),
    Operator(
        "last-row-left-out",
        "the last row of a unit is left out",
        lambda right, rows, limit: right(list(rows)[:-1], limit),
    ),
    Operator(
        "first-row-alone",
        "the first row of a unit stands for all",
        lambda right, rows, limit: right(list(rows)[:1], limit),
    ),
    Operator(
        "limit-in-binary32",
        "the threshold and its product with amax are rounded to binary32",
        _limit_in_binary32,
    ),
)
_MEASURED = (
    Operator(
        "infinite-left-out",
        "a unit with an infinite d may be accepted: its other elements decide",
        lambda *_: True,
    ),
)


# ---------------------------------------------------------------------- sums


def _with_sums(total: Callable[[Terms], int]) -> Right:
    """Return the sums of a unit, whose squares and products are added by another function."""

    def wrong(right: Right, pairs: Pairs) -> UnitSums:
        elements = list(pairs)
        errors = [d for x, y in elements if math.isfinite(d := absolute_error(x, y))]
        whole: UnitSums = right(elements)
        return replace(
            whole,
            signal=total([(x, x) for x, _ in elements]),
            noise=total([(d, d) for d in errors]),
            energy=total([(y, y) for _, y in elements]),
            product=total(elements),
        )

    return wrong


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


def _total_without_carries(terms: Terms) -> int:
    words = [0] * WORDS
    for a, b in terms:
        term = product(a, b)
        for k in range(WORDS):
            word = abs(term) >> 32 * k & _WORD - 1
            words[k] = (words[k] + (word if term > 0 else -word)) % _WORD
    total = sum(word << 32 * k for k, word in enumerate(words))
    return total - (1 << 32 * WORDS) if words[-1] >> 31 else total


def _of_unrounded_distances(right: Right, pairs: Pairs) -> UnitSums:
    elements = list(pairs)
    whole: UnitSums = right(elements)
    exact = (Fraction(x) - Fraction(y) for x, y in elements if math.isfinite(absolute_error(x, y)))
    return replace(whole, noise=sum(_in_units(distance**2) for distance in exact))


def _without_signs(right: Right, pairs: Pairs) -> UnitSums:
    elements = list(pairs)
    whole: UnitSums = right(elements)
    return replace(whole, product=sum(abs(product(x, y)) for x, y in elements))


def _without_tail(right: Right, pairs: Pairs) -> UnitSums:
    elements = list(pairs)
    found: UnitSums = right(elements[: len(elements) // 4 * 4])
    return found


_UNIT_SUMS = (
    Operator(
        "in-binary32",
        "squares and products are rounded to binary32, and added in it, from left to right",
        _with_sums(
            partial(_rounded_total, lambda s, a, b: arithmetic.total(s, arithmetic.product(a, b)))
        ),
    ),
    Operator(
        "in-binary64",
        "squares and products, which binary64 holds, are added in it, from left to right",
        _with_sums(partial(_rounded_total, lambda s, a, b: s + a * b)),
    ),
    Operator(
        "carries-lost",
        "the words of a sum have 32 bits, and wrap: nothing is carried to the next word",
        _with_sums(_total_without_carries),
    ),
    Operator(
        "noise-of-unrounded-distances",
        "the noise is the sum of (x - y)^2: the distance is not rounded to binary32",
        _of_unrounded_distances,
    ),
    Operator(
        "subnormals-left-out",
        "subnormal x and y count as 0 in all sums",
        lambda right, pairs: right([(flushed(x), flushed(y)) for x, y in pairs]),
    ),
    Operator("products-without-signs", "the product is the sum of |x * y|", _without_signs),
    Operator(
        "tail-left-out",
        "the numbers of a unit behind its last four are left out",
        _without_tail,
    ),
)


# ---------------------------------------------------------------------- fallbacks

_KEPT = (
    Operator(
        "encoded-again",
        "a bfloat16 input that falls back is encoded again: payloads of NaN are lost",
        lambda _, x, __: to_bf16(x),
    ),
    Operator(
        "truncated",
        "an input that falls back is cut to bfloat16 instead of rounded",
        lambda right, x, own: (
            right(x, own) if own is not None else encode(x, formats["bf16"], "rtz")
        ),
    ),
)


OPERATORS_OF_POLICIES: Mapping[str, tuple[Operator, ...]] = {
    "comparison": _STRICT,
    **_NOT_STRICT,
    "multiplied": _MULTIPLIED,
    "test": _TESTS,
    "guard": _GUARDS,
    "lossless": _LOSSLESS,
    "mean": _MEANS,
    "range": _RANGES,
    "smallest": _SMALLEST,
    "near": _NEAR,
    "loud": _LOUD,
    "along": _ALONG,
    "small": _SMALL,
    "all-measured": _MEASURED,
    "unit-sums": _UNIT_SUMS,
    "kept": _KEPT,
}
