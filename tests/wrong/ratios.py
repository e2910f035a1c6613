"""Binary32 scales, as libraries write them, and wrong in a rounding or at an end of the range."""

import numpy as np

from wrong.kernel import Kernel
from wrong.scaling import port

F32 = np.float32
_FLT_MAX = np.finfo(F32).max


def ratio(scaling, amax, scale):
    """Return mantissas, exponents and scales; fp32 has only scales."""
    if scaling != "fp32":
        return None
    none = np.zeros(amax.shape, np.uint32)
    return none, none, np.where(amax > 0, np.minimum(scale, _FLT_MAX), F32(1)).astype(F32)


def rounded_reciprocal(scaling, largest, _, amax):
    return ratio(scaling, amax, largest * (F32(1) / amax))


def inverse_of_decode_scale(scaling, largest, _, amax):
    return ratio(scaling, amax, F32(1) / (amax / largest))


def inverse_of_product(scaling, largest, _, amax):
    return ratio(scaling, amax, F32(1) / (amax * (F32(1) / largest)))


def _fma(a, b, c):
    """Compute in binary64, which is exact enough for residuals: their product has 48 bits."""
    return (a.astype(np.float64) * b + c).astype(F32)


def newton(scaling, largest, _, amax):
    """Divide by two steps of Newton from 12 bits, without a last correction."""
    low, power = np.frexp(amax)
    bits = (F32(1) / low).view(np.uint32) & np.uint32(0xFFFFF000)
    estimate = bits.view(F32)
    for _step in range(2):
        estimate = _fma(estimate, _fma(-low, estimate, F32(1)), estimate)
    return ratio(scaling, amax, np.ldexp(largest * estimate, -power))


def newton_with_correction(scaling, largest, _, amax):
    """Divide as with div.rn on normal numbers: the residual corrects the last bit."""
    estimate = (F32(1) / amax).astype(F32)
    quotient = largest * estimate
    return ratio(scaling, amax, _fma(_fma(-quotient, amax, largest), estimate, quotient))


def fdividef(scaling, largest, _, amax):
    """Divide by CUDA's __fdividef: 0 for a divisor above 2^126."""
    quotient = np.where(amax > 2.0**126, F32(0), largest / amax)
    return ratio(scaling, amax, quotient)


def clamped_amax(scaling, largest, _, amax):
    if scaling != "fp32":
        return None
    none = np.zeros(amax.shape, np.uint32)
    return none, none, np.where(amax > 0, largest / np.maximum(amax, F32(1e-12)), F32(1))


def uncapped(scaling, largest, _, amax):
    if scaling != "fp32":
        return None
    none = np.zeros(amax.shape, np.uint32)
    return none, none, np.where(amax > 0, largest / amax, F32(1))


def one_where_infinite(scaling, largest, _, amax):
    """Use 1 for an infinite scale too, as Transformer Engine does."""
    scale = largest / amax
    return ratio(scaling, amax, np.where(np.isinf(scale), F32(1), scale))


def flushed_amax(scaling, largest, _, amax):
    amax = np.where(amax < 2.0**-126, F32(0), amax)
    return ratio(scaling, amax, largest / amax)


def exponents_of_logs(scaling, largest, _, amax):
    scale = np.exp2(np.log2(largest) - np.log2(amax))
    return ratio(scaling, amax, scale)


KERNELS = [
    Kernel("rounded_reciprocal", port(rounded_reciprocal), "largest * RN32(1 / amax)"),
    Kernel("inverse_of_decode", port(inverse_of_decode_scale), "RN32(1 / RN32(amax / largest))"),
    Kernel("inverse_of_product", port(inverse_of_product), "1 / (amax * RN32(1 / largest))"),
    Kernel("newton", port(newton), "largest * a reciprocal of two Newton steps, one ulp off"),
    Kernel("newton_corrected", port(newton_with_correction), "corrected, but not at the ends"),
    Kernel("fdividef", port(fdividef), "the quotient by a divisor above 2^126 is 0"),
    Kernel("clamped_amax", port(clamped_amax), "an amax below 1e-12 counts as 1e-12"),
    Kernel("uncapped_ratio", port(uncapped), "the scale of a tiny amax is infinite"),
    Kernel("one_where_infinite", port(one_where_infinite), "the scale of a tiny amax is 1"),
    Kernel("flushed_amax", port(flushed_amax), "a subnormal amax counts as 0"),
    Kernel("difference_of_logs", port(exponents_of_logs), "exp2f(log2f(largest) - log2f(amax))"),
]
