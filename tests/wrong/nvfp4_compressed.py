"""NVFP4 of compressed-tensors, with mistakes of its ports."""

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_parts import E2M1, E4M3, F32, e2m1, e4m3, largest, record, registrar

KERNELS: list[Kernel] = []
SIX, Q, ONE, TINY, EIGHTH = F32(6), F32(2688), F32(1), F32(2**-126), np.uint8(0x20)


def wrong(mistake):
    """Return the decorator of a program of compressed-tensors."""
    return registrar(KERNELS)(mistake, "compressed_tensors")


def unsigned_zero(xs):
    """Return codes of e2m1, 0 for a zero of either sign."""
    return np.where(xs == 0, np.uint8(0), e2m1(xs))


@wrong("G is 2688 / amax")
def compressed_g_by_division(_, x, amax):
    g = Q / np.maximum(amax, TINY)
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("G is infinite for a small amax")
def compressed_g_is_not_guarded(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("G is FLT_MAX, not 1, for a small amax")
def compressed_g_is_clamped(_, x, amax):
    g = np.minimum(ONE / np.maximum(amax, TINY) * Q, np.finfo(F32).max)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("G is 1 for a tensor of zeros only")
def compressed_g_of_zeros_only(_, x, amax):
    g = np.where(amax == 0, ONE, ONE / np.maximum(amax, TINY) * Q)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("a scale of 0 is replaced by 1")
def compressed_zero_is_one(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, np.uint8(0x38), s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("a scale of 0 is replaced by the smallest")
def compressed_zero_is_smallest(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = np.maximum(e4m3(g * (b / SIX)), np.uint8(1))
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("0.125 replaces a scale that was 0 before it was encoded, not after")
def compressed_zero_before_encoding(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    t = g * (b / SIX)
    s = e4m3(np.where(t == 0, F32(0.125), t))
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("the scale is (G * bamax) / 6")
def compressed_divided_last(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * b / SIX)
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("the scale is bamax * (G * RN(1/6)), as in te")
def compressed_as_te(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(b * (g * F32(1 / 6)))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("decode is v * (1 / G)")
def compressed_decode_by_reciprocal(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] * (ONE / g)
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("elements are multiplied by G and divided by v")
def compressed_in_two_steps(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    xs = x * g / E4M3[s]
    code = unsigned_zero(xs)
    decode = E4M3[s] / g
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("y is (decoded * v) / G")
def compressed_y_divided_last(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    xs = x / (E4M3[s] / g)
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, E4M3[s] / g, xs, code, E2M1[code] * E4M3[s] / g)


@wrong("amax and bamax are kept in bfloat16")
def compressed_statistics_in_bfloat16(_, x, amax):
    amax = amax.astype(ml_dtypes.bfloat16).astype(F32)
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2)).astype(ml_dtypes.bfloat16).astype(F32)
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)


@wrong("every element that becomes zero loses its sign")
def compressed_zeros_have_no_sign(_, x, amax):
    g = ONE / np.maximum(amax, TINY) * Q
    g = np.where(np.isfinite(g), g, ONE)
    b = largest(x, (1, 2))
    s = e4m3(g * (b / SIX))
    s = np.where(s == 0, EIGHTH, s)
    decode = E4M3[s] / g
    xs = x / decode
    code = e2m1(xs)
    code[code == 8] = 0
    return record(b, g, ONE / g, s, decode, xs, code, E2M1[code] * decode)
