"""The chapter on FP8-LM: scales of many tensors, and single numbers of Adam."""

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

import numpy as np

from mor_ref.engine.intrinsics import bits_of
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.scales import normalised

_F = np.float32
_U = np.uint32
_I = np.int32
_INFINITY = _U(0x7F800000)
_FLT_MAX = _F(np.finfo(np.float32).max)
# Of more digits than any tie of binary32 here comes near, whatever the context of a caller is.
_DECIMALS = Context(prec=60, rounding=ROUND_HALF_EVEN)
# How many of the largest significands of a binade have a logarithm that rounds to the integer above
# it, if half a step of the logarithm there is 2^(k - 24): floor(2^k * ln 2).
_ROUNDED_UP = (0, 1, 2, 5, 11, 22, 44)


@step
def rounded_up(above):
    """Return how many significands below 2^above have a logarithm that rounds to `above`."""
    magnitude, k = abs(above), _I(-1)
    if magnitude == 0:
        return _I(0)
    while magnitude >> (k + _I(1)) > 0:
        k = _I(k + _I(1))
    if above > 0 and magnitude == _I(1) << k:  # the logarithms below it have a smaller exponent
        k = _I(k - _I(1))
    return _I(_ROUNDED_UP[k]) if k >= 0 else _I(0)


@step
def floor_of_log2(ratio):
    """FLM-002: floor(RN32(log2(ratio))) of a positive finite number."""
    mantissa, exponent = normalised(bits_of(ratio))
    missing = _I(_I(1 << 23) - _I(mantissa))  # significands to the next power of two
    return _I(exponent + _I(missing <= rounded_up(_I(exponent + _I(1)))))


@step
def power_of_two(exponent):
    """Return 2^exponent as binary32 has it, infinite or 0 beyond its range."""
    return _F(2.0 ** np.float64(exponent))


@step
def scale_of_msamp(amax, previous, largest, margin):
    """FLM-002 and FLM-003: ratio, exponent and scale."""
    ratio = _F(largest * _F(_F(1) / amax))
    if ratio == _F(0):
        exponent = _F(-np.inf)
    elif bits_of(ratio) >= _INFINITY:
        exponent = ratio
    else:
        exponent = _F(floor_of_log2(ratio) - margin)
    scale = previous
    if amax > _F(0) and bits_of(amax) < _INFINITY:
        scale = power_of_two(abs(exponent)) if abs(exponent) <= _F(127) else _F(np.inf)
    return ratio, exponent, _F(_F(1) / scale) if exponent < _F(0) else scale


@step
def scale_exactly(amax, previous, largest, margin):
    """FLM-004: ratio, exponent and scale."""
    ratio = _F(largest / amax)
    if amax == _F(0) or bits_of(amax) >= _INFINITY:
        return ratio, _F(np.nan), previous
    _, exponent = normalised(bits_of(min(ratio, _FLT_MAX)))
    exponent = min(max(exponent - margin, -126), 127)
    return ratio, _F(exponent), power_of_two(exponent)


@kernel
def scales(amax, previous, largest, margin, is_msamp, ratio, exponent, scale):
    """FLM-001 for each tensor."""
    for i in range(amax.size):
        if is_msamp:
            fields = scale_of_msamp(amax[i], previous[i], largest, margin)
        else:
            fields = scale_exactly(amax[i], previous[i], largest, margin)
        ratio[i], exponent[i], scale[i] = fields


# ---------------------------------------------------------------------- single numbers


def rate_and_root(lr: float, beta1: float, beta2: float, steps: int) -> tuple[np.float32, ...]:
    """FLM-011: the rate of a step, and the root of the second correction."""
    with localcontext(_DECIMALS):
        corrections = [to_nearest(1 - Decimal(beta) ** steps) for beta in (beta1, beta2)]
    with np.errstate(all="ignore"):
        return _F(_F(lr) / corrections[0]), _F(np.sqrt(corrections[1]))


def growth(window: int) -> np.float32:
    """FLM-010: RN32(2^(1/window))."""
    with localcontext(_DECIMALS):
        return to_nearest(Decimal(2) ** (1 / Decimal(window)))


def to_nearest(value: Decimal) -> np.float32:
    """Return the binary32 number next to a decimal, in one rounding, ties to even."""
    near = _F(float(value))
    candidates = (np.nextafter(near, _F(-np.inf)), near, np.nextafter(near, _F(np.inf)))
    return min(
        candidates,
        key=lambda candidate: (abs(Decimal(float(candidate)) - value), candidate.view(_U) & _U(1)),
    )
