"""Decoders and conversions of libraries, as found in ports, each with its mistake."""

import ml_dtypes
import numpy as np

from wrong.conversions import Layout, encode_preset
from wrong.kernel import Kernel
from wrong.porting import CASTS, dispatch, floats, pattern

F32, U32 = np.float32, np.uint32
_CASTS = CASTS | {
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "e4m3_ieee": ml_dtypes.float8_e4m3,
    "e3m4": ml_dtypes.float8_e3m4,
}


def decoder(function, *formats):
    """Return the entry of a kernel that has the values of codes, as numbers or their bits."""

    def decode(parameters, inputs):
        name = parameters["format"]
        if name not in formats:
            return None
        value = function(inputs["code"], name)
        return {"value": value if value.dtype == U32 else pattern(value)}

    return dispatch(decode=decode)


def by_cast(code, name):
    return code.view(_CASTS[name]).astype(F32)


def payload_of_the_cast(code, name):
    """Shift bits upward, so that each NaN keeps its payload."""
    if name == "e5m2":
        code, name = code.astype(np.uint16) << np.uint16(8), "f16"
    if name == "f16":
        return code.view(np.float16).astype(F32).view(U32)
    return code.astype(U32) << U32(16)


def bits_as_exponent(code, _):
    """Shift e8m0 into the exponent field."""
    return floats(code.astype(U32) << U32(23))


def power_of_int8(code, _):
    """Use ldexp by the code less 127, without a NaN."""
    return np.ldexp(F32(1), code.astype(np.int32) - 127)


def multiplied(code, _):
    """Shift e4m3 to binary32 and multiply by 2^120, on a processor that flushes."""
    magnitude = floats((code & np.uint8(0x7F)).astype(U32) << U32(20))
    magnitude = np.where(magnitude < F32(2.0**-126), F32(0), magnitude)
    value = np.copysign(magnitude * F32(2.0**120), np.where(code >> 7, F32(-1), F32(1)))
    return np.where(code & 0x7F == 0x7F, np.nan, value).astype(F32)


def no_nan(code, _):
    """Shift and multiply without a test for NaN, which becomes 480."""
    magnitude = floats((code & np.uint8(0x7F)).astype(U32) << U32(20)) * F32(2.0**120)
    return np.copysign(magnitude, np.where(code >> 7, F32(-1), F32(1)))


def no_subnormals(code, name):
    """Add an implicit one to every number."""
    layout = Layout.table[name]
    e = (code & (layout.top - 1)).astype(np.int32) >> layout.m
    m = code & ((1 << layout.m) - 1)
    value = np.ldexp(F32(1) + m.astype(F32) / (1 << layout.m), e - layout.bias)
    value = np.where(code & (layout.top - 1), value, F32(0))
    return np.copysign(value, np.where(code & layout.top, F32(-1), F32(1)))


def subnormal_exponent(code, name):
    """Give subnormal numbers the exponent -B."""
    layout = Layout.table[name]
    e = (code & (layout.top - 1)).astype(np.int32) >> layout.m
    m = (code & ((1 << layout.m) - 1)).astype(F32) / (1 << layout.m)
    value = np.ldexp(np.where(e > 0, 1 + m, m), e - layout.bias)
    return np.copysign(value, np.where(code & layout.top, F32(-1), F32(1))).astype(F32)


def subtracted(code, _):
    """Negate by subtracting from zero."""
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], F32)[code & 7]
    return np.where(code & 8, F32(0) - values, values)


def infinite_like_ieee(code, name):
    """Read e4m3 as in IEEE 754, with infinities from 0x78 on."""
    return code.view(_CASTS["e4m3_ieee" if name == "e4m3" else name]).astype(F32)


def biased_fnuz(code, name):
    """Read MI300's numbers as OCP's, halved."""
    return code.view(_CASTS[name.removesuffix("fnuz")]).astype(F32) / 2


def sign_and_magnitude(code, _):
    """Read INT8 with a sign bit."""
    return np.where(code >> 7, -(code & 127).astype(F32), code & 127).astype(F32) / 64


def flushed(code, _):
    """Copy binary32 numbers on a processor that flushes."""
    x = floats(code)
    return np.where(np.abs(x) < F32(2.0**-126), np.copysign(F32(0), x), x)


def casts(parameters, inputs):
    """Encode for the profile ml_dtypes with the casts of ml_dtypes."""
    if parameters["preset"] != "ml_dtypes":
        return None
    with np.errstate(all="ignore"):
        codes = floats(inputs["x"]).astype(_CASTS[parameters["format"]])
    return {"code": codes.view(Layout.table[parameters["format"]].dtype)}


def profile(function, *names):
    """Return the entry of a kernel for a library's conversions to some formats."""

    def answer(parameters, inputs):
        if (parameters["preset"], parameters["format"]) not in names:
            return None
        x, name = inputs["x"], parameters["format"]
        return {"code": function(floats(x), name).astype(Layout.table[name].dtype)}

    return dispatch(encode_preset=answer)


def cast(x, name):
    return x.astype(_CASTS[name]).view(Layout.table[name].dtype)


def swapped(x, name):
    """Take CUDA's conversion instead of torch's: CUDA has one NaN."""
    asked = {"format": name, "source": "f32", "preset": "cuda"}
    return encode_preset(asked, {"x": x.view(U32)})["code"]


def nearest_power(x, _):
    """Add half to the bits and shift, also where the exponent field is 0."""
    bits = x.view(U32) & U32(0x7FFFFFFF)
    code = np.minimum((bits + U32(0x400000)) >> 23, 255)
    return np.where(np.signbit(x) | (bits == 0) | (bits > 0x7F800000), 255, code)


def ceil_of_log2f(x, _):
    """Encode CUDA's e8m0 by a logarithm in binary32."""
    log = np.ceil(np.log2(np.abs(x).astype(np.float64)).astype(F32))
    code = np.where(np.isinf(x), 254, np.clip(log, -127, 127) + 127)
    return np.where(np.isnan(x), 255, code)


def next_power(x, _):
    """Encode CUDA's e8m0 from the exponent field, one more if there is a mantissa."""
    bits = x.view(U32) & U32(0x7FFFFFFF)
    code = np.minimum((bits >> 23) + ((bits & U32(0x7FFFFF)) != 0), 254)
    return np.where(bits > 0x7F800000, 255, code)


def added_and_cut(x, _):
    """Round to bfloat16 by one addition, NaN or not."""
    bits = x.view(U32)
    return (bits + U32(0x7FFF) + (bits >> 16 & 1)) >> 16


def split_by_veltkamp(x, _):
    """Round to bfloat16 by two multiplications, with the NaN of CUDA."""
    high = x * F32(65537)
    rounded = high - (high - x)
    code = rounded.view(U32) >> 16
    return np.where(np.isnan(x), 0x7FFF, np.where(np.isinf(x), x.view(U32) >> 16, code))


KERNELS = [
    Kernel("decode_by_cast", decoder(by_cast, *_CASTS)),
    Kernel("ml_dtypes_itself", dispatch(encode_preset=casts)),
    Kernel("payload", decoder(payload_of_the_cast, "e5m2", "f16", "bf16"), "NaN is not one"),
    Kernel("bits_as_exponent", decoder(bits_as_exponent, "e8m0"), "0 is 0, and 255 infinity"),
    Kernel("power_of_int8", decoder(power_of_int8, "e8m0"), "255 is infinity"),
    Kernel("multiplied_ftz", decoder(multiplied, "e4m3"), "subnormal numbers are flushed"),
    Kernel("no_nan", decoder(no_nan, "e4m3"), "NaN is 480"),
    Kernel("no_subnormals", decoder(no_subnormals, "e2m1", "e2m3", "e3m2"), "none is subnormal"),
    Kernel("exponent_of_subnormals", decoder(subnormal_exponent, "e2m1", "e3m2"), "-B, not 1 - B"),
    Kernel("subtracted", decoder(subtracted, "e2m1"), "-0 is 0"),
    Kernel("infinite_like_ieee", decoder(infinite_like_ieee, "e4m3"), "256 and above is no number"),
    Kernel("biased_fnuz", decoder(biased_fnuz, "e4m3fnuz", "e5m2fnuz"), "OCP's special codes"),
    Kernel("sign_and_magnitude", decoder(sign_and_magnitude, "int8_mx"), "not two's complement"),
    Kernel("flushed_decode", decoder(flushed, "f32"), "subnormal numbers are flushed"),
    Kernel(
        "torch_by_ml_dtypes",
        profile(cast, ("torch", "e4m3"), ("torch", "e5m2")),
        "overflow in e4m3 and NaN in e5m2 are those of ml_dtypes",
    ),
    Kernel("torch_as_cuda", profile(swapped, ("torch", "e4m3"), ("torch", "e5m2")), "one NaN"),
    Kernel(
        "nearest_power_of_bits",
        profile(nearest_power, ("ml_dtypes", "e8m0")),
        "2^-127 becomes 2^-126",
    ),
    Kernel("e8m0_log2f", profile(ceil_of_log2f, ("cuda", "e8m0")), "log2f rounds to an integer"),
    Kernel("next_power", profile(next_power, ("cuda", "e8m0")), "below 2^-127 the code is 1"),
    Kernel("added_and_cut", profile(added_and_cut, ("cuda", "bf16")), "a NaN becomes a zero"),
    Kernel("veltkamp", profile(split_by_veltkamp, ("cuda", "bf16")), "the product may overflow"),
]
