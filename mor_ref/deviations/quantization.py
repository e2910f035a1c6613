"""Scaling of numbers and dequantization of codes that differ."""

from collections.abc import Callable

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import (
    ERRORS,
    IN_MX,
    IN_NVFP4,
    IN_PRODUCTS,
    MX_DECODED,
    SCALED,
    joined,
)
from mor_ref.deviations.floating_point import flushed
from mor_ref.exact.arithmetic import FLT_MAX, product, quotient
from mor_ref.exact.quantization import restored, scaled

Reference = Callable[..., float]
_IN_BLOCKS = (*ERRORS, *SCALED, *IN_NVFP4, *IN_MX, *IN_PRODUCTS, *MX_DECODED)
_COMPUTED = tuple(dict.fromkeys((*_IN_BLOCKS, *joined("COMPUTED"))))


@deviation(scaled, rules=("QNT-001",), domain=SCALED)
def divided_by_the_scale(_: Reference, x: float, scale: float) -> float:
    """Numbers are divided by the scale instead of multiplied."""
    return quotient(x, scale)


@deviation(scaled, rules=("QNT-001",), domain=SCALED)
def divided_by_a_rounded_inverse(_: Reference, x: float, scale: float) -> float:
    """Numbers are divided by RN(1 / scale): two roundings more."""
    return quotient(x, quotient(1.0, scale))


@deviation(scaled, rules=("QNT-001",), domain=SCALED)
def scaled_without_rounding(reference: Reference, x: float, scale: float) -> float:
    """The product goes into the encoder in full precision: one rounding less."""
    exact = x * scale  # in binary64, which holds products of binary32 numbers
    return exact if abs(exact) <= FLT_MAX else float(reference(x, scale))


@deviation(restored, rules=("QNT-002",), domain=SCALED)
def dequantized_by_rounded_reciprocal(_: Reference, value: float, scale: float) -> float:
    """Codes are multiplied by RN(1 / scale) instead of divided by the scale."""
    return product(value, quotient(1.0, scale))


@deviation(restored, rules=("QNT-002",), domain=SCALED)
def dequantized_twice(reference: Reference, value: float, scale: float) -> float:
    """Codes are divided by the scale twice."""
    return float(reference(reference(value, scale), scale))


@deviation(restored, rules=("QNT-002",), domain=SCALED)
def dequantized_with_the_inverse(_: Reference, value: float, scale: float) -> float:
    """Codes are multiplied by the scale instead of divided by it."""
    return product(value, scale)


@deviation(restored, rules=("QNT-002",), domain=SCALED)
def not_dequantized(_: Reference, value: float, scale: float) -> float:
    """Y is the value of the code, without the scale."""
    del scale
    return value


@deviation(
    product,
    quotient,
    rules=("ART-002", "QNT-001", "QNT-002", "LVL-001"),
    domain=_COMPUTED,
)
def arithmetic_flushes_subnormals(reference: Reference, a: float, b: float) -> float:
    """Subnormal products and quotients become zero, and subnormal operands count as zero."""
    return flushed(float(reference(flushed(a), flushed(b))))


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
