"""Single numbers quantized and restored, and their errors, as kernels fuse and shorten steps."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import (
    CASTS,
    LARGEST,
    Task,
    by_format,
    dispatch,
    errors,
    floats,
    from_code,
    lost,
    pattern,
    to_code,
)
from wrong.scaling import right

F32, F64, U32 = np.float32, np.float64, np.uint32
ONE = F32(1)


def element(function):
    """Return the entry of a kernel that computes code and y of scaled numbers; also of tensors."""

    def quantize_element(parameters, inputs):
        code, y = function(floats(inputs["x"]), floats(inputs["scale"]), parameters["format"])
        return {"code": code, "y": pattern(y)}

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        amax = task.amax()
        groups = task.of_blocks(task.amax_of_groups(amax))
        _, _, scale = right(task.scaling, task.largest, groups, amax)
        code, y = function(task.x, task.of_elements(scale), task.name)
        u, counts = errors(task.x, y)[2:]
        gone = lost(task.x, y)
        units = {"sum": u, "nonzero": counts, "nonfinite": gone}
        sums = {k: task.blocks.reduce(np.add, v.astype(np.uint64)) for k, v in units.items()}
        return task.answer(scale=scale, code=code, y=y, **sums)

    return dispatch(quantize_element=quantize_element, quantize=quantize, quantize_block=quantize)


def parts(scale):
    """Return significand and exponent of a scale that is not subnormal."""
    bits = scale.view(U32)
    return (bits & U32(0x7FFFFF) | U32(0x3F800000)).view(F32), (bits >> 23).astype(int) - 127


def from_binary64(wide, name):
    """Return codes of binary64 numbers, rounded once: by rounding to odd in binary32."""
    near = wide.astype(F32)
    off = np.isfinite(near) & (near != wide)
    below = np.where(np.abs(near) > np.abs(wide), near.view(U32) - U32(1), near.view(U32))
    return to_code(np.where(off, below | U32(1), near.view(U32)).view(F32), name)


def wide_division(x, scale, name):
    """Multiply and divide in binary64, and round each to binary32: the right one."""
    code = to_code((x.astype(F64) * scale).astype(F32), name)
    return code, (from_code(code, name).astype(F64) / scale).astype(F32)


def wide_reciprocal(x, scale, name):
    """Multiply by a reciprocal in binary64, which is close enough for so few bits: right."""
    code = to_code(x * scale, name)
    return code, (from_code(code, name) * (1 / scale.astype(F64))).astype(F32)


def power_first(x, scale, name):
    """Multiply by the scale's power of two before its significand, which changes no code."""
    one, e = parts(scale)
    code = to_code(np.ldexp(x, e) * one, name)
    return code, from_code(code, name) / scale


def fused(x, scale, name):
    """Encode the product as it is, not rounded to binary32."""
    code = from_binary64(x.astype(F64) * scale, name)
    return code, from_code(code, name) / scale


def reciprocal(x, scale, name):
    code = to_code(x * scale, name)
    return code, from_code(code, name) * (ONE / scale)


def divided(x, scale, name):
    """Divide by the decode scale that is stored, and multiply by it."""
    decode = ONE / scale
    code = to_code(x / decode, name)
    return code, from_code(code, name) / scale


def rcp_with_residual(x, scale, name):
    """Divide by a reciprocal and a residual, as compilers do, without care for subnormals."""
    code = to_code(x * scale, name)
    v, inverse = from_code(code, name), ONE / scale
    y = v * inverse
    residual = (v.astype(F64) - y.astype(F64) * scale).astype(F32)
    done = (v == 0) | ~np.isfinite(y)
    return code, np.where(done, y, (y.astype(F64) + residual * inverse).astype(F32))


def significand_first(x, scale, name):
    """Multiply by the significand, which may overflow, then by the power of two."""
    one, e = parts(scale)
    code = to_code(np.ldexp(x * one, e), name)
    return code, from_code(code, name) / scale


def quotient_then_power(x, scale, name):
    """Divide by the significand, then by the power of two: y is rounded twice if subnormal."""
    one, e = parts(scale)
    code = to_code(x * scale, name)
    return code, np.ldexp(from_code(code, name) / one, -e)


def power_then_quotient(x, scale, name):
    """Divide by the power of two, which may overflow, then by the significand."""
    one, e = parts(scale)
    code = to_code(x * scale, name)
    return code, np.ldexp(from_code(code, name), -e) / one


def flushed(x, scale, name):
    """Flush y, but not xs."""
    code = to_code(x * scale, name)
    y = from_code(code, name) / scale
    return code, np.where(np.abs(y) < F32(2.0**-126), np.copysign(F32(0), y), y)


def flushed_input(x, scale, name):
    """Flush x, but not y."""
    x = np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x)
    code = to_code(x * scale, name)
    return code, from_code(code, name) / scale


def added_zero(x, scale, name):
    """Multiply and add 0, which loses the sign of a zero."""
    code = to_code(x * scale + F32(0), name)
    return code, from_code(code, name) / scale


def clamped_first(x, scale, name):
    """Clamp x to the range that the scale allows, instead of xs: the codes are the same."""
    limit = F32(LARGEST[name]) / scale
    code = to_code(np.clip(x, -limit, limit) * scale, name)
    return code, from_code(code, name) / scale


def cast_alone(x, scale, name):
    """Rely on the scale against overflow, and on the NaN that the cast makes."""
    code = (x * scale).astype(CASTS[name]).view(np.uint8)
    return code, from_code(code, name) / scale


def nan_of_one_bit(x, scale, name):
    """Return the NaN of e5m2 that conversions of ml_dtypes and of NumPy make."""
    code = to_code(x * scale, name)
    return np.where(np.isnan(x * scale), np.uint8(0x7E), code), from_code(code, name) / scale


def nan_is_negative(x, scale, name):
    """Convert the NaN that x86 makes, which is negative."""
    code = to_code(x * scale, name)
    return np.where(np.isnan(x * scale), np.uint8(0xFF), code), from_code(code, name) / scale


def zero_from_sign(x, scale, name):
    """Multiply the magnitude, and put the sign on by a product with sign(x)."""
    code = to_code(np.abs(x) * scale, name)
    y = np.sign(x) * (from_code(code, name) / scale)
    return to_code(y * scale, name), y


def bfloat16_scale(x, scale, name):
    """Round the scale to the ten bits of TF32, as a tensor core does."""
    tf32 = ((scale.view(U32) + U32(0x1000)) & U32(0xFFFFE000)).view(F32)
    code = to_code(x * tf32, name)
    return code, from_code(code, name) / tf32


_FUSED = "the product is not rounded before it is encoded"
KERNELS = [
    Kernel("wide_division", element(wide_division)),
    Kernel("wide_reciprocal", element(wide_reciprocal)),
    Kernel("power_first", element(power_first)),
    Kernel("clamped_first", element(clamped_first)),
    Kernel("fused", element(fused), _FUSED),
    *by_format(Kernel("fused", element(fused), _FUSED), ("e2m1", "e2m3", "e3m2")),
    *by_format(Kernel("nan_of_one_bit", element(nan_of_one_bit), "a NaN is 0x7E"), ("e5m2",)),
    *by_format(
        Kernel("nan_is_negative", element(nan_is_negative), "a NaN is 0xFF"), ("e4m3", "e5m2")
    ),
    Kernel("reciprocal", element(reciprocal), "y is v * RN32(1 / scale)"),
    Kernel("divided", element(divided), "xs is x / RN32(1 / scale)"),
    *by_format(
        Kernel(
            "rcp_with_residual",
            element(rcp_with_residual),
            "wrong where 1 / scale is subnormal",
        )
    ),
    *by_format(
        Kernel(
            "significand_first",
            element(significand_first),
            "x * (1 + m / 2^23) overflows",
        )
    ),
    *by_format(
        Kernel(
            "quotient_then_power",
            element(quotient_then_power),
            "a subnormal y is rounded twice",
        )
    ),
    *by_format(Kernel("power_then_quotient", element(power_then_quotient), "v / 2^e overflows")),
    Kernel("flushed_y", element(flushed), "a subnormal y is flushed"),
    Kernel("flushed_x", element(flushed_input), "a subnormal x is flushed"),
    Kernel("added_zero", element(added_zero), "-0 becomes 0"),
    Kernel("cast_alone", element(cast_alone), "the cast does not saturate"),
    Kernel("zero_from_sign", element(zero_from_sign), "-0 becomes 0, and y is encoded again"),
    Kernel("scale_in_tf32", element(bfloat16_scale), "the scale has 11 significant bits"),
]
