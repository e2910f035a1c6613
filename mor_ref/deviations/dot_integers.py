"""Dot products of int8 that differ: in the integers, in their sum, and in SwitchBack's epilogue."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mor_ref.definitions.dot import INT8, STEPS_OF_INT8, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import DOT_INTEGERS
from mor_ref.exact import dot_binary32, dot_terms
from mor_ref.exact.arithmetic import quotient, rn32
from mor_ref.exact.dot_binary32 import product
from mor_ref.exact.dot_terms import Chunk, Factor, Product, exact_product

Reference = Callable[..., Any]
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_SQUARE = STEPS_OF_INT8**2
_OF_BITSANDBYTES = rn32(Fraction("6.200124e-05"))


def _is_integer(_code: int, fmt: Format, _profile: DotProfile) -> bool:
    return fmt == INT8


@deviation(dot_terms.number, where=_is_integer, rules=("DOT-019",), domain=DOT_INTEGERS)
def dot_integers_unsigned(
    reference: Reference, code: int, fmt: Format, profile: DotProfile
) -> Factor:
    """Codes are integers from 0 to 255."""
    found: Factor = reference(code, fmt, profile)
    return found._replace(value=float(code))


def _products(part: list[Product]) -> list[int]:
    return [int(one.a.value) * int(one.b.value) for one in part]


@deviation(dot_binary32.int32_sum, rules=("DOT-019",), domain=DOT_INTEGERS)
def dot_integers_of_a_unsigned(reference: Reference, part: list[Product]) -> int:
    """The codes of a are integers from 0 to 255, as VPDPBUSD of x86 takes them."""
    codes = [Product(Factor(one.a.value % (1 << INT8.bits), 0), one.b) for one in part]
    return int(reference(codes))


@deviation(dot_binary32.int32_sum, rules=("DOT-019",), domain=DOT_INTEGERS)
def dot_integers_in_pairs_of_int16(_: Reference, part: list[Product]) -> int:
    """Two products are added in 16 bits, with saturation, as VPMADDUBSW of x86 does."""
    found = _products(part)
    pairs = (min(sum(found[k : k + 2]), (1 << 15) - 1) for k in range(0, len(found), 2))
    return (sum(pairs) - _LEAST) % (1 << 32) + _LEAST


@deviation(dot_binary32.int32_sum, rules=("DOT-019",), domain=DOT_INTEGERS)
def dot_integers_saturate(_: Reference, part: list[Product]) -> int:
    """A sum beyond 32 bits becomes the largest or the smallest integer."""
    return min(max(sum(_products(part)), _LEAST), _MOST)


@deviation(dot_binary32.int32_sum, rules=("DOT-019",), domain=DOT_INTEGERS)
def dot_integers_added_in_binary32(_: Reference, part: list[Product]) -> int:
    """Integers are multiplied and added up in binary32, one product after the other."""
    total = 0.0
    for one in _products(part):
        total = rn32(Fraction(total) + one)
    return min(int(total), _MOST)


@deviation(dot_binary32.int32, rules=("DOT-019",), domain=DOT_INTEGERS)
def dot_integers_cut_to_binary32(
    reference: Reference, part: list[Product], c: float, profile: DotProfile
) -> Chunk:
    """The sum is converted to binary32 toward zero."""
    found: Chunk = reference(part, c, profile)
    whole = found.cut_sum or 0
    drop = max(abs(whole).bit_length() - 24, 0)
    return replace(found, c=math.copysign(abs(whole) >> drop << drop, whole) + 0.0)


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_divided(_: Reference, n: float, x: float, w: float) -> float:
    """The sum is divided by 127^2."""
    return product(w, product(x, quotient(n, float(_SQUARE))))


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_w_first(reference: Reference, n: float, x: float, w: float) -> float:
    """The scale of b multiplies the sum before the scale of a does."""
    return float(reference(n, w, x))


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_scales_first(_: Reference, n: float, x: float, w: float) -> float:
    """The product of both scales, in binary32, multiplies the scaled sum."""
    return product(product(n, rn32(Fraction(1, _SQUARE))), product(x, w))


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_scales_of_steps(_: Reference, n: float, x: float, w: float) -> float:
    """Each scale is divided by 127 before it multiplies the sum."""
    x, w = (quotient(scale, float(STEPS_OF_INT8)) for scale in (x, w))
    return product(w, product(x, n))


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_rounded_once(reference: Reference, n: float, x: float, w: float) -> float:
    """The result is the exact product, rounded once."""
    exact = exact_product(n, x, w)
    return rn32(exact / _SQUARE) if isinstance(exact, Fraction) and exact else reference(n, x, w)


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_flushed(reference: Reference, n: float, x: float, w: float) -> float:
    """A subnormal result becomes zero."""
    found = float(reference(n, x, w))
    return math.copysign(0.0, found) if abs(found) < math.ldexp(1.0, -126) else found


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_of_bitsandbytes(_: Reference, n: float, x: float, w: float) -> float:
    """1 / 127^2 is 6.200124e-05, as in int8_mm_dequant of bitsandbytes, a digit away from it."""
    return product(w, product(x, product(n, _OF_BITSANDBYTES)))


@deviation(dot_binary32.epilogue, rules=("DOT-020",), domain=DOT_INTEGERS)
def dot_switchback_factor_last(_: Reference, n: float, x: float, w: float) -> float:
    """Both scales multiply the sum before 1 / 127^2 does, from the left to the right."""
    return product(product(product(n, x), w), rn32(Fraction(1, _SQUARE)))


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
