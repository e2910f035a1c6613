"""MX with a mistake in the elements of int8_mx."""

import numpy as np

from wrong.microscaling import Register, f32
from wrong.mx_elements import factors, scales_of

KERNELS = Register()
mx = KERNELS.mx


@mx("integers_down_to_minus_128", "int8_mx saturates at -128.", formats=("int8_mx",))
def _integers_down_to_minus_128(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    steps = np.where(code == 255, 0, np.clip(np.rint(x * up * f32(64)), -128, 127))
    whole = steps.astype(np.int8)
    y = whole.astype(np.float32) / f32(64) * down
    return scale, x * up, whole.view(np.uint8), y


@mx(
    "integers_away_from_zero",
    "int8_mx rounds ties away from zero, as roundf does.",
    formats=("int8_mx",),
)
def _integers_away_from_zero(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    xs = x * up
    near = np.copysign(np.floor(np.abs(xs.astype(np.float64)) * 64 + 0.5), xs)
    whole = np.where(code == 255, 0, np.clip(near, -127, 127)).astype(np.int8)
    return scale, xs, whole.view(np.uint8), whole.astype(np.float32) / f32(64) * down


@mx("integers_half_up", "int8_mx rounds by floor(v + 1/2).", formats=("int8_mx",))
def _integers_half_up(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    xs = x * up
    near = np.floor(xs.astype(np.float64) * 64 + 0.5)
    whole = np.where(code == 255, 0, np.clip(near, -127, 127)).astype(np.int8)
    return scale, xs, whole.view(np.uint8), whole.astype(np.float32) / f32(64) * down


@mx("integers_of_nan_saturate", "NaN becomes 127 in int8_mx.", formats=("int8_mx",))
def _integers_of_nan_saturate(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    steps = np.fmax(np.fmin(np.rint(x * up * f32(64)), f32(127)), f32(-127))
    whole = steps.astype(np.int8)
    return scale, x * up, whole.view(np.uint8), whole.astype(np.float32) / f32(64) * down


@mx(
    "integers_keep_minus_zero",
    "y of int8_mx is made from rounded floats, and is -0.",
    formats=("int8_mx",),
)
def _integers_keep_minus_zero(x, fmt, rule, k):
    scale, code = scales_of(x, fmt, rule, k)
    up, down = factors(code)
    near = np.clip(np.rint(x * up * f32(64)), -127, 127)
    whole = np.where(code == 255, 0, near).astype(np.int8)
    return scale, x * up, whole.view(np.uint8), near / f32(64) * down
