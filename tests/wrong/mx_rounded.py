"""MX with a mistake in ceil or even, or in the scales of int8_mx."""

import numpy as np

from wrong.microscaling import FRACTION, LAST, Register, in_blocks, magnitude_bits
from wrong.mx_scales import finished

KERNELS = Register()
mx = KERNELS.mx


@mx("ceil_of_log2_in_binary32", "The exponent is ceil(log2(amax)) in binary32.", rules=("ceil",))
def _ceil_of_log2_in_binary32(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    shared = np.where(amax == 0, -200, np.ceil(np.log2(amax)))
    shared = np.where(np.isinf(amax), 128, shared)
    scale = np.where(np.isnan(amax), 255, np.clip(shared - LAST[fmt] + 127, 0, 254))
    return finished(x, scale.astype(np.uint8), fmt, k)


@mx(
    "integers_reach_two",
    "The largest number of int8_mx is taken for 2, and not 127/64.",
    rules=("rceil",),
    formats=("int8_mx",),
)
def _integers_reach_two(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    fraction, up = np.frexp(amax.astype(np.float64) / 2)
    scale = np.clip(up - (fraction == 0.5) + 127, 0, 254)
    scale = np.where(np.isinf(amax), 254, np.where(amax == 0, 0, scale))
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx(
    "even_on_raw_bits",
    "Half is added to the bits of amax as they are, where a subnormal number is not normalised.",
    rules=("even",),
    formats=("int8_mx",),
)
def _even_on_raw_bits(x, fmt, _rule, k):
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2)
    field = (amax.astype(np.int64) + (1 << 22 - FRACTION[fmt])) >> 23
    scale = np.where(amax == 0, 0, np.clip(field - LAST[fmt], 0, 254))
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx(
    "even_of_all_integer_bits",
    "even keeps seven bits of an amax for int8_mx, one of which counts ones.",
    rules=("even",),
    formats=("int8_mx",),
)
def _even_of_all_integer_bits(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    fraction, up = np.frexp(amax.astype(np.float64))
    rounded = np.floor(fraction * 256 + 0.5) / 256
    p = np.where(np.isinf(amax), 128, up - 1 + (rounded == 1))
    scale = np.where(amax == 0, 0, np.clip(p - LAST[fmt] + 127, 0, 254))
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx("even_of_the_logarithm", "even rounds log2(amax).", rules=("even",))
def _even_of_the_logarithm(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x.astype(np.float64), k)).max(axis=2)
    p = np.where(np.isinf(amax), 128, np.rint(np.log2(np.maximum(amax, 2.0**-149))))
    scale = np.where(amax == 0, 0, np.clip(p - LAST[fmt] + 127, 0, 254))
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx("even_with_ties_down", "A tie of even keeps the smaller exponent.", rules=("even",))
def _even_with_ties_down(x, fmt, _rule, k):
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2).astype(np.int64)
    field = (amax + (1 << 22 - FRACTION[fmt]) - 1) >> 23
    scale = np.where(amax == 0, 0, np.clip(field - LAST[fmt], 0, 254))
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx(
    "even_in_bf16",
    "amax is rounded to bf16 before it is rounded to the mantissa of the format.",
    rules=("even",),
    sources=("f32", "f16"),
)
def _even_in_bf16(x, fmt, _rule, k):
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2).astype(np.int64)
    short = (amax + 0x7FFF + (amax >> 16 & 1)) >> 16 << 16
    field = (short + (1 << 22 - FRACTION[fmt])) >> 23
    scale = np.where(amax == 0, 0, np.clip(field - LAST[fmt], 0, 254))
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx(
    "ceil_of_fields",
    "ceil adds one for any mantissa bit, also of a subnormal amax, and has -127 as its exponent.",
    rules=("ceil",),
    formats=("int8_mx",),
)
def _ceil_of_fields(x, fmt, _rule, k):
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2).astype(np.int64)
    field = np.minimum((amax >> 23) + ((amax & 0x7FFFFF) != 0), 255)
    scale = np.clip(field - LAST[fmt], 0, 254)
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx(
    "exponents_above_127_are_nan",
    "A scale above 2^127 becomes the NaN of e8m0.",
    rules=("floor", "ceil", "even"),
    formats=("int8_mx",),
)
def _exponents_above_127_are_nan(x, fmt, rule, k):
    amax = np.abs(in_blocks(x.astype(np.float64), k)).max(axis=2)
    fraction, up = np.frexp(np.where(np.isinf(amax), 2.0**128, amax))
    more = {"floor": 0.0, "ceil": 0.5 - 2.0**-24, "even": 2.0**-8}[rule]
    shared = up - 1 + (fraction + more >= 1)
    scale = np.where(amax == 0, 0, np.clip(shared + 127, 0, 255))
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)
