"""Terms for columns of numbers: each operator as NumPy has it."""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from mor_ref.proofs.terms import Term, evaluated

Array = Any  # of NumPy, or one number of it
_F, _D, _U = np.float32, np.float64, np.uint32
_DTYPES: Mapping[tuple[int, int], Any] = {(8, 8): ml_dtypes.bfloat16, (5, 11): np.float16}
_WORD = 0xFFFFFFFF
_NEAREST = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def values_of(term: Term, variables: Mapping[str, Array]) -> Array:
    """Return the values of a term for columns of its variables, which are of binary32."""
    with np.errstate(all="ignore"):
        return np.asarray(evaluated(term, variables, OPERATORS))


def _sum_in_two(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a sum of binary64, and what its rounding has lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _excess(operator: str, a: Array, b: Array, c: Array) -> Array:
    """Return the sign of the exact result less a number of at most 25 bits.

    Products of a number of 25 bits and one of 24 are exact in binary64.
    """
    a, b = a.astype(_D), b.astype(_D)
    if operator == "*":
        return np.sign(a * b - c)
    if operator == "/":
        return np.sign(a - c * b) * np.sign(b)
    total, rest = _sum_in_two(a, b if operator == "+" else -b)
    return np.where(total == c, np.sign(rest), np.sign(total - c))


def _arithmetic(operator: str) -> Callable[..., Array]:
    def rounded(a: Array, b: Array, direction: str) -> Array:
        near = _NEAREST[operator](a, b)
        if direction == "nearest":
            return near
        is_exact = ~np.isfinite(a) | ~np.isfinite(b) | ((operator == "/") & (b == 0))
        is_beyond = np.isinf(near) & ~is_exact
        excess = np.where(is_beyond, -np.sign(near), _excess(operator, a, b, near.astype(_D)))
        if direction == "away":
            moves = _is_tie(operator, a, b, near, excess)
        else:
            moves = excess * _TOWARD[direction](near) > 0
        is_other = moves & ~is_exact & (excess != 0)
        return np.where(is_other, _next(near, excess), near)

    return rounded


_TOWARD: Mapping[str, Callable[[Array], Array]] = {
    "zero": lambda near: -np.sign(near),
    "up": np.ones_like,
    "down": lambda near: -np.ones_like(near),
}


def _next(near: Array, excess: Array) -> Array:
    """Return the number next to another, above or below."""
    return np.nextafter(near, (excess * np.inf).astype(_F))


def _is_tie(operator: str, a: Array, b: Array, near: Array, excess: Array) -> Array:
    """Return whether a result is halfway to the next number, which is larger."""
    away = _next(near, excess)
    middle = (near.astype(_D) + away.astype(_D)) / 2
    is_halfway = _excess(operator, a, b, middle) == 0
    return is_halfway & np.isfinite(away) & np.isfinite(near) & (np.abs(away) > np.abs(near))


def _fused(a: Array, b: Array, c: Array, _: str) -> Array:
    """Return a * b + c, rounded to nearest once."""
    total, rest = _sum_in_two(a.astype(_D) * b.astype(_D), c.astype(_D))
    near = total.astype(_F)
    other = np.nextafter(near, np.where(total > near, np.inf, -np.inf).astype(_F))
    is_halfway = (near.astype(_D) + other.astype(_D)) / 2 == total
    is_other = np.sign(rest) == np.sign(other.astype(_D) - total)
    return np.where(is_halfway & (rest != 0) & is_other & (total != near), other, near)


def _in_format(x: Array, exponent_bits: int, significand_bits: int) -> Array:
    dtype = _DTYPES.get((exponent_bits, significand_bits))
    return x.astype(dtype).astype(_F) if dtype else _with_bits(x, significand_bits)


def _with_bits(x: Array, significand_bits: int) -> Array:
    """Return numbers rounded to so many bits, with the exponents of binary32."""
    shift, bits = 24 - significand_bits, x.view(_U)
    odd = (bits >> shift) & 1
    kept = (bits + odd + ((1 << (shift - 1)) - 1)) >> shift << shift
    return np.where(np.isnan(x), x, kept.astype(_U).view(_F))


_COUNTS: Mapping[str, Callable[[Array], Array]] = {
    "nearest": np.rint,
    "away": lambda x: np.floor(x + 0.5),
    "zero": np.trunc,
    "up": np.ceil,
    "down": np.floor,
}


def _count(x: Array, direction: str) -> Array:
    return np.nan_to_num(_COUNTS[direction](x.astype(_D)), nan=0, posinf=0).astype(np.int64) & _WORD


def _bits(x: Array) -> Array:
    bits = np.ascontiguousarray(x, _F).view(_U)
    return np.where(np.isnan(x), _U(0x7FC00000), bits).astype(np.int64)


def _same(a: Array, b: Array, sort: str) -> Array:
    return a == b if sort == "word" else _bits(a) == _bits(b)


def _wrapped(operation: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: operation(a, b) & _WORD


OPERATORS: Mapping[str, Callable[..., Any]] = {
    **{operator: _arithmetic(operator) for operator in _NEAREST},
    "fused": _fused,
    "number": lambda bits: np.asarray(bits, _U).view(_F),
    "word": lambda value: np.asarray(value, np.int64),
    "in_format": _in_format,
    "absolute": np.abs,
    "negative": np.negative,
    "nan": np.isnan,
    "infinite": np.isinf,
    "zero": lambda x: x == 0,
    "subnormal": lambda x: (x != 0) & (np.abs(x) < _F(2.0**-126)),
    "signed": lambda x: np.signbit(x) & ~np.isnan(x),
    "less": lambda a, b, _: a < b,
    "same": _same,
    "true": lambda: np.asarray(True),
    "not": np.logical_not,
    "and": np.logical_and,
    "choice": lambda test, a, b, _: np.where(test, a, b),
    "bits": _bits,
    "number_of": lambda bits: bits.astype(_U).view(_F),
    "count": _count,
    "from_count": lambda count: count.astype(_F),
    "word+": _wrapped(np.add),
    "word-": _wrapped(np.subtract),
    "word&": np.bitwise_and,
    "word|": np.bitwise_or,
    "word<<": _wrapped(np.left_shift),
    "word>>": np.right_shift,
}
