"""NVFP4 of torchao, Model Optimizer and compressed-tensors, with mistakes of their ports."""

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_parts import E2M1, E4M3, F32, e2m1, e4m3, largest, record, registrar

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
SIX, SIXTH, Q, ONE, MOST = F32(6), F32(1 / 6), F32(2688), F32(1), F32(448)
NORMAL, SUBNORMAL = F32(2**-6), F32(2**-9)


def unsigned_zero(xs):
    """Return codes of e2m1, 0 for a zero of either sign."""
    return np.where(xs == 0, np.uint8(0), e2m1(xs))


def unclamped(t):
    """Return codes of e4m3, with NaN for numbers beyond 464, as in the casts of ml_dtypes."""
    return t.astype(ml_dtypes.float8_e4m3fn).view(np.uint8) & 0x7F


@wrong("scales are at least 2^-9", "torchao")
def torchao_with_subnormal_floor(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    s = e4m3(np.clip(b / SIX / g, SUBNORMAL, MOST))
    decode, encode = g * E4M3[s], (ONE / g) / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("scales beyond 464 are NaN", "torchao")
def torchao_without_saturation(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    s = unclamped(np.maximum(b / SIX / g, NORMAL))
    decode, encode = g * E4M3[s], (ONE / g) / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("encode is 1 / (g * v)", "torchao")
def torchao_encode_by_decode(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    s = e4m3(np.clip(b / SIX / g, NORMAL, MOST))
    decode = g * E4M3[s]
    xs = x * (ONE / decode)
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, ONE / decode)


@wrong("elements are divided by g * v", "torchao")
def torchao_divides(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    s = e4m3(np.clip(b / SIX / g, NORMAL, MOST))
    decode = g * E4M3[s]
    xs = x / decode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)


@wrong("the scale is (bamax / g) / 6", "torchao")
def torchao_divided_by_six_last(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    s = e4m3(np.clip(b / g / SIX, NORMAL, MOST))
    decode, encode = g * E4M3[s], (ONE / g) / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is (bamax / 6) * (1 / g)", "torchao")
def torchao_by_reciprocal(_, x, amax):
    g = amax / Q
    inverse = ONE / g
    b = largest(x, (1, 2))
    s = e4m3(np.clip(b / SIX * inverse, NORMAL, MOST))
    decode, encode = g * E4M3[s], inverse / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, inverse, g, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is computed in binary64", "torchao")
def torchao_in_float64(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    t = (b.astype(np.float64) / 6.0 / g.astype(np.float64)).astype(F32)
    s = e4m3(np.clip(t, NORMAL, MOST))
    decode, encode = g * E4M3[s], (ONE / g) / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("g is amax * RN(1 / 2688)", "torchao", "modelopt")
def global_scale_by_reciprocal(profile, x, amax):
    g = amax * F32(1 / 2688)
    b = largest(x, (1, 2))
    if profile == "modelopt":
        t = b / (SIX * g)
        s = e4m3(np.clip(np.where(t == 0, ONE, t), SUBNORMAL, MOST))
        xs = x / (E4M3[s] * g)
        code = unsigned_zero(xs)
        return record(b, ONE / g, g, s, E4M3[s] * g, xs, code, E2M1[code] * (E4M3[s] * g))
    s = e4m3(np.clip(b / SIX / g, NORMAL, MOST))
    decode, encode = g * E4M3[s], (ONE / g) / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("g is 1 for a tensor of zeros", "torchao", "modelopt")
def zeros_are_guarded(profile, x, amax):
    g = np.where(amax == 0, ONE, amax / Q)
    b = largest(x, (1, 2))
    if profile == "modelopt":
        t = b / (SIX * g)
        s = e4m3(np.clip(np.where(t == 0, ONE, t), SUBNORMAL, MOST))
        decode = E4M3[s] * g
        xs = x / decode
        code = unsigned_zero(xs)
        return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)
    s = e4m3(np.clip(b / SIX / g, NORMAL, MOST))
    decode, encode = g * E4M3[s], (ONE / g) / E4M3[s]
    xs = x * encode
    code = e2m1(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode, encode)


def modelopt(mistake):
    """Return the decorator of a program of Model Optimizer."""
    return wrong(mistake, "modelopt")


@modelopt("the scale is (bamax / 6) / g")
def modelopt_in_two_divisions(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    t = b / SIX / g
    s = e4m3(np.clip(np.where(t == 0, ONE, t), SUBNORMAL, MOST))
    xs = x / (E4M3[s] * g)
    code = unsigned_zero(xs)
    return record(b, ONE / g, g, s, E4M3[s] * g, xs, code, E2M1[code] * (E4M3[s] * g))


@modelopt("everything is computed in binary64, and rounded at the end")
def modelopt_in_float64(_, x, amax):
    g = amax.astype(np.float64) / 2688
    b = largest(x, (1, 2))
    t = b / (6 * g)
    t = np.where(t == 0, 1.0, t).astype(F32)
    s = e4m3(np.clip(t, SUBNORMAL, MOST))
    decode = E4M3[s] * g
    xs = (x / decode).astype(F32)
    code = unsigned_zero(xs)
    y = (E2M1[code] * decode).astype(F32)
    rounded = g.astype(F32)
    return record(b, (1 / g).astype(F32), rounded, s, decode.astype(F32), xs, code, y)


@modelopt("elements are multiplied by 1 / decode")
def modelopt_by_reciprocal(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    t = b / (SIX * g)
    s = e4m3(np.clip(np.where(t == 0, ONE, t), SUBNORMAL, MOST))
    decode = E4M3[s] * g
    xs = x * (ONE / decode)
    code = unsigned_zero(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)


@modelopt("scales are at least 2^-6, as in torchao")
def modelopt_with_normal_floor(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    t = b / (SIX * g)
    s = e4m3(np.clip(np.where(t == 0, ONE, t), NORMAL, MOST))
    decode = E4M3[s] * g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)


@modelopt("a scale has no floor but for tiles of zeros")
def modelopt_without_floor(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    t = b / (SIX * g)
    s = e4m3(np.where(t == 0, ONE, t))
    decode = E4M3[s] * g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)


@modelopt("the scale of a tile of zeros is the smallest, not 1")
def modelopt_zeros_at_the_floor(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    s = e4m3(np.clip(b / (SIX * g), SUBNORMAL, MOST))
    decode = E4M3[s] * g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)


@modelopt("scales beyond 464 are NaN")
def modelopt_without_saturation(_, x, amax):
    g = amax / Q
    b = largest(x, (1, 2))
    t = b / (SIX * g)
    s = unclamped(np.maximum(np.where(t == 0, ONE, t), SUBNORMAL))
    decode = E4M3[s] * g
    xs = x / decode
    code = unsigned_zero(xs)
    return record(b, ONE / g, g, s, decode, xs, code, E2M1[code] * decode)


@wrong("-0 keeps its sign", "modelopt", "compressed_tensors")
def zeros_keep_their_sign(profile, x, amax):
    b = largest(x, (1, 2))
    if profile == "modelopt":
        g = amax / Q
        t = b / (SIX * g)
        s = e4m3(np.clip(np.where(t == 0, ONE, t), SUBNORMAL, MOST))
        globals_, decode = (ONE / g, g), E4M3[s] * g
    else:
        g = ONE / np.maximum(amax, F32(2**-126)) * Q
        g = np.where(np.isfinite(g), g, ONE)
        s = e4m3(g * (b / SIX))
        s = np.where(s == 0, np.uint8(0x20), s)
        globals_, decode = (g, ONE / g), E4M3[s] / g
    xs = x / decode
    code = e2m1(xs)
    return record(b, *globals_, s, decode, xs, code, E2M1[code] * decode)
