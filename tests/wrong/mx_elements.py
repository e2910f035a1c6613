"""MX with a mistake in the elements, or in their values."""

import ml_dtypes
import numpy as np

from wrong.microscaling import (
    LARGEST,
    NOT_A_NUMBER,
    Register,
    decoded,
    encoded,
    f32,
    flushed,
    in_blocks,
    magnitude_bits,
    power,
    spread,
)
from wrong.mx_right import scale_codes

KERNELS = Register()
mx = KERNELS.mx
NO_XS = {"mx_large": "It has no field xs, and the code of a subnormal xs is a zero of its sign."}
FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def scales_of(x, fmt, rule, k):
    """Return the codes of scales, and the code of the scale of each number."""
    scale = scale_codes(magnitude_bits(in_blocks(x, k)).max(axis=2), fmt, rule)
    return scale, spread(scale.astype(np.int64), k, x.shape[1])


def factors(code):
    """Return the factors that scale numbers, and the factors that restore them."""
    lost = code == 255
    up, down = power(127 - np.minimum(code, 254)), power(np.minimum(code, 254) - 127)
    return np.where(lost, f32(np.nan), up), np.where(lost, f32(np.nan), down)


@mx("code_as_exponent_field", "The scale is the code as an exponent field, 0 for code 0.")
def _code_as_exponent_field(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    restoring = np.where(code == 255, np.uint32(0x7FC00000), (code << 23).astype(np.uint32))
    xs = x * factors(code)[0]
    codes = encoded(xs, fmt)
    return scale, xs, codes, decoded(codes, fmt) * restoring.view(np.float32)


@mx(
    "inverse_as_exponent_field",
    "Numbers are multiplied by the bits (254 - c) << 23, 0 for code 254.",
    rules=("ceil", "even"),
    formats=("int8_mx",),
)
def _inverse_as_exponent_field(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    fields = np.where(code == 255, 0x7FC00000, (254 - code) << 23).astype(np.uint32)
    xs = x * fields.view(np.float32)
    codes = encoded(xs, fmt)
    return scale, xs, codes, decoded(codes, fmt) * factors(code)[1]


@mx("division_by_flushed_scale", "Numbers are divided by a scale that 2^-127 flushes to 0.")
def _division_by_flushed_scale(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    descale = flushed(factors(code)[1])
    xs = x / descale
    codes = encoded(xs, fmt)
    return scale, xs, codes, decoded(codes, fmt) * descale


@mx("xs_flushed", "A subnormal xs is flushed to zero.", unseen=NO_XS)
def _xs_flushed(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    xs = flushed(x * up)
    codes = encoded(xs, fmt)
    return scale, xs, codes, decoded(codes, fmt) * down


@mx("y_flushed", "A subnormal y is flushed to zero.")
def _y_flushed(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    codes = encoded(x * up, fmt)
    return scale, x * up, codes, flushed(decoded(codes, fmt) * down)


@mx("inputs_flushed", "Subnormal inputs are taken for zeros.")
def _inputs_flushed(x, fmt, rule, k):
    near = flushed(x)
    scale, code = scales_of(near, fmt, rule, k)
    up, down = factors(code)
    codes = encoded(near * up, fmt)
    return scale, near * up, codes, decoded(codes, fmt) * down


@mx(
    "products_in_bf16",
    "Numbers are scaled in bf16, which has fewer subnormal numbers than binary32.",
    sources=("bf16",),
    unseen=NO_XS,
)
def _products_in_bf16(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    short = (x * up).astype(ml_dtypes.bfloat16).astype(np.float32)
    codes = encoded(short, fmt)
    return scale, short, codes, decoded(codes, fmt) * down


@mx("restored_in_bf16", "y is a bf16 number, which not every y is.")
def _restored_in_bf16(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    codes = encoded(x * up, fmt)
    y = decoded(codes, fmt).astype(ml_dtypes.bfloat16) * down.astype(ml_dtypes.bfloat16)
    return scale, x * up, codes, y.astype(np.float32)


@mx("nearest_by_distance", "Of two e2m1 numbers as near, the smaller is taken.", formats=("e2m1",))
def _nearest_by_distance(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    xs = x * up
    wide = np.minimum(np.abs(xs.astype(np.float64)), 6)
    nearest = np.abs(wide[..., None] - FOUR_BITS).argmin(axis=-1)
    codes = np.where(code == 255, 7, nearest | np.signbit(xs) << 3).astype(np.uint8)
    return scale, xs, codes, decoded(codes, fmt) * down


@mx("thresholds_of_four_bits", "Each midpoint of e2m1 goes up.", formats=("e2m1",))
def _thresholds_of_four_bits(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    xs = x * up
    steps = np.digitize(np.abs(xs), [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    codes = np.where(code == 255, 7, steps | np.signbit(xs) << 3).astype(np.uint8)
    return scale, xs, codes, decoded(codes, fmt) * down


@mx("one_tie_of_four_bits", "The midpoint 5 of e2m1 goes to 6.", formats=("e2m1",))
def _one_tie_of_four_bits(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    a = np.abs(x * up)
    steps = (a > 0.25).astype(int) + (a >= 0.75) + (a > 1.25) + (a >= 1.75)
    steps += (a > 2.5).astype(int) + (a >= 3.5) + (a >= 5)
    codes = np.where(code == 255, 7, steps | np.signbit(x) << 3).astype(np.uint8)
    return scale, x * up, codes, decoded(codes, fmt) * down


@mx("cast_without_saturation", "Numbers beyond e4m3 are NaN.", rules=("floor",), formats=("e4m3",))
def _cast_without_saturation(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    near = (x * up).astype(ml_dtypes.float8_e4m3fn)
    codes = np.where(code == 255, np.uint8(0x7F), near.view(np.uint8))
    return scale, x * up, codes, decoded(codes, fmt) * down


@mx("clamped_by_fmin", "fmin and fmax saturate NaN, and not only numbers.")
def _clamped_by_fmin(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    most = f32(LARGEST[fmt])
    codes = encoded(np.fmin(np.fmax(x * up, -most), most), fmt)
    return scale, x * up, codes, decoded(codes, fmt) * down


@mx(
    "sign_by_comparison",
    "The sign of a code is x < 0, so that -0 loses its sign.",
    formats=tuple(LARGEST)[:5],
)
def _sign_by_comparison(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    top = {"e4m3": 0x80, "e5m2": 0x80, "e2m3": 0x20, "e3m2": 0x20, "e2m1": 8}[fmt]
    codes = encoded(np.abs(x * up), fmt) | np.where((x < 0) & (code < 255), np.uint8(top), 0)
    return scale, x * up, codes.astype(np.uint8), decoded(codes.astype(np.uint8), fmt) * down


@mx("through_f16", "Elements are rounded to f16 before they are rounded to their format.")
def _through_f16(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    codes = encoded((x * up).astype(np.float16).astype(np.float32), fmt)
    return scale, x * up, codes, decoded(codes, fmt) * down


@mx("through_bf16", "Elements are rounded to bf16 before they are rounded.", sources=("f32", "f16"))
def _through_bf16(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    codes = encoded((x * up).astype(ml_dtypes.bfloat16).astype(np.float32), fmt)
    return scale, x * up, codes, decoded(codes, fmt) * down


@mx(
    "elements_flushed",
    "Subnormal elements of the format are written as zeros.",
    formats=tuple(LARGEST)[:5],
)
def _elements_flushed(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    codes = encoded(x * up, fmt)
    least = {"e4m3": 2.0**-6, "e5m2": 2.0**-14, "e2m3": 1.0, "e3m2": 0.25, "e2m1": 1.0}[fmt]
    small = np.abs(decoded(codes, fmt)) < least
    codes = np.where(small, encoded(np.copysign(f32(0), x), fmt), codes)
    return scale, x * up, codes, decoded(codes, fmt) * down


@mx("nan_scale_as_a_power", "A scale of 0xFF is used as 2^128.")
def _nan_scale_as_a_power(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    xs = x * power(127 - code)
    codes = np.where(np.isnan(x), np.uint8(NOT_A_NUMBER[fmt]), encoded(xs, fmt))
    return scale, xs, codes, decoded(codes, fmt) * power(code - 127)


@mx("half_away", "Elements are rounded by floor(|v| + 1/2), with ties away from zero.")
def _half_away(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    xs = x * up
    behind = {"e4m3": (3, -6), "e5m2": (2, -14), "e2m3": (3, 0), "e3m2": (2, -2), "e2m1": (1, 0)}
    mantissa, least = behind.get(fmt, (6, 0))
    wide = np.where(np.isnan(xs), 0, np.minimum(np.abs(xs.astype(np.float64)), LARGEST[fmt]))
    private = np.maximum(np.frexp(wide)[1] - 1, least)
    near = np.floor(np.ldexp(wide, mantissa - private) + 0.5)
    near = np.copysign(np.ldexp(near, private - mantissa), xs).astype(np.float32)
    codes = encoded(np.where(np.isnan(xs), xs, near), fmt)
    return scale, xs, codes, decoded(codes, fmt) * down
