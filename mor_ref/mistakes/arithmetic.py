"""Operators on binary32 arithmetic: how a wrong program computes a number.

Each takes columns of operands, as the exact model does, and returns the column of a wrong result.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import add, mul, sub, truediv
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.floating_point import flushed
from mor_ref.exact.arithmetic import FLT_MAX, nearest_in, rn32, rn32_of_binary64
from mor_ref.exact.columns import Column, differences, products, quotients, totals

Operation = Callable[..., Column]
TF32 = Format("tf32", exponent_bits=8, mantissa_bits=10, bias=127, specials="ieee")
OPERATIONS: dict[str, Operation] = {
    "+": totals,
    "-": differences,
    "*": products,
    "/": quotients,
    "square": lambda a: products(a, a),
}
# The same without a rounding of its own: on fractions exactly, and on floats in binary64.
UNROUNDED: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "square": lambda a: a * a,
}
WORDS = {
    "+": "sum",
    "-": "difference",
    "*": "product",
    "/": "quotient",
    "square": "square",
}


@dataclass(frozen=True)
class Wrong:
    """What a wrong program does with the result of an operation: a word for its name, and words."""

    name: str
    words: str
    of: Callable[[str], Operation]


def next_to(x: float, up: bool) -> float:
    """Return the neighbour of a finite number in binary32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    if x == 0:
        return number_of(0x00000001 if up else 0x80000001)
    return number_of(bits + (1 if (x > 0) == up else -1))


def number_of(bits: int) -> float:
    """Return the number of a binary32 pattern."""
    (number,) = struct.unpack("<f", struct.pack("<I", bits))
    return float(number)


def _truncated(exact: Fraction, near: float) -> float:
    if math.isinf(near):
        return math.copysign(FLT_MAX, near)
    return next_to(near, near < 0) if abs(Fraction(near)) > abs(exact) else near


def _up(exact: Fraction, near: float) -> float:
    if math.isinf(near):
        return near if near > 0 else -FLT_MAX
    return next_to(near, up=True) if Fraction(near) < exact else near


def _down(exact: Fraction, near: float) -> float:
    return -_up(-exact, -near)


def _ties_away(exact: Fraction, near: float) -> float:
    if math.isinf(near) or abs(Fraction(near)) >= abs(exact):
        return near
    away = next_to(near, near > 0 or (near == 0 and exact > 0))
    return away if math.isfinite(away) and Fraction(near) + Fraction(away) == 2 * exact else near


def _exactly(correct: Callable[[Fraction, float], float]) -> Callable[[str], Operation]:
    """Return an operation whose results follow from the exact ones, where these are finite."""

    def of(operator: str) -> Operation:
        def one(near: float, *operands: float) -> float:
            if not all(map(math.isfinite, operands)) or (operator == "/" and operands[1] == 0):
                return near
            exact: Fraction = UNROUNDED[operator](*map(Fraction, operands))
            return correct(exact, near) if exact else near

        return lambda *columns: list(map(one, OPERATIONS[operator](*columns), *columns))

    return of


def _afterwards(change: Callable[[float], float]) -> Callable[[str], Operation]:
    """Return an operation whose rounded results are changed."""

    def of(operator: str) -> Operation:
        return lambda *columns: list(map(change, OPERATIONS[operator](*columns)))

    return of


def _before(change: Callable[[float], float]) -> Callable[[str], Operation]:
    """Return an operation whose operands are changed."""

    def of(operator: str) -> Operation:
        return lambda *columns: OPERATIONS[operator](*(list(map(change, one)) for one in columns))

    return of


def _in_format(fmt: Format) -> Callable[[float], float]:
    return lambda x: nearest_in(x, fmt)


_BF16, _F16 = formats["bf16"], formats["f16"]


ROUNDED = (
    Wrong("truncated", "is rounded toward zero", _exactly(_truncated)),
    Wrong("up", "is rounded up", _exactly(_up)),
    Wrong("down", "is rounded down", _exactly(_down)),
    Wrong("ties-away", "is rounded with ties away from zero", _exactly(_ties_away)),
    Wrong("in-bf16", "is rounded to bfloat16", _afterwards(_in_format(_BF16))),
    Wrong("in-f16", "is rounded to binary16", _afterwards(_in_format(_F16))),
    Wrong("in-tf32", "is rounded to TF32", _afterwards(_in_format(TF32))),
    Wrong("flushed", "is 0 if it is subnormal", _afterwards(flushed)),
    Wrong("operands-flushed", "takes subnormal operands as 0", _before(flushed)),
    Wrong("operands-in-bf16", "has operands rounded to bfloat16", _before(_in_format(_BF16))),
    Wrong("operands-in-f16", "has operands rounded to binary16", _before(_in_format(_F16))),
    Wrong(
        "saturated",
        "is the largest number of binary32 where it overflows",
        _afterwards(lambda x: math.copysign(FLT_MAX, x) if math.isinf(x) else x),
    ),
)


def fused(sign: int) -> Operation:
    """Return a * b + c, or a * b - c, with one rounding."""

    def run(a: Column, b: Column, c: Column) -> Column:
        return [_fused_one(x, y, sign * z) for x, y, z in zip(a, b, c, strict=True)]

    return run


def _fused_one(x: float, y: float, z: float) -> float:
    if not all(map(math.isfinite, (x, y, z))):
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return rn32(exact) if exact else x * y + z


def in_binary64(compute: Callable[..., float]) -> Operation:
    """Return a computation in binary64, whose result is rounded once to binary32."""

    def run(*columns: Column) -> Column:
        return [rn32_of_binary64(compute(*operands)) for operands in zip(*columns, strict=True)]

    return run


def one_newton_step(a: Column, b: Column) -> Column:
    """Return a times a reciprocal of b that a Newton step in binary32 has made."""
    ones = [1.0] * len(b)
    first = quotients(ones, [next_to(x, up=True) if math.isfinite(x) and x else x for x in b])
    rest = differences([2.0] * len(b), products(b, first))
    return products(a, products(first, rest))
