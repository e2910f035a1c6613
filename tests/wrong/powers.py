"""Scales that are powers of two, as libraries write them, each wrong at a threshold."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import by_format, two_to
from wrong.scaling import port

F32 = np.float32


def stored(e):
    """Return mantissas, stored exponents and scales from exponents."""
    e = np.asarray(e).astype(np.int32)
    return np.zeros_like(e), e + 127, two_to(e)


def _log2f(x):
    """Return the correctly rounded log2 in binary32, which is the same on every machine."""
    return np.log2(x.astype(np.float64)).astype(F32)


def floor_log2f(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    e = np.floor(_log2f(largest / amax))
    return stored(np.where(amax > 0, np.minimum(e, 127), 0))


def ceil_log2f(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    decode = np.ceil(_log2f(amax / largest))
    return stored(np.where(amax > 0, -np.maximum(decode, -127), 0))


def biased_exponents(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    e_of_amax = (amax.view(np.uint32) >> 23).astype(np.int32) - 127
    e_of_largest = int(np.floor(np.log2(largest)))
    return stored(np.where(amax > 0, np.minimum(e_of_largest - e_of_amax, 127), 0))


def significands_at_or_above(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    low, power = np.frexp(amax)
    top, highest = np.frexp(largest)
    e = np.minimum(highest - power - (low >= top), 127)
    return stored(np.where(amax > 0, e, 0))


def fields_of_bits(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    bits, top = amax.view(np.uint32), largest.view(np.uint32)
    e = (top >> 23).astype(np.int32) - (bits >> 23).astype(np.int32)
    e = np.minimum(e - ((bits & 0x7FFFFF) > (top & 0x7FFFFF)), 127)
    return stored(np.where(amax > 0, e, 0))


def ceil_of_decode_scale(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    bits = (amax / largest).view(np.uint32)
    decode = (bits >> 23).astype(np.int32) + ((bits & 0x7FFFFF) != 0)
    return stored(np.where(amax > 0, np.minimum(127 - decode, 127), 0))


def ceil_of_product(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    bits = (amax * (F32(1) / largest)).view(np.uint32)
    decode = (bits >> 23).astype(np.int32) + ((bits & 0x7FFFFF) != 0)
    return stored(np.where(amax > 0, np.minimum(127 - decode, 127), 0))


def nearest_power(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    bits = (largest / np.where(amax > 0, amax, largest)).view(np.uint32)
    e = ((bits + 0x400000) >> 23).astype(np.int32) - 127
    return stored(np.minimum(e, 127))


def significands_of_bfloat16(scaling, largest, _, amax):
    """Reduce the upper halves of the numbers, as integers."""
    if scaling != "e8m0":
        return None
    bits, top = amax.view(np.uint32) >> 16, int(largest.view(np.uint32)) >> 16
    e = (top >> 7) - (bits >> 7).astype(np.int32) - ((bits & 0x7F) > (top & 0x7F))
    return stored(np.where(amax > 0, np.minimum(e, 127), 0))


def uncapped(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    _, power = np.frexp(largest.astype(np.float64) / np.where(amax > 0, amax, largest))
    return np.zeros_like(power), power + 126, two_to(power - 1)


def floor_log_base_e(scaling, largest, _, amax):
    if scaling != "e8m0":
        return None
    quotient = largest.astype(np.float64) / np.where(amax > 0, amax, largest)
    return stored(np.minimum(np.floor(np.log(quotient) / np.log(2.0)), 127))


KERNELS = [
    *by_format(
        Kernel(
            "floor_log2f", port(floor_log2f), "e is floor(log2f(largest / amax)), rounded upward"
        ),
        ("e4m3",),
    ),
    *by_format(
        Kernel("ceil_log2f", port(ceil_log2f), "e is -ceil(log2f(amax / largest)), as in torchao"),
        ("e4m3",),
    ),
    Kernel("biased_exponents", port(biased_exponents), "e ignores the significands, as OCP's MX"),
    *by_format(
        Kernel("at_or_above", port(significands_at_or_above), "equal significands take one off e"),
        ("e4m3", "e2m1"),
    ),
    # The exponent of a subnormal amax is not in its field, but every such scale is capped.
    Kernel("fields_of_bits", port(fields_of_bits)),
    *by_format(
        Kernel(
            "ceil_of_decode_scale", port(ceil_of_decode_scale), "amax / largest may be subnormal"
        ),
        ("e4m3",),
    ),
    *by_format(
        Kernel(
            "ceil_of_product", port(ceil_of_product), "amax * RN32(1 / largest) is rounded twice"
        ),
        ("e4m3",),
    ),
    Kernel("nearest_power", port(nearest_power), "the scale is rounded to the nearest power"),
    *by_format(Kernel("upper_halves", port(significands_of_bfloat16), "amax is cut to bfloat16")),
    Kernel("uncapped", port(uncapped), "e above 127 is stored, in 8 bits"),
    *by_format(
        Kernel(
            "floor_log_base_e", port(floor_log_base_e), "log(q) / log(2) is below k where q is 2^k"
        ),
        ("e4m3", "e2m3"),
    ),
]
