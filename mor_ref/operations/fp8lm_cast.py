"""fp8lm_cast and fp8lm_recast: a number in a format of FP8-LM, with scales that are given."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.definitions.fp8lm import format_of
from mor_ref.operations.bits import bits32, codes_array, f32_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import bits_of, values_of
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row, bits_at, numbers, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_SIGN = np.uint64(1 << 31)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model."""
    from mor_ref.exact.arithmetic import quotient
    from mor_ref.exact.fp8lm import cast

    fmt = format_of(parameters["format"])
    x, scale = (numbers_of(arrays[name], "f32") for name in ("x", "scale"))
    elements = [cast(number, s, fmt) for number, s in zip(x, scale, strict=True)]
    return {
        "scale_inv": f32_array(quotient(1.0, s) for s in scale),
        "code": codes_array([element.code for element in elements], fmt),
        "y": f32_array(element.y for element in elements),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the public function, for all numbers of a scale at a time."""
    from mor_ref import fp8lm

    x, bits = tensor_of(arrays["x"], "f32"), arrays["scale"]
    code = np.empty(bits.shape, code_dtype(format_of(parameters["format"])))
    by_name = {name: np.empty(bits.shape, np.uint32) for name in ("scale_inv", "y")}
    for scale_bits in np.unique(bits):
        has_scale = bits == scale_bits
        scale = float(tensor_of(np.array([scale_bits], np.uint32), "f32")[0])
        cast = fp8lm.cast(x[has_scale], scale, fmt=parameters["format"])
        code[has_scale], by_name["y"][has_scale] = cast.codes, bits32(cast.y)
        by_name["scale_inv"][has_scale] = bits32(np.array([cast.scale_inv]))[0]
    return {"code": code, **by_name}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.cuda.fp8lm import casts

    return casts(device, arrays["x"], arrays["scale"], format_of(parameters["format"]))


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw powers of two as scales, and numbers at which encoders differ after them."""
    fmt = format_of(parameters["format"])
    words = draws.words(3)
    field = share(bits_at(words, 0, 16), 16, 60) + np.uint64(97)
    field = np.where(bits_at(words, 16, 3) == 0, share(bits_at(words, 0, 16), 16, 256), field)
    fraction = np.where(bits_at(words, 20, 2) == 0, bits_at(words, 24, 23), np.uint64(0))
    scale = field << np.uint64(23) | fraction
    xs = numbers(draws, 0, fmt, "f32")
    with np.errstate(all="ignore"):
        x = np.abs(values_of(xs & ~_SIGN) / np.maximum(values_of(scale), 1e-300))
    is_plain = np.isfinite(x) & (field < 255)
    return {"x": np.where(is_plain, bits_of(np.nan_to_num(x)) | xs & _SIGN, xs), "scale": scale}


def exact_recast(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute both casts with the exact model."""
    from mor_ref.exact.fp8lm import cast, recast

    fmt = format_of(parameters["format"])
    x, scale, shared = (numbers_of(arrays[name], "f32") for name in ("x", "scale", "shared"))
    elements = [recast(*triple, fmt) for triple in zip(x, scale, shared, strict=True)]
    first_codes = [cast(number, s, fmt).code for number, s in zip(x, scale, strict=True)]
    return {
        "code": codes_array(first_codes, fmt),
        "recast": codes_array([element.code for element in elements], fmt),
        "y": f32_array(element.y for element in elements),
    }


def engine_recast(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute both casts as the all-reduce does."""
    from mor_ref.fp8lm import codes_and_y

    fmt = format_of(parameters["format"])
    x, scale, shared = (tensor_of(arrays[name], "f32") for name in ("x", "scale", "shared"))
    code, between = codes_and_y(x, scale, fmt)
    recast, y = codes_and_y(between, shared, fmt)
    return {"code": code, "recast": recast, "y": bits32(y)}


def cuda_recast(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute both casts on a device."""
    from mor_ref.cuda.fp8lm import casts

    fmt = format_of(parameters["format"])
    first = casts(device, arrays["x"], arrays["scale"], fmt)
    second = casts(device, first["y"], arrays["shared"], fmt)
    return {"code": first["code"], "recast": second["code"], "y": second["y"]}


def random_recast(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw numbers and their scales, and shared scales up to 2^15 below, some of any kind."""
    drawn = random_inputs(parameters, draws)
    words = draws.words(5)
    field = drawn["scale"] >> np.uint64(23) & np.uint64(0xFF)
    less = np.minimum(share(bits_at(words, 0, 16), 16, 16), field) << np.uint64(23)
    shared = np.where(bits_at(words, 16, 4) == 0, bits_at(words, 24, 32), drawn["scale"] - less)
    return {**drawn, "shared": shared}


FP8LM_RECAST = Operation(
    "fp8lm_recast",
    kinds("format:fp8lm_format"),
    inputs=fields("n x,scale,shared f32"),
    outputs=fields("n code,recast format; n y f32"),
    exact=exact_recast,
    engine=engine_recast,
    cuda=cuda_recast,
    random=RandomInputs(random_recast, any_row, ANY_NUMBER),
)
FP8LM_CAST = Operation(
    "fp8lm_cast",
    kinds("format:fp8lm_format"),
    inputs=fields("n x,scale f32"),
    outputs=fields("n scale_inv f32; n code format; n y f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER, answers=("code", "y")),
)
