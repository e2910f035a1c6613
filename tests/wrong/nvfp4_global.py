"""NVFP4 of Transformer Engine with other global scales, clamps, encode and decode scales."""

import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_parts import E2M1, E4M3, F32, FLT_MAX, TE, e2m1, e4m3, largest, record, registrar

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
SIX, SIXTH, Q, ONE = F32(6), F32(1 / 6), F32(2688), F32(1)


def scale(profile, b, s_enc):
    """Return the codes of scales, computed in the order of either release."""
    return e4m3(b / SIX * s_enc if profile == "te_2_13" else b * (s_enc * SIXTH))


def s_enc_of(amax):
    """Return the global encode scale."""
    s_enc = np.minimum(Q / amax, FLT_MAX)
    return np.where((amax == 0) | (s_enc == 0), ONE, s_enc)


@wrong("encode is (1 / s) * (1 / S_dec)", *TE)
def encode_from_two_reciprocals(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    encode = np.minimum((ONE / E4M3[s]) * (ONE / s_dec), FLT_MAX)
    decode = E4M3[s] * s_dec
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("encode is S_enc / s", *TE)
def encode_as_quotient(profile, x, amax):
    s_enc = s_enc_of(amax)
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    encode = np.minimum(s_enc / E4M3[s], FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("elements are divided by s * S_dec", *TE)
def divided_by_decode(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    xs = np.clip(x / decode, -FLT_MAX, FLT_MAX)
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode)


@wrong("elements are multiplied by S_enc and divided by s, without encode", *TE)
def scaled_in_two_steps(profile, x, amax):
    s_enc = s_enc_of(amax)
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    xs = x * s_enc / E4M3[s]
    code = e2m1(xs)
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode)


@wrong("y is (decoded * s) * S_dec, as an epilogue multiplies", *TE)
def y_in_an_epilogue(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    v = E4M3[s]
    encode = np.minimum(ONE / (v * s_dec), FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    y = E2M1[code] * v * s_dec
    return record(b, s_enc, s_dec, s, v * s_dec, xs, code, y, encode)


@wrong("y is the product in binary64, rounded once", *TE)
def y_in_float64(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    y = E2M1.astype(np.float64)[code] * E4M3.astype(np.float64)[s] * s_dec.astype(np.float64)
    return record(b, s_enc, s_dec, s, decode, xs, code, y.astype(F32), encode)


@wrong("S_dec is amax / 2688", *TE)
def decode_scale_from_amax(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = np.where(amax == 0, ONE, amax / Q)
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


def approximate(a):
    """Return 1 / a from 16 bits, by one step of Newton that rounds after each operation."""
    seed = ((ONE / a).view(np.uint32) & np.uint32(0xFFFFFF00)).view(F32)
    better = seed * (F32(2) - a * seed)
    return np.where(np.isfinite(better), better, ONE / a)


@wrong("reciprocals are approximate, with one step of Newton", *TE)
def reciprocals_by_newton(profile, x, amax):
    s_enc = np.minimum(Q * approximate(amax), FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    s_dec = approximate(s_enc)
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(approximate(decode), FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("nothing is clamped to FLT_MAX", *TE)
def no_clamps(profile, x, amax):
    s_enc = np.where(amax == 0, ONE, Q / amax)
    s_enc = np.where(s_enc == 0, ONE, s_enc)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = ONE / decode
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("a tile whose scale is 0 is stored as zeros: its encode is 0", *TE)
def encode_zero_for_scale_zero(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.where(s == 0, F32(0), np.minimum(ONE / decode, FLT_MAX))
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("a scale of 0 is replaced by 1", *TE)
def scale_zero_is_one(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    s[s == 0] = 0x38
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("scales are at least 2^-9, as in Model Optimizer", *TE)
def scale_with_subnormal_floor(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = np.maximum(scale(profile, b, s_enc), np.uint8(1))
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("scales are at least 2^-6, as in torchao", *TE)
def scale_with_normal_floor(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = np.maximum(scale(profile, b, s_enc), np.uint8(8))
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("S_enc is FLT_MAX for a tensor of zeros", *TE)
def zeros_have_the_largest_scale(profile, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc[s_enc == 0] = 1
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("S_enc is 1 for a subnormal amax", *TE)
def subnormal_amax_is_zero(profile, x, amax):
    tiny = amax < F32(2**-126)
    s_enc = np.where(tiny, ONE, s_enc_of(amax))
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("amax is at least 1e-12, as a frame clamps", *TE)
def amax_with_epsilon(profile, x, amax):
    s_enc = np.minimum(Q / np.maximum(amax, F32(1e-12)), FLT_MAX)
    s_enc[s_enc == 0] = 1
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("an infinite amax makes S_enc 0", *TE)
def infinite_amax_is_not_caught(profile, x, amax):
    s_enc = np.where(amax == 0, ONE, np.minimum(Q / amax, FLT_MAX))
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


def flush(a):
    """Return numbers with subnormal ones flushed to zero."""
    return np.where(np.abs(a) < F32(2**-126), np.copysign(F32(0), a), a)


@wrong("subnormal inputs and results are flushed, as -ftz=true has it", *TE)
def flushed(profile, x, amax):
    s_enc = s_enc_of(flush(amax))
    s_dec = flush(ONE / s_enc)
    b = largest(flush(x), (1, 2))
    s = scale(profile, b, s_enc)
    decode = flush(E4M3[s] * s_dec)
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = flush(flush(x) * encode)
    code = e2m1(xs)
    y = flush(E2M1[code] * decode)
    return record(b, s_enc, s_dec, s, decode, xs, code, y, encode)


@wrong("the tile's amax is taken in bfloat16", *TE)
def tile_amax_in_bfloat16(profile, x, amax):
    s_enc = s_enc_of(amax)
    s_dec = ONE / s_enc
    word = largest(x, (1, 2)).view(np.uint32)
    word = word + 0x7FFF + (word >> 16 & 1)
    b = (word & np.uint32(0xFFFF0000)).view(F32)
    s = scale(profile, b, s_enc)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)
