"""NVFP4 of Transformer Engine with the scale of a tile in another order of operations."""

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_parts import (
    E2M1,
    E4M3,
    F32,
    FLT_MAX,
    TE,
    e2m1,
    e4m3,
    largest,
    record,
    registrar,
)

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
NEW = ("te", "te_row")
SIX, SIXTH, Q, ONE = F32(6), F32(1 / 6), F32(2688), F32(1)


@wrong("the scale is (bamax * S_enc) * RN(1/6)", *NEW)
def scale_times_sixth_last(_, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = e4m3(b * s_enc * SIXTH)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is bamax * (S_enc / 6)", *NEW)
def scale_by_quotient_of_tensor(_, x, amax):
    safe = np.where(amax == 0, Q, amax)
    s_enc = np.minimum(Q / safe, FLT_MAX)
    s_enc[s_enc == 0] = 1
    per_six = s_enc / SIX
    b = np.abs(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
    b = b.max((1, 2), keepdims=True)
    s = e4m3(b * per_six)
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    code = e2m1(x * encode)
    return record(b, s_enc, s_dec, s, decode, x * encode, code, E2M1[code] * decode, encode)


@wrong("the scale is (bamax * S_enc) / 6", *TE)
def scale_divided_last(_, x, amax):
    b = largest(x, (1, 2))
    ratio = np.minimum(np.divide(Q, amax), FLT_MAX)
    s_enc = np.where(amax > 0, np.where(ratio > 0, ratio, ONE), ONE)
    scaled_max = b * s_enc
    s = e4m3(scaled_max / SIX)
    s_dec = np.reciprocal(s_enc)
    decode = s_dec * E4M3[s]
    encode = np.minimum(np.reciprocal(decode), FLT_MAX)
    xs = encode * x
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, decode * E2M1[code], encode)


@wrong("the scale is (bamax / 6) * S_enc, as before 2.14", *NEW)
def scale_of_old_release(_, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    b = largest(x, (1, 2))
    s = e4m3(b / SIX * s_enc)
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is bamax * (S_enc * RN(1/6)), as since 2.14", "te_2_13")
def scale_of_new_release(_, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    multiplier = s_enc * SIXTH
    b = largest(x, (1, 2))
    s = e4m3(b * multiplier)
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is (bamax * RN(1/6)) * S_enc, a compiler's division", *TE)
def scale_by_constant_reciprocal(_, x, amax):
    s_enc = np.where(amax == 0, ONE, np.minimum(Q / amax, FLT_MAX))
    s_enc = np.where(s_enc == 0, ONE, s_enc)
    b = largest(x, (1, 2))
    s = e4m3(b * SIXTH * s_enc)
    decode = E4M3[s] * (ONE / s_enc)
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, ONE / s_enc, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is computed in binary64 and rounded at the end", *TE)
def scale_in_float64(_, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    b = largest(x, (1, 2))
    wide = b.astype(np.float64) * s_enc.astype(np.float64) / 6.0
    s = e4m3(wide.astype(F32))
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is bamax / (6 * S_dec), as in other libraries", *TE)
def scale_over_decode_scale(_, x, amax):
    s_enc = np.where(amax == 0, ONE, np.minimum(Q / amax, FLT_MAX))
    s_enc = np.where(s_enc == 0, ONE, s_enc)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = e4m3(b / (SIX * s_dec))
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale is (bamax / amax) * 448, without the global scale", *TE)
def scale_as_share_of_amax(_, x, amax):
    s_enc = np.where(amax == 0, ONE, np.minimum(Q / amax, FLT_MAX))
    s_enc = np.where(s_enc == 0, ONE, s_enc)
    b = largest(x, (1, 2))
    s = e4m3(np.where(amax == 0, F32(0), b / amax) * F32(448))
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("scales are rounded up, so that nothing saturates", *TE)
def scale_rounded_up(profile, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    b = largest(x, (1, 2))
    t = b / SIX * s_enc if profile == "te_2_13" else b * (s_enc * SIXTH)
    s = e4m3(t)
    s = s + ((E4M3[s] < t) & (s < 0x7E)).astype(np.uint8)
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("the scale goes to float16 before e4m3, as an emulated cast does", *TE)
def scale_by_way_of_float16(profile, x, amax):
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    b = largest(x, (1, 2))
    t = b / SIX * s_enc if profile == "te_2_13" else b * (s_enc * SIXTH)
    half = np.minimum(t, F32(448)).astype(np.float16)
    s = half.astype(ml_dtypes.float8_e4m3fn).view(np.uint8) & 0x7F
    s_dec = ONE / s_enc
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("decode is kept above 2^-126, where encode should be kept below FLT_MAX", *TE)
def clamp_on_decode(profile, x, amax):
    s_enc = np.where(amax == 0, ONE, np.minimum(Q / amax, FLT_MAX))
    s_enc = np.where(s_enc == 0, ONE, s_enc)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    s = e4m3(b / SIX * s_enc if profile == "te_2_13" else b * (s_enc * SIXTH))
    decode = np.maximum(E4M3[s] * s_dec, F32(2**-126))
    encode = ONE / decode
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


@wrong("scales are computed in bfloat16, the type of the input", *TE)
def scale_in_bfloat16(_, x, amax):
    narrow = ml_dtypes.bfloat16
    s_enc = np.where(amax == 0, ONE, np.minimum(Q / amax, FLT_MAX))
    s_enc = np.where(s_enc == 0, ONE, s_enc)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    t = b.astype(narrow) / narrow(6) * s_enc.astype(narrow)
    s = e4m3(t.astype(F32))
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)
