"""Encoders to eight and four bits, as libraries write them, each with its mistake."""

import ml_dtypes
import numpy as np

from wrong.conversions import Layout
from wrong.kernel import Kernel
from wrong.porting import CASTS, LARGEST, dispatch, floats, to_code

F32, U32 = np.float32, np.uint32
DEFAULT = {"rounding": "rne", "overflow": "satfinite", "nan": "canonical", "source": "f32"}


def encoder(function, formats, **settings):
    """Return the entry of a kernel for some formats and one setting."""
    settings = DEFAULT | settings

    def encode(parameters, inputs):
        asked = {name: parameters[name] for name in settings}
        if asked != settings or parameters["format"] not in formats:
            return None
        x = inputs["x"].view({8: np.float64, 4: F32, 2: np.uint16}[inputs["x"].itemsize])
        name = parameters["format"]
        return {"code": function(x, name).astype(Layout.table[name].dtype)}

    return dispatch(encode=encode)


def saturated_c10(x, _):
    """Return c10's bits, with its test for 480 made to saturate."""
    bits = x.view(U32)
    sign, bits = bits >> 24 & 0x80, bits & 0x7FFFFFFF
    denormal = (bits.view(F32) + floats(U32(141 << 23))).view(U32) - U32(141 << 23)
    odd = bits >> 20 & 1
    normal = (bits - U32(120 << 23) + U32(0x7FFFF) + odd) >> 20
    code = np.where(bits < 121 << 23, denormal, normal)
    code = np.where(bits >= 1087 << 20, np.where(bits > 0x7F800000, 0x7F, 0x7E), code)
    return np.where(bits > 0x7F800000, 0x7F, code | sign)


def through_half(x, name):
    return to_code(x.astype(np.float16).astype(F32), name)


def through_binary32(x, name):
    return to_code(x.astype(F32), name)


def high_word(x, name):
    """Look at the upper half of a binary64 number alone."""
    bits = x.view(np.uint64) & np.uint64(0xFFFFFFFF << 32)
    return to_code(bits.view(np.float64).astype(F32), name)


def clamped_with_fmax(x, name):
    kept = np.fmax(np.fmin(x, F32(LARGEST[name])), F32(-LARGEST[name]))
    return kept.astype(CASTS[name]).view(np.uint8)


def nan_of_the_cast(x, name):
    return np.clip(x, -LARGEST[name], LARGEST[name]).astype(CASTS[name]).view(np.uint8)


def sign_by_comparison(x, name):
    return to_code(np.abs(x), name) | np.where(x < 0, 0x80, 0)


def _magnitudes(name):
    codes = np.arange(Layout.table[name].largest + 1, dtype=np.uint8)
    return codes.view(CASTS[name]).astype(F32)


def nearest_in_a_table(x, name):
    """Search among the midpoints, where every tie goes down."""
    values = _magnitudes(name)
    middles = (values[1:] + values[:-1]) / 2
    code = np.searchsorted(middles, np.abs(x), side="left")
    top = Layout.table[name].top
    return np.where(np.isnan(x), Layout.table[name].nan, code | np.signbit(x) * top)


def argmin_of_distances(x, name):
    """Take the first of the nearest values, in binary32."""
    values = _magnitudes(name)
    code = np.argmin(np.abs(np.abs(x)[:, None] - values), axis=1)
    top = Layout.table[name].top
    return np.where(np.isnan(x), top - 1, code | np.signbit(x) * top)


def ladder(x, _):
    """Compare with thresholds of e2m1, one by a comparison that is not strict."""
    a = np.abs(x)
    code = (a > 0.25).astype(int) + (a >= 0.75) + (a > 1.25) + (a >= 1.75) + (a >= 2.5)
    code += (a >= 3.5).astype(int) + (a > 5)
    return np.where(np.isnan(x), 7, code | np.signbit(x) << 3)


def steps(x, name):
    """Divide by the unit in the last place and round, all of it exact: the right one."""
    layout = Layout.table[name]
    _, e = np.frexp(x)
    unit = np.maximum(e - 1, 1 - layout.bias) - layout.m
    return to_code(np.ldexp(np.rint(np.ldexp(x, -unit)), unit), name)


def added_half(x, name):
    """Round to nearest, ties away, as floor(x + 0.5)."""
    layout = Layout.table[name]
    _, e = np.frexp(x)
    unit = np.maximum(e - 1, 1 - layout.bias) - layout.m
    steps = np.floor(np.ldexp(np.abs(x), -unit) + F32(0.5))
    return to_code(np.copysign(np.ldexp(steps, unit), x), name)


def magnitude_too_early(x, name):
    """Judge overflow before rounding."""
    layout = Layout.table[name]
    over = np.abs(x) > F32(LARGEST[name])
    code = to_code(x, name) & (layout.top - 1)
    code = np.where(np.isnan(x), layout.nan, np.where(over, layout.infinity, code))
    return np.where(np.isnan(x), code, code | np.signbit(x) * layout.top)


def tie_overflows(x, name):
    """Overflow from the midpoint of the largest number and the next number on."""
    layout = Layout.table[name]
    limit = LARGEST[name] * (1 + 2.0 ** (-layout.m - 1) / (2 - 2.0 ** (1 - layout.m)))
    limit = {"e4m3": 464.0, "e5m2": 61440.0}.get(name, limit)
    code = to_code(x, name) & (layout.top - 1)
    code = np.where(np.abs(x) >= limit, layout.infinity, code)
    code = np.where(np.isnan(x), layout.nan, code | np.signbit(x) * layout.top)
    return np.where(np.isnan(x), layout.nan, code)


def early_zero(x, name):
    """Return zero below the smallest subnormal number, even above half of it."""
    layout = Layout.table[name]
    small = np.abs(x) < F32(2.0) ** (1 - layout.bias - layout.m)
    return np.where(small, np.signbit(x) * layout.top, to_code(x, name))


def flushed_normal(x, name):
    """Decide before rounding that a number is subnormal, and flush it."""
    layout = Layout.table[name]
    small = np.abs(x) < F32(2.0) ** (1 - layout.bias)
    return np.where(small, np.signbit(x) * layout.top, to_code(x, name))


def flushed_rtp(x, name):
    """Round upward with FTZ, so that a subnormal input is a zero."""
    layout = Layout.table[name]
    kept = np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x)
    _, e = np.frexp(kept)
    unit = np.maximum(e - 1, 1 - layout.bias) - layout.m
    return to_code(np.ldexp(np.ceil(np.ldexp(kept, -unit)), unit), name)


def flushed_half(x, name):
    """Widen binary16 by the bits of normal numbers alone."""
    x = x.view(np.float16).astype(F32)
    x = np.where(np.abs(x) < F32(2.0**-14), np.copysign(F32(0), x), x)
    return steps(x, name)


def converted_first(x, _):
    """Convert to a 32-bit integer, as x86 does, and clamp it then."""
    wide = np.rint(x * F32(64)).astype(np.float64)
    whole = np.where(np.abs(wide) < 2.0**31, wide, -(2.0**31))
    return np.where(np.isnan(x), 0, np.clip(whole, -127, 127).astype(np.int8).view(np.uint8))


def byte_integers(x, _):
    """Encode INT8 elements as in NumPy: -128 is a code, and NaN becomes 0."""
    steps = np.rint(np.nan_to_num(x, nan=0.0) * F32(64))
    return np.clip(steps, -128, 127).astype(np.int8).view(np.uint8)


def negative_zero(x, _):
    """Encode MI300's e4m3, whose NaN is where the negative zero would be."""
    magnitude = np.clip(np.abs(x), 0, 240).astype(ml_dtypes.float8_e4m3fnuz).view(np.uint8)
    return np.where(np.isnan(x), 0x80, magnitude | np.where(np.signbit(x), 0x80, 0))


def rounded_logarithm(x, _):
    """Round e8m0 up by a logarithm in binary64."""
    code = np.clip(np.ceil(np.log2(np.abs(x))), -127, 127) + 127
    return np.where(np.isnan(x), 255, np.where(x == 0, 0, code))


def twice(x, name):
    """Leave binary64 to the casts of ml_dtypes and NumPy, which go through binary32."""
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": F32}[name]
    code = x.astype(F32).astype(kind).view(Layout.table[name].dtype)
    return np.where(np.isnan(x), Layout.table[name].nan, code)


_EIGHT = ("e4m3", "e5m2")
_ALL = tuple(CASTS)
_MAX = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")
KERNELS = [
    Kernel("encode_by_steps", encoder(steps, _ALL)),
    Kernel("saturated_c10", encoder(saturated_c10, ("e4m3",)), "464 to 480 become NaN"),
    Kernel("through_half", encoder(through_half, _ALL), "x is rounded to binary16 first"),
    Kernel("through_half_e2m1", encoder(through_half, ("e2m1",)), "x is rounded to binary16 first"),
    Kernel("through_binary32", encoder(through_binary32, _ALL, source="f64"), "rounded twice"),
    Kernel("high_word", encoder(high_word, _ALL, source="f64"), "the lower 32 bits are not read"),
    Kernel("clamped_with_fmax", encoder(clamped_with_fmax, _MAX), "a NaN becomes the largest"),
    Kernel("nan_of_the_cast", encoder(nan_of_the_cast, _EIGHT), "a NaN keeps its sign"),
    Kernel("sign_by_comparison", encoder(sign_by_comparison, _EIGHT), "-0 loses its sign"),
    Kernel("nearest_in_a_table", encoder(nearest_in_a_table, _MAX), "every tie goes down"),
    Kernel("argmin", encoder(argmin_of_distances, ("e2m1",)), "every tie goes down"),
    Kernel("ladder", encoder(ladder, ("e2m1",)), "2.5 becomes 3"),
    Kernel("added_half", encoder(added_half, _ALL, rounding="rna"), "floor(x + 0.5) in binary32"),
    Kernel(
        "magnitude_too_early",
        encoder(magnitude_too_early, _EIGHT, overflow="ieee"),
        "numbers that round down to the largest one overflow",
    ),
    Kernel("tie_overflows", encoder(tie_overflows, ("e4m3",), overflow="ieee"), "464 overflows"),
    Kernel("early_zero", encoder(early_zero, _EIGHT), "below the smallest number all is zero"),
    Kernel("flushed_normal", encoder(flushed_normal, _EIGHT), "subnormal results are flushed"),
    Kernel("flushed_rtp", encoder(flushed_rtp, _ALL, rounding="rtp"), "subnormal x is flushed"),
    Kernel("converted_first", encoder(converted_first, ("int8_mx",)), "2^25 and above is -127"),
    Kernel(
        "encode_flushed_half", encoder(flushed_half, ("e5m2",), source="f16"), "subnormal x is 0"
    ),
    Kernel("byte_integers", encoder(byte_integers, ("int8_mx",)), "-2 saturates at -128"),
    Kernel(
        "rounded_logarithm",
        encoder(rounded_logarithm, ("e8m0",), source="f64", rounding="rtp"),
        "log2 of a binary64 number just above 2^k is k",
    ),
    Kernel(
        "twice",
        encoder(twice, ("bf16", "f16"), source="f64", overflow="ieee"),
        "x is rounded to binary32 first",
    ),
    Kernel("negative_zero", encoder(negative_zero, ("e4m3fnuz",)), "-0 becomes NaN"),
]
