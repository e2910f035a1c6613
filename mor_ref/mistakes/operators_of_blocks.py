"""Operators on amaxes, and on the scale codes and elements of blocks.

Each is called with the right function and its operands, and returns what a wrong program uses.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.deviations.floating_point import SMALLEST_NORMAL, flushed, log2_in_binary32
from mor_ref.exact.arithmetic import FLT_MAX, bits_of, product, quotient, rn32
from mor_ref.exact.encoding import floor_log2
from mor_ref.mistakes.arithmetic import ROUNDED, Operation
from mor_ref.mistakes.mistake import Operator
from mor_ref.mistakes.operators import AMAXES

_NAN_CODE, _LARGEST_CODE, _CODE_OF_ONE, _BIAS = 0xFF, 254, 127, 127
_UNIT = 1 << 23  # of a significand of binary32
_LARGEST_POWER = 2.0**126  # the inverse of the smallest normal number

Numbers = Sequence[float]


# ---------------------------------------------------------------------- amaxes


def _of_result(wrong: Callable[..., float]) -> Callable[..., float]:
    """Return what an operator on an amax makes of that of some numbers."""
    return lambda right, numbers: wrong(right, float(right(numbers)))


def _of_numbers(change: Callable[[list[float]], Iterable[float]]) -> Callable[..., float]:
    return lambda right, numbers: float(right(list(change(list(numbers)))))


def _blanked_by_nan(right: Any, numbers: Iterable[float]) -> float:
    found = list(numbers)
    return 0.0 if any(map(math.isnan, found)) else float(right(found))


def _stuck_at_first(right: Any, numbers: Iterable[float]) -> float:
    found = list(numbers)
    return math.nan if found and math.isnan(found[0]) else float(right(found))


def _with_largest_for_infinite(right: Any, numbers: Iterable[float]) -> float:
    del right
    return min(max((abs(x) for x in numbers if not math.isnan(x)), default=0.0), FLT_MAX)


_MEASURED = (
    *(
        one._replace(wrong=_of_result(one.wrong))
        for one in AMAXES
        if one.name != "at-least-1e-12"  # which is that of zeros here, too
    ),
    Operator(
        "at-least-1e-12",
        "is at least 1e-12, against a division by zero",
        _of_result(lambda _, amax: max(amax, rn32(Fraction(1, 10**12)))),
    ),
    Operator(
        "signed",
        "is that of the positive numbers: negative ones do not count",
        _of_numbers(lambda numbers: (x for x in numbers if not x < 0)),
    ),
    Operator(
        "infinities-largest",
        "takes infinities for the largest number of binary32",
        _with_largest_for_infinite,
    ),
    Operator(
        "infinities-left-out",
        "is that of the finite numbers: an infinity does not count",
        _of_numbers(lambda numbers: (x for x in numbers if not math.isinf(x))),
    ),
    Operator("nan-blanks", "is 0 with a NaN: the block is scaled as one of zeros", _blanked_by_nan),
    Operator(
        "nan-of-first",
        "is NaN if the first number is: no other is greater than that",
        _stuck_at_first,
    ),
)


# ---------------------------------------------------------------------- scale codes of blocks


def _code_of(change: Callable[[Numbers], Iterable[float]]) -> Callable[..., int]:
    """Return the scale code of other numbers; with a NaN among them, that of NaN."""
    return lambda right, numbers, *rest: int(right(list(change(numbers)), *rest))


def _without(is_lost: Callable[[float], bool]) -> Callable[..., int]:
    return _code_of(lambda numbers: (x for x in numbers if not is_lost(x)))


def _with_nan_in(some: slice) -> Callable[..., int]:
    """Return the scale code if a NaN counts in some places alone."""

    def change(numbers: Numbers) -> Iterable[float]:
        counts = range(len(numbers))[some]
        return (x for i, x in enumerate(numbers) if i in counts or not math.isnan(x))

    return _code_of(change)


def _if_greater(a: float, b: float) -> float:
    return max(b, a)  # which is a > b ? a : b, also with a NaN


def _in_turn(numbers: Numbers) -> list[float]:
    """Return the amax of a > b ? a : b, from the first number to the last."""
    return [reduce(_if_greater, map(abs, numbers), 0.0)]


def _in_halves(larger: Callable[[float, float], float]) -> Callable[..., int]:
    """Return the scale code of an amax with b from the upper half, as lanes of a warp do."""

    def change(numbers: Numbers) -> list[float]:
        held = [*map(abs, numbers)]
        held += [0.0] * ((1 << (len(held) - 1).bit_length()) - len(held))
        while len(held) > 1:
            half = len(held) // 2
            held = [*map(larger, held[:half], held[half:])]
        return held

    return _code_of(change)


def _nan_by_sum(numbers: Numbers) -> list[float]:
    return [math.nan] if math.isnan(sum(numbers)) else [*numbers]


def _changed(change: Callable[[int], int]) -> Callable[..., int]:
    """Return another code of a number."""

    def wrong(right: Any, *operands: Any) -> int:
        code = int(right(*operands))
        return code if code == _NAN_CODE else change(code)

    return wrong


def _at_least_normal(right: Any, numbers: Numbers, *rest: Any) -> int:
    return int(right(numbers, *rest)) or int(any(numbers))


_CODES = (
    Operator(
        "nan-left-out", "a NaN does not count in the scale of its block", _without(math.isnan)
    ),
    Operator(
        "nan-left-out-by-fmax",
        "a NaN is dropped as by fmax: it counts in a block of NaN alone",
        _code_of(lambda numbers: [x for x in numbers if not math.isnan(x)] or numbers),
    ),
    Operator(
        "nan-of-first",
        "a NaN counts in the first place of a block alone",
        _with_nan_in(slice(1)),
    ),
    *(
        Operator(
            f"nan-of-first-{count}",
            f"a NaN counts in the first {count} places of a block alone",
            _with_nan_in(slice(count)),
        )
        for count in (4, 8, 16)
    ),
    Operator(
        "nan-of-all-but-last",
        "a NaN in the last place of a block does not count",
        _with_nan_in(slice(-1)),
    ),
    Operator(
        "nan-by-sum",
        "a block has the scale NaN if its sum is NaN, as that of infinities of both signs",
        _code_of(_nan_by_sum),
    ),
    Operator(
        "nan-lost-in-turn",
        "a NaN is lost by a > b ? a : b if a number follows",
        _code_of(_in_turn),
    ),
    Operator(
        "nan-lost-in-halves",
        "a NaN is lost by a > b ? a : b, where b is of the upper half, as lanes of a warp do",
        _in_halves(_if_greater),
    ),
    Operator(
        "nan-lost-in-other-halves",
        "a NaN is lost by b > a ? b : a, where b is of the upper half, as lanes of a warp do",
        _in_halves(max),
    ),
    Operator(
        "nan-hidden-by-infinity",
        "an infinity in a block hides a NaN",
        _code_of(lambda numbers: (math.inf,) if any(map(math.isinf, numbers)) else numbers),
    ),
    Operator(
        "infinities-nan",
        "a block with an infinity has the scale NaN",
        _code_of(lambda numbers: (math.nan if math.isinf(x) else x for x in numbers)),
    ),
    Operator(
        "negative-infinities-left-out",
        "an infinity below zero does not count in the scale of its block",
        _without(lambda x: x == -math.inf),
    ),
    Operator(
        "positive-infinities-left-out",
        "an infinity above zero does not count in the scale of its block",
        _without(lambda x: x == math.inf),
    ),
    Operator(
        "inverse",
        "254 - code is stored, that of the scale that numbers are multiplied by",
        _changed(lambda code: _LARGEST_CODE - code),
    ),
    Operator(
        "one-more",
        "the stored code is one more",
        _changed(lambda code: min(code + 1, _LARGEST_CODE)),
    ),
    Operator("one-less", "the stored code is one less", _changed(lambda code: max(code - 1, 0))),
    Operator("at-least-normal", "the scale is at least 2^-126, the code 1", _at_least_normal),
)
_ZERO_CODES = (Operator("one", "is 127, that of the scale 1", lambda *_: _CODE_OF_ONE),)


def always(rule: str) -> Operator:
    """Return the operator by which scale codes follow one rule."""

    def wrong(right: Any, numbers: Numbers, fmt: Format, _: str) -> int:
        return int(right(numbers, fmt, rule))

    return Operator("always", f"the scales of MX follow {rule}, whichever rule is asked for", wrong)


# ---------------------------------------------------------------------- exponents of amaxes


def _finite(exponent: Callable[[float, Format, str], int | None]) -> Callable[..., int]:
    """Return the exponent of a finite amax by another computation; None is the right one."""

    def wrong(right: Any, amax: float, fmt: Format, rule: str) -> int:
        found = exponent(amax, fmt, rule) if math.isfinite(amax) else None
        return int(right(amax, fmt, rule)) if found is None else found

    return wrong


_ROUNDED: Mapping[str, Callable[[float], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "even": round,
}


def _by(logarithm: Callable[[float], float], *rules: str) -> Callable[..., int]:
    """Return the exponent of a logarithm under some rules, rounded as they say."""
    return _finite(lambda amax, _, rule: _ROUNDED[rule](logarithm(amax)) if rule in rules else None)


def _of_bits(amax: float, fmt: Format, rule: str) -> int:
    return (bits_of(amax) + _UNIT - SCALE_RULES[rule].up_from_of(fmt) >> 23) - _BIAS


def _of_rounded_quotient(right: Any, amax: float, fmt: Format, rule: str) -> int:
    last = floor_log2(fmt.largest)
    scaled = product(amax, math.ldexp(1.0, -last))
    if scaled == 0 or math.isinf(scaled):
        return int(right(amax, fmt, rule))
    return int(right(scaled, fmt, rule)) + last


def _infinity_as_largest(right: Any, amax: float, fmt: Format, rule: str) -> int:
    return int(right(min(amax, FLT_MAX), fmt, rule))


_EXPONENTS = (
    Operator(
        "log2-in-binary32",
        "the exponent of block_amax comes from its logarithm, rounded to binary32",
        _by(log2_in_binary32, *_ROUNDED),
    ),
    Operator(
        "natural-logarithm",
        "the exponent of block_amax comes from log(block_amax) / log(2) in binary64",
        _by(lambda amax: math.log(amax) / math.log(2.0), "floor", "ceil"),
    ),
    Operator(
        "of-bits",
        "the exponent comes from the bits of block_amax, even if it is subnormal",
        _finite(_of_bits),
    ),
    Operator(
        "of-rounded-quotient",
        "the exponent is that of block_amax / 2^P, which is rounded before",
        _of_rounded_quotient,
    ),
    Operator(
        "infinity-as-largest",
        "an infinite block_amax counts as the largest number of binary32",
        _infinity_as_largest,
    ),
)


def _with_bits(change: Callable[[int], int]) -> Callable[..., bool]:
    """Return a comparison with another threshold, by its distance from the next power of two."""
    return lambda right, rest, least: bool(right(rest, _UNIT - change(_UNIT - least)))


_THRESHOLDS = (
    Operator(
        "without-equals",
        "an amax at the threshold of the next exponent keeps its own",
        lambda _, rest, least: rest > least,
    ),
    Operator(
        "one-bit-more",
        "block_amax is rounded to one bit more before its exponent is taken",
        _with_bits(lambda step: step // 2),
    ),
    Operator(
        "one-bit-less",
        "block_amax is rounded to one bit less before its exponent is taken",
        _with_bits(lambda step: min(2 * step, _UNIT)),
    ),
)
_LARGEST = (
    Operator("left-out", "is not subtracted from that of block_amax", lambda _, a, __: a),
    Operator("one-less", "is one less, as in IEEE formats", lambda right, a, b: right(a, b - 1)),
)
_CODE_LIMITS = (
    Operator(
        "left-out",
        "is left out: the code above it is that of NaN",
        lambda _, x, limit: min(x, limit + 1),
    ),
    Operator("one-lower", "is one less", lambda right, x, limit: right(x, limit - 1)),
)
_LOWER_LIMITS = (Operator("one-more", "is one more", lambda right, x, limit: right(x, limit + 1)),)


# ---------------------------------------------------------------------- codes of quotients


def _in_column(operation: Operation) -> Callable[..., float]:
    def wrong(_: Any, *operands: float) -> float:
        (result,) = operation(*([operand] for operand in operands))
        return float(result)

    return wrong


def with_rounding(operator: str, names: Iterable[str]) -> Iterable[Operator]:
    """Yield the operators of some names on an operation of binary32."""
    there = {one.name: one for one in ROUNDED}
    for name in names:
        one = there[name]
        yield Operator(name, one.words, _in_column(one.of(operator)))


def _next_power(x: float) -> float:
    return math.ldexp(1.0, floor_log2(x) + 1)


_DIVISIONS = (
    *with_rounding("/", ("truncated", "in-bf16", "flushed")),
    Operator(
        "by-reciprocal",
        "is a product with a rounded reciprocal",
        lambda _, a, b: product(a, quotient(1.0, b)),
    ),
    Operator("in-binary64", "stays in binary64", lambda _, a, b: a / b),
    Operator(
        "of-next-power",
        "has the power of two above the largest number in place of it",
        lambda right, a, b: right(a, _next_power(b)),
    ),
)


def _of_field(more: int) -> Callable[..., int]:
    """Return the exponent field of a quotient, after a number was added to its bits."""
    return lambda _, x, *__: min(bits_of(min(x, FLT_MAX)) + more >> 23, _LARGEST_CODE)


def _by_logarithm(right: Any, x: float, *rest: Any) -> int:
    if x == 0 or math.isinf(x):
        return int(right(x, *rest))
    return min(max(math.ceil(log2_in_binary32(x)), -_BIAS), _BIAS) + _BIAS


def _one_for_zero(right: Any, x: float, *rest: Any) -> int:
    return int(right(x, *rest)) if x else _CODE_OF_ONE


def _nan_for_infinite(right: Any, x: float, *rest: Any) -> int:
    return _NAN_CODE if math.isinf(x) else int(right(x, *rest))


_STORED_CODES = (
    Operator(
        "to-nearest", "the quotient is rounded to the nearest power of two", _of_field(1 << 22)
    ),
    Operator("rounded-down", "the quotient is rounded down to a power of two", _of_field(0)),
    Operator(
        "of-bits",
        "the code is the exponent field of the quotient, and one more with any other bit",
        _of_field(_UNIT - 1),
    ),
    Operator(
        "log2-in-binary32",
        "under rceil, the exponent is the ceiling of log2(block_amax / largest) in binary32",
        _by_logarithm,
    ),
    Operator(
        "underflow-one",
        "a quotient block_amax / largest that underflows to 0 has the scale 1, the code 127",
        _one_for_zero,
    ),
    Operator("infinity-nan", "an infinite quotient has the scale NaN", _nan_for_infinite),
)


# ---------------------------------------------------------------------- elements


def _of_power(change: Callable[[float], float]) -> Callable[..., float]:
    return lambda right, *operands: change(right(*operands))


_POWERS = (
    Operator("flushed", "is 0 if it is subnormal", _of_power(flushed)),
    Operator(
        "at-least-normal",
        "is at least 2^-126",
        _of_power(lambda power: max(power, SMALLEST_NORMAL)),
    ),
    Operator(
        "at-most-inverse-of-normal",
        "is at most 2^126: the divisor is at least 2^-126",
        _of_power(lambda power: min(power, _LARGEST_POWER)),
    ),
    Operator(
        "one-for-code-0",
        "is 1 for the code 0, which is left unscaled",
        _of_power(lambda power: 1.0 if power > _LARGEST_POWER else power),
    ),
    Operator(
        "inverse-of-flushed",
        "is the inverse of a scale that is 0 if it is subnormal",
        _of_power(lambda power: math.inf if power > _LARGEST_POWER else power),
    ),
)


def _saturated(right: Any, a: float, b: float) -> float:
    found = float(right(a, b))
    overflows = math.isinf(found) and math.isfinite(a)
    return math.copysign(FLT_MAX, found) if overflows else found


_PRODUCTS = (
    *with_rounding("*", ("flushed", "in-bf16", "in-f16")),
    Operator("saturated", "is the largest number of binary32 where it overflows", _saturated),
)
_NAN_TESTS = (Operator("left-out", "is left out: the code 255 is 2^128", lambda *_: False),)


def _inputs_flushed(_: Any, given: Any, *__: Any) -> Any:
    return flushed(given) if isinstance(given, float) else [flushed(x) for x in given]


_INPUTS = (Operator("flushed", "is 0 if it is subnormal", _inputs_flushed),)


def _by_shift(right: Any, value: float, code: int) -> float:
    if code not in (0, _NAN_CODE):
        return float(right(value, code))
    return product(value, math.inf if code else 0.0)


_RESTORED = (
    Operator(
        "scale-by-shift",
        "y has a scale whose bits are code << 23: code 0 is 0, and code 255 infinity",
        _by_shift,
    ),
)


def _value(change: Callable[[Format, int, float], float]) -> Callable[..., float]:
    """Return another number of a code, given its format and its number."""
    return lambda right, element: change(right.__self__, element, right(element))


def _lowest_as_next(fmt: Format, element: int, value: float) -> float:
    is_lowest = fmt.sign == "twos-complement" and element == fmt.sign_bit
    return fmt.value(element + 1) if is_lowest else value


_VALUES = (
    Operator(
        "lowest-as-next",
        "the lowest code of a format in two's complement stands for the number above it",
        _value(_lowest_as_next),
    ),
    Operator(
        "infinities-nan",
        "an infinite element is NaN, because quantizers make none",
        _value(lambda _, __, value: math.nan if math.isinf(value) else value),
    ),
    Operator(
        "nan-zero",
        "an element that is NaN with a finite scale is 0",
        _value(lambda _, __, value: 0.0 if math.isnan(value) else value),
    ),
)


OPERATORS_OF_BLOCKS: Mapping[str, tuple[Operator, ...]] = {
    "measured": _MEASURED,
    "inputs": _INPUTS,
    "code": _CODES,
    "zero-code": _ZERO_CODES,
    "exponent": _EXPONENTS,
    "threshold": _THRESHOLDS,
    "largest": _LARGEST,
    "code-limit": _CODE_LIMITS,
    "lower-limit": _LOWER_LIMITS,
    "division": _DIVISIONS,
    "stored-code": _STORED_CODES,
    "power": _POWERS,
    "product": _PRODUCTS,
    "nan-test": _NAN_TESTS,
    "restored": _RESTORED,
    "value": _VALUES,
}
