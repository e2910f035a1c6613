"""MX with a mistake in the scales of blocks."""

import numpy as np

from wrong.microscaling import (
    FRACTION,
    LARGEST,
    LAST,
    Register,
    decoded,
    encoded,
    f32,
    in_blocks,
    magnitude_bits,
    power,
    spread,
)

KERNELS = Register()
mx = KERNELS.mx


def finished(x, scale, fmt, k, up=lambda n: power(-n), down=power):
    """Return the fields of rows with known scales, computed as the library's last kernel does.

    `up` returns the factors of numbers and `down` the factors of codes, both from exponents of
    scales.
    """
    code = spread(scale.astype(np.int64), k, x.shape[1])
    factor = np.where(code == 255, f32(np.nan), up(code - 127))
    xs = x * factor
    codes = encoded(xs, fmt)
    back = np.where(code == 255, f32(np.nan), down(code - 127))
    return scale, xs, codes, decoded(codes, fmt) * back


@mx("torchao_rceil", "The exponent is ceil(log2(amax / largest)) in binary32.", rules=("rceil",))
def _torchao_rceil(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    descale = amax / f32(LARGEST[fmt])
    exponent = np.clip(np.ceil(np.log2(descale)), -127, 127)
    scale = np.where(np.isnan(descale), f32(255), exponent + f32(127))
    return finished(x, scale.astype(np.uint8), fmt, k)


@mx("log2_in_binary32", "The exponent is floor(log2(amax)) in binary32.", rules=("floor",))
def _log2_in_binary32(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    shared = np.floor(np.log2(np.where(amax == 0, f32(2.0**-126), amax)))
    biased = np.clip(shared - LAST[fmt] + 127, 0, 254)
    biased = np.where(np.isinf(amax), 128 - LAST[fmt] + 127, biased)
    scale = np.where(np.isnan(amax), 255, np.where(amax == 0, 0, np.minimum(biased, 254)))
    return finished(x, scale.astype(np.uint8), fmt, k)


@mx(
    "floor_of_natural_logarithms",
    "The exponent is floor(log(amax) / log(2)) in binary64, which is below k where amax is 2^k.",
    rules=("floor",),
)
def _floor_of_natural_logarithms(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x.astype(np.float64), k)).max(axis=2)
    shared = np.floor(np.log(np.clip(amax, 2.0**-149, 2.0**128)) / np.log(2.0))
    scale = np.where(amax == 0, 0, np.clip(shared - LAST[fmt] + 127, 0, 254))
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx(
    "reciprocal_of_largest",
    "amax is multiplied by RN32(1 / largest), and not divided by largest.",
    rules=("rceil",),
    formats=("int8_mx",),  # in the other five the two quotients round alike next to a power
)
def _reciprocal_of_largest(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    pattern = magnitude_bits(amax * (f32(1) / f32(LARGEST[fmt]))).astype(np.int64)
    exponent, mantissa = pattern >> 23, pattern & 0x7FFFFF
    up = (mantissa > 0) & (exponent != 254) & ~((exponent == 0) & (mantissa <= 0x400000))
    scale = np.where(np.isinf(amax), 254, exponent + up)
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx(
    "quotient_in_binary64",
    "The quotient of rceil stays in binary64, and is never rounded to binary32.",
    rules=("rceil",),
)
def _quotient_in_binary64(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x.astype(np.float64), k)).max(axis=2)
    fraction, up = np.frexp(amax / LARGEST[fmt])
    exponent = np.where(fraction == 0.5, up - 1, up)
    scale = np.where(amax == 0, 0, np.clip(exponent + 127, 0, 254))
    scale = np.where(np.isinf(amax), 254, np.where(np.isnan(amax), 255, scale))
    return finished(x, scale.astype(np.uint8), fmt, k)


@mx(
    "rceil_of_any_mantissa",
    "A quotient at or below 2^-127 gets code 1 if it has any mantissa bit.",
    rules=("rceil",),
)
def _rceil_of_any_mantissa(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    pattern = magnitude_bits(amax / f32(LARGEST[fmt])).astype(np.int64)
    exponent, mantissa = pattern >> 23, pattern & 0x7FFFFF
    scale = np.minimum(exponent + (mantissa > 0), 254)
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx("rceil_flushed", "A subnormal quotient of rceil is flushed to zero.", rules=("rceil",))
def _rceil_flushed(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    ratio = amax / f32(LARGEST[fmt])
    pattern = magnitude_bits(np.where(ratio < 2.0**-126, f32(0), ratio)).astype(np.int64)
    scale = np.minimum((pattern + 0x7FFFFF) >> 23, 254)
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx(
    "rceil_rounded_by_a_cast",
    "The quotient is cast to e8m0 to nearest, as frameworks do, and not upward.",
    rules=("rceil",),
)
def _rceil_rounded_by_a_cast(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x, k)).max(axis=2)
    pattern = magnitude_bits(amax / f32(LARGEST[fmt])).astype(np.int64)
    scale = np.minimum((pattern + 0x400000) >> 23, 254)
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx("tiny_for_zero", "An amax of zero is taken for 2^-126 before its logarithm.", rules=("floor",))
def _tiny_for_zero(x, fmt, _rule, k):
    amax = np.abs(in_blocks(x.astype(np.float64), k)).max(axis=2)
    shared = np.floor(np.log2(amax + 2.0**-126 * (amax == 0))) - LAST[fmt]
    shared = np.where(np.isinf(amax), 128 - LAST[fmt], np.maximum(shared, -127))
    scale = np.where(np.isnan(amax), 255, np.minimum(shared + 127, 254))
    return finished(x, scale.astype(np.uint8), fmt, k)


@mx(
    "scales_from_one",
    "Scales below 2^-126 are raised to it, the smallest normal number of binary32.",
)
def _scales_from_one(x, fmt, rule, k):
    amax = np.abs(in_blocks(x.astype(np.float64), k)).max(axis=2)
    near = np.where(np.isinf(amax), 2.0**128, amax)
    if rule == "rceil":
        near = (near.astype(np.float32) / f32(LARGEST[fmt])).astype(np.float64)
    fraction, up = np.frexp(near)
    half = 2.0 ** -(FRACTION[fmt] + 2)
    above = {"floor": fraction >= 1, "even": fraction + half >= 1}.get(rule, fraction > 0.5)
    last = 0 if rule == "rceil" else LAST[fmt]
    scale = np.where(near == 0, 0, np.clip(up - 1 + above - last + 127, 1, 254))
    return finished(x, np.where(np.isnan(amax), 255, scale).astype(np.uint8), fmt, k)


@mx("zeros_have_scale_one", "A block of zeros has the scale 1, code 127.", rules=("floor",))
def _zeros_have_scale_one(x, fmt, _rule, k):
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2).astype(np.int64)
    scale = np.where(amax == 0, 127, np.clip((amax >> 23) - LAST[fmt], 0, 254))
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx("infinity_is_nan", "An infinity in a block gives the scale NaN.", rules=("floor", "ceil"))
def _infinity_is_nan(x, fmt, rule, k):
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2).astype(np.int64)
    wide = np.frexp(amax.astype(np.uint32).view(np.float32).astype(np.float64))
    p = wide[1] - 1 + (rule == "ceil") * (wide[0] > 0.5)
    scale = np.where(amax == 0, 0, np.clip(p - LAST[fmt] + 127, 0, 254))
    return finished(x, np.where(amax >= 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx(
    "infinity_is_left_out",
    "amax is of the finite elements, so that an infinity is the largest number of the format.",
    rules=("floor", "rceil"),
)
def _infinity_is_left_out(x, fmt, rule, k):
    all_bits = magnitude_bits(in_blocks(x, k))
    amax = np.where(all_bits == 0x7F800000, np.uint32(0), all_bits).max(axis=2)
    near = np.where(amax > 0x7F800000, f32(1), amax.view(np.float32))
    last = LAST[fmt]
    if rule == "rceil":
        near, last = near / f32(LARGEST[fmt]), 0
    fraction, up = np.frexp(near)
    shared = up - 1 + (rule == "rceil") * (fraction > 0.5)
    scale = np.where(near == 0, 0, np.clip(shared - last + 127, 0, 254))
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)


@mx("nan_is_left_out", "A NaN in a block is ignored by its amax.", rules=("floor",))
def _nan_is_left_out(x, fmt, _rule, k):
    amax = magnitude_bits(np.fmax.reduce(np.abs(in_blocks(x, k)), axis=2)).astype(np.int64)
    scale = np.where(amax == 0, 0, np.clip((amax >> 23) - LAST[fmt], 0, 254))
    return finished(x, np.where(amax > 0x7F800000, 255, scale).astype(np.uint8), fmt, k)
