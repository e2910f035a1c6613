"""MX in vectorized NumPy, without a mistake."""

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


def exponent_of(magnitudes, add=0):
    """Return exponents of amaxes from their bits; `add` goes to the 52 bits of the fraction.

    A subnormal number of binary32 is a normal number of binary64.
    """
    wide = magnitudes.view(np.float32).astype(np.float64).view(np.uint64)
    return ((wide + np.uint64(add)) >> np.uint64(52)).astype(np.int64) - 1023


def scale_codes(amax, fmt, rule):
    """Return the codes of the scales of blocks, from the bits of their amaxes."""
    finite = np.minimum(amax, np.uint32(0x7F7FFFFF))
    if rule == "rceil":
        ratio = amax.view(np.float32) / f32(LARGEST[fmt])
        fraction, up = np.frexp(ratio)  # ratio = fraction * 2^up, and fraction is from 1/2 up
        code = np.clip(up - (fraction == 0.5) + 127, 0, 254)
        code = np.where(ratio == 0, 0, np.where(np.isinf(ratio), 254, code))
    else:
        add = {"floor": 0, "ceil": (1 << 52) - 1, "even": 1 << 51 - FRACTION[fmt]}[rule]
        p = np.where(amax == 0x7F800000, 128, exponent_of(finite, add))
        code = np.clip(p - LAST[fmt] + 127, 0, 254)
    code = np.where(amax == 0, 0, code)
    return np.where(amax > 0x7F800000, 255, code).astype(np.uint8)


@mx("numpy")
def quantized(x, fmt, rule, k):
    """Return the scale, xs, code and y of rows in blocks of k."""
    amax = magnitude_bits(in_blocks(x, k)).max(axis=2)
    scale = scale_codes(amax, fmt, rule)
    code = spread(scale.astype(np.int64), k, x.shape[1])
    lost = code == 255
    up = power(127 - np.minimum(code, 254))
    xs = np.where(lost, f32(np.nan), x * up)
    codes = encoded(xs, fmt)
    down = power(np.minimum(code, 254) - 127)
    y = np.where(lost, f32(np.nan), decoded(codes, fmt) * down)
    return scale, xs, codes, y
