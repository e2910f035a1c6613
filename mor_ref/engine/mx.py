"""The chapter on MX: the power of two that a block shares."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.engine.blocks import Sides
from mor_ref.engine.encoding import encoded_as_power_of_two
from mor_ref.engine.formats import BINARY32, power_of_two_target_for
from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.scales import amax_of_blocks, normalised
from mor_ref.engine.strips import TileScales

_U = np.uint32
_I = np.int32
_F = np.float32
_INFINITY = _U(0x7F800000)
_NAN = _U(0x7FFFFFFF)
_BIAS = _I(127)
_E8M0 = formats["e8m0"]


class MxScales(NamedTuple):
    """The stored scale of each block, and the scales as the loops take them."""

    code: NDArray[np.uint8]
    blocks: TileScales


class SharedExponent(NamedTuple):
    """The word that is added to the bits of an amax before its exponent field is read."""

    added: np.uint32
    largest_exponent: np.int32


@step
def power_of_two(exponent):
    """Return the bits of 2^exponent, from -127 to 127."""
    is_normal = exponent > _I(-127)
    return _U(_U(exponent + _BIAS) << _U(23)) if is_normal else _U(0x00400000)


@step
def shared_code(amax, rule):
    """MXS-002 to MXS-005: the e8m0 code of a block of that amax."""
    if amax > _INFINITY:
        return np.uint8(0xFF)
    if amax == _U(0):
        return np.uint8(0)
    if amax == _INFINITY:
        exponent = _I(128)
    else:
        mantissa, exponent = normalised(amax)
        if _U(mantissa + rule.added) >= _U(0x00800000):  # MXS-004 and MXS-005: into the next binade
            exponent = _I(exponent + _I(1))
    code = _I(_I(exponent - rule.largest_exponent) + _BIAS)
    return np.uint8(min(max(code, _I(0)), _I(254)))


@kernel
def shared_codes(amax, rule, codes):
    """MXS-003 to MXS-005."""
    for i in range(amax.size):
        codes[i] = shared_code(amax[i], rule)


@kernel
def rounded_up_codes(amax, largest, e8m0, codes):
    """MXS-006."""
    for i in range(amax.size):
        ratio = _F(float_of(amax[i]) / largest)
        codes[i] = np.uint8(encoded_as_power_of_two(bits_of(ratio), e8m0, _U))


@kernel
def powers_of_two(codes, encode, decode):
    """MXS-007 and MXS-008: the scale that a code stands for, and its reciprocal; NaN for 0xFF."""
    for i in range(codes.size):
        exponent = _I(_I(codes[i]) - _BIAS)
        is_nan = codes[i] == np.uint8(0xFF)
        encode[i] = _NAN if is_nan else power_of_two(_I(-exponent))
        decode[i] = _NAN if is_nan else power_of_two(exponent)


def mx_scales(
    numbers: Numbers, fmt: Format, rule: str, blocks: Partition, threads: int | None
) -> MxScales:
    """Return the scales of a tensor."""
    amax = amax_of_blocks(numbers, blocks, threads, "all")
    codes = np.empty(amax.shape, np.uint8)
    if SCALE_RULES[rule].up_from is None:
        e8m0 = power_of_two_target_for(_E8M0, "rtp", SpecialCases(), BINARY32)
        rounded_up_codes(amax.reshape(-1), _F(fmt.largest), e8m0, codes.reshape(-1))
    else:
        shared_codes(amax.reshape(-1), _shared_exponent(fmt, rule), codes.reshape(-1))
    encode, decode = np.empty_like(amax), np.empty_like(amax)
    powers_of_two(codes.reshape(-1), encode.reshape(-1), decode.reshape(-1))
    return MxScales(codes, TileScales(Sides(*blocks.block), encode, decode))


def _shared_exponent(fmt: Format, rule: str) -> SharedExponent:
    added = 0x00800000 - SCALE_RULES[rule].up_from_of(fmt)
    largest_exponent = int(np.frexp(fmt.largest)[1]) - 1
    return SharedExponent(_U(added), _I(largest_exponent))
