"""Operators on what the source computes: what a wrong program does there, by the type of a result.

Each is called with the right function and its operands, and returns what a wrong program uses.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.floating_point import SMALLEST_NORMAL, flushed, log2_in_binary32
from mor_ref.exact.arithmetic import (
    FLT_MAX,
    bits_of,
    nearest_in,
    product,
    quotient,
    rn32,
)
from mor_ref.exact.encoding import Ratio, floor_log2, in_units_of
from mor_ref.exact.scales import IdealScale
from mor_ref.mistakes.arithmetic import next_to, number_of, one_newton_step
from mor_ref.mistakes.mistake import Operator

_UNIT = 1 << 23  # of a significand of binary32


# ---------------------------------------------------------------------- exact quotients


def _limited(a: float, b: float) -> Ratio:
    return Ratio.of(min(a, FLT_MAX), b)


def _by_reciprocal(change: Callable[[float, float], float]) -> Callable[..., Ratio]:
    def wrong(_: Any, a: float, b: float) -> Ratio:
        inverse = change(quotient(1.0, b), b)
        return _limited(product(a, inverse) if math.isfinite(inverse) else math.inf, 1.0)

    return wrong


def _truncated(near: float, b: float) -> float:
    is_above = math.isfinite(near) and Fraction(near) * Fraction(b) > 1
    return next_to(near, up=False) if is_above else near


def _step_off(*, up: bool) -> Callable[[float, float], float]:
    return lambda near, _: next_to(near, up=up) if math.isfinite(near) else near


def _in_binary32(_: Any, a: float, b: float) -> Ratio:
    return _limited(quotient(a, b), 1.0)


def _inverse_of_product(_: Any, a: float, b: float) -> Ratio:
    return _limited(quotient(1.0, product(b, quotient(1.0, a))), 1.0)


def _newton(_: Any, a: float, b: float) -> Ratio:
    (found,) = one_newton_step([a], [b])
    return _limited(found if math.isfinite(found) and found > 0 else FLT_MAX, 1.0)


def _power_below(x: float) -> float:
    return math.ldexp(1.0, floor_log2(x))


def _of_ieee(largest: float) -> float:
    """Return the largest number of the format whose top exponent is for infinities and NaN."""
    for fmt in formats.values():
        if fmt.largest == largest and fmt.specials != "ieee" and fmt.sign == "sign-magnitude":
            return replace(fmt, name=f"{fmt.name}_as_ieee", specials="ieee").largest
    return largest


_QUOTIENTS = (
    Operator(
        "by-reciprocal",
        "is computed as a product with a rounded reciprocal",
        _by_reciprocal(lambda near, _: near),
    ),
    Operator(
        "by-truncated-reciprocal",
        "is a product with a truncated reciprocal, as of an approximate division",
        _by_reciprocal(_truncated),
    ),
    Operator(
        "by-reciprocal-above",
        "is a product with a reciprocal that is one unit in the last place too large",
        _by_reciprocal(_step_off(up=True)),
    ),
    Operator(
        "by-reciprocal-below",
        "is a product with a reciprocal that is one unit in the last place too small",
        _by_reciprocal(_step_off(up=False)),
    ),
    Operator("by-newton", "is a product with a reciprocal of one Newton step", _newton),
    Operator("in-binary32", "is computed in binary32, where it overflows", _in_binary32),
    Operator(
        "inverse-of-product",
        "is the inverse of a product with a rounded reciprocal",
        _inverse_of_product,
    ),
    Operator(
        "of-power",
        "aims at the power of two below the largest number: 256 in e4m3",
        lambda right, a, b: right(_power_below(a), b),
    ),
    Operator(
        "of-ieee",
        "aims at the largest number below the top exponent, as in IEEE formats: 240 in e4m3",
        lambda right, a, b: right(_of_ieee(a), b),
    ),
    Operator("of-second", "is replaced by its second operand", lambda right, _, b: right(b, 1.0)),
)


# ---------------------------------------------------------------------- integers and comparisons


def _cut(right: Any, magnitude: Any, unit: int) -> int:
    del right
    return in_units_of(unit, magnitude)[0]


def _up(right: Any, magnitude: Any, unit: int) -> int:
    del right
    below, rest, _ = in_units_of(unit, magnitude)
    return below + (rest > 0)


def _of_bits(bits: int, right: Any, magnitude: Any, unit: int) -> int:
    dropped = 24 - bits
    return round(Fraction(int(right(magnitude, unit)), 1 << dropped)) << dropped


_SIGNIFICANDS = (
    Operator("truncated", "is cut to 24 bits, not rounded", _cut),
    Operator("rounded-up", "is rounded up to 24 bits", _up),
)
_FLOORS = (Operator("left-out", "is left out", lambda *_: False),)


def _by_quotient(_: Any, a: int, b: int) -> bool:
    return product(float(a + _UNIT), quotient(1.0, float(b + _UNIT))) > 1


_COMPARISONS = (
    Operator("never", "never holds", lambda *_: False),
    Operator("always", "always holds", lambda *_: True),
    Operator("with-equals", "holds for equal numbers as well", lambda right, a, b: not right(b, a)),
    Operator(
        "reversed", "holds if the first is less, not greater", lambda right, a, b: right(b, a)
    ),
    Operator("by-quotient", "is decided by a rounded quotient of both significands", _by_quotient),
)
_DECREMENTS = (
    Operator("other-way", "is an increment", lambda _, a, b: a + b),
    Operator("twice", "is made twice", lambda _, a, b: a - 2 * b),
)


def _left_out(_: Any, x: Any, limit: Any) -> Any:
    """Return a number without a limit: an overflow is infinite; an exponent stays in its field."""
    if isinstance(x, float):
        return math.inf if x > FLT_MAX else x
    return min(x, limit + 1)


_LIMITS = (
    Operator("left-out", "is left out: what is above it is infinite", _left_out),
    Operator(
        "one-lower",
        "is one step lower",
        lambda right, x, limit: right(
            x, limit - 1 if isinstance(limit, int) else next_to(limit, up=False)
        ),
    ),
    Operator(
        "one-instead",
        "gives 1 for what is above it",
        lambda _, x, limit: x if x <= limit else type(x)(1),
    ),
)
_ORDERS = (Operator("first", "is applied before the exponent is lowered", None),)
_STORED = (
    Operator("one-more", "is e + 128, one more than in e8m0", lambda right, a, b: right(a, b) + 1),
    Operator("one-less", "is e + 126, one less than in e8m0", lambda right, a, b: right(a, b) - 1),
    Operator(
        "inverse",
        "is 254 - code: that of the scale that codes are multiplied by",
        lambda right, a, b: 254 - right(a, b),
    ),
)


def _smallest(right: Any, value: Any) -> Any:
    del right
    return 0.0 if isinstance(value, float) else -127


_ZEROS = (Operator("smallest", "is the smallest one that can be stored, not 1", _smallest),)


# ---------------------------------------------------------------------- amaxes


def _of_amax(change: Callable[[float], float]) -> Callable[..., float]:
    return lambda _, amax, *__: change(amax)


def _cut_to_bf16(x: float) -> float:
    return x if math.isinf(x) else number_of(bits_of(x) & 0xFFFF0000)


def _in(fmt: Format) -> Callable[[float], float]:
    return lambda x: x if math.isinf(x) else min(nearest_in(x, fmt), fmt.largest)


AMAXES = (
    Operator("in-bf16", "is rounded to bfloat16", _of_amax(_in(formats["bf16"]))),
    Operator("cut-to-bf16", "is cut to bfloat16", _of_amax(_cut_to_bf16)),
    Operator(
        "flushed",
        "is 0 if it is subnormal",
        _of_amax(flushed),
    ),
    Operator(
        "at-least-normal",
        "is at least 2^-126, against a division by zero",
        _of_amax(lambda x: max(x, SMALLEST_NORMAL)),
    ),
    Operator(
        "at-least-1e-12",
        "is at least 1e-12, against a division by zero",
        _of_amax(lambda x: max(x, rn32(Fraction(1, 10**12))) if x else x),
    ),
)


# ---------------------------------------------------------------------- ideal scales


def _if_there(change: Callable[[IdealScale], IdealScale]) -> Callable[..., IdealScale | None]:
    def wrong(right: Any, *operands: Any) -> IdealScale | None:
        found: IdealScale | None = right(*operands)
        return found if found is None else change(found)

    return wrong


def _to_power(least: int) -> Callable[[IdealScale], IdealScale]:
    return lambda ideal: IdealScale(0, ideal.exponent + (ideal.mantissa >= least))


def _one_for_zeros(right: Any, *operands: Any) -> IdealScale:
    found: IdealScale | None = right(*operands)
    return IdealScale(0, 0) if found is None else found


_MANTISSAS = (
    Operator("of-7-bits", "has 7 bits, as in bfloat16", lambda _, m: m & 0x7F0000),
    Operator("zero", "is 0: scales are powers of two", lambda *_: 0),
)
_IDEALS = (
    Operator("rounded-up", "is rounded up to a power of two", _if_there(_to_power(1))),
    Operator(
        "to-nearest-power", "is rounded to the nearest power of two", _if_there(_to_power(1 << 22))
    ),
    Operator("rounded-down", "is rounded down to a power of two", _if_there(_to_power(_UNIT))),
    Operator("of-zeros", "of a block of zeros counts as 1", _one_for_zeros),
)


def _own(_: Any, shared: int, ideal: IdealScale | None) -> int:
    return ideal.mantissa if ideal else shared


def _smaller(_: Any, shared: int, ideal: IdealScale | None) -> int:
    return min(shared, ideal.mantissa) if ideal else shared


def _none_for_zeros(_: Any, shared: int, ideal: IdealScale | None) -> int:
    return shared if ideal else 0


_SHARED = (
    Operator("own", "is that of the block itself", _own),
    Operator("smaller", "is that of the block itself, if that is smaller", _smaller),
    Operator(
        "none-for-zeros", "does not count for a block of zeros, whose scale is 1", _none_for_zeros
    ),
)


# ---------------------------------------------------------------------- results


def _exponent_by(compute: Callable[[float, float], float]) -> Callable[..., IdealScale]:
    """Return the ideal scale whose exponent is computed otherwise; NaN and infinities stay."""

    def wrong(right: Any, largest: float, amax: float) -> IdealScale:
        ideal: IdealScale = right(largest, amax)
        exponent = compute(largest, amax)
        return replace(ideal, exponent=int(exponent)) if math.isfinite(exponent) else ideal

    return wrong


def _log2f(x: float) -> float:
    return log2_in_binary32(x) if 0 < x < math.inf else math.inf


def _field_rounded_up(x: float) -> int:
    bits = bits_of(x)
    return 127 - (bits >> 23) - (bits & 0x7FFFFF != 0)


def _rounded_up(x: float) -> int:
    fraction, exponent = math.frexp(x)
    return (fraction == 0.5) - exponent


def _below_powers(right: Any, largest: float, amax: float) -> IdealScale:
    ideal: IdealScale = right(largest, amax)
    return replace(ideal, exponent=ideal.exponent - (ideal.mantissa == 0))


def _inverted(_: Any, largest: float, amax: float) -> IdealScale:
    value = min(quotient(1.0, quotient(amax, largest)), FLT_MAX)
    exponent = floor_log2(value)
    return IdealScale(int(math.ldexp(value, 23 - exponent)) - _UNIT, exponent)


_RESULTS = (
    Operator(
        "exponent-by-log2f",
        "the exponent e is the floor of a logarithm in binary32",
        _exponent_by(lambda a, b: _floor(_log2f(quotient(a, b)))),
    ),
    Operator(
        "exponent-by-logarithm",
        "the exponent e is the floor of log(q) / log(2) in binary64",
        _exponent_by(lambda a, b: math.floor(math.log(a / b) / math.log(2.0))),
    ),
    Operator(
        "exponent-by-ceil-log2f",
        "the exponent e is minus the ceiling of the logarithm of amax / largest in binary32",
        _exponent_by(lambda a, b: -_ceil(_log2f(quotient(b, a)))),
    ),
    Operator(
        "exponent-of-operands",
        "the exponent e is the difference of both exponents: significands do not count",
        _exponent_by(lambda a, b: floor_log2(a) - floor_log2(b)),
    ),
    Operator(
        "exponent-of-inverse",
        "the exponent e is that of amax / largest in binary32, rounded up",
        _exponent_by(lambda a, b: _rounded_up(quotient(b, a))),
    ),
    Operator(
        "exponent-of-field-of-inverse",
        "the exponent e comes from the exponent field of amax / largest, rounded up",
        _exponent_by(lambda a, b: _field_rounded_up(quotient(b, a))),
    ),
    Operator(
        "exponent-of-field-of-product",
        "the exponent e comes from the exponent field of amax * RN(1 / largest), rounded up",
        _exponent_by(lambda a, b: _field_rounded_up(product(b, quotient(1.0, a)))),
    ),
    Operator(
        "exponent-below-powers",
        "the exponent e is one less where the ideal scale is a power of two",
        _below_powers,
    ),
    Operator(
        "inverted", "the ideal scale is the inverse of a rounded quotient amax / largest", _inverted
    ),
)


def _floor(x: float) -> float:
    return math.floor(x) if math.isfinite(x) else x


def _ceil(x: float) -> float:
    return math.ceil(x) if math.isfinite(x) else x


OPERATORS: Mapping[str, tuple[Operator, ...]] = {
    "quotient": _QUOTIENTS,
    "significand": _SIGNIFICANDS,
    "floor": _FLOORS,
    "comparison": _COMPARISONS,
    "decrement": _DECREMENTS,
    "limit": _LIMITS,
    "order": _ORDERS,
    "stored": _STORED,
    "zeros": _ZEROS,
    "amax": AMAXES,
    "ideal": _IDEALS,
    "mantissa": _MANTISSAS,
    "shared": _SHARED,
    "result": _RESULTS,
}
