"""quantize_element: a number and its scale, to a code and back."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import as_format, formats
from mor_ref.operations.bits import bits32, codes_array, f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    Words,
    bits_at,
    edge_fractions,
    moved,
    numbers,
    share,
)
from mor_ref.operations.scale import admit

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize number by number."""
    from mor_ref.exact import quantization

    fmt = as_format(parameters["format"])
    x, scales = (numbers_of(arrays[name], "f32") for name in ("x", "scale"))
    elements = [
        quantization.quantize_element(number, scale, fmt)
        for number, scale in zip(x, scales, strict=True)
    ]
    return {
        "xs": f32_array(e.xs for e in elements),
        "code": codes_array([e.code for e in elements], fmt),
        "y": f32_array(e.y for e in elements),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the step of the engine's loops."""
    from mor_ref import decode
    from mor_ref.engine.nearest import grid_of
    from mor_ref.engine.steps import quantize_elements

    fmt = as_format(parameters["format"])
    xs, code = np.empty_like(arrays["x"]), np.empty(arrays["x"].size, np.uint8)
    quantize_elements(arrays["x"], arrays["scale"], grid_of(fmt), xs, code)
    with np.errstate(all="ignore"):
        y = decode(code, fmt) / arrays["scale"].view(np.float32)
    return {"xs": xs, "code": code, "y": bits32(y)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda.quantization import quantize_steps

    return quantize_steps(device, as_format(parameters["format"]), arrays["x"], arrays["scale"])


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw scales, and numbers that these bring to where encoders differ, or next to it."""
    fmt = formats[parameters["format"]]
    choices = draws.words(4)
    usual = share(bits_at(choices, 32, 16), 16, 40) + _U(107)
    any_exponent = share(choices >> _U(48), 16, 254) + _U(1)
    exponents = np.where(bits_at(choices, 0, 1) == 0, usual, any_exponent)
    scales = exponents << _U(23) | edge_fractions(draws, 3, fmt.largest)
    scaled = numbers(draws, 0, fmt, "f32")
    magnitudes = scaled & _U(0x7FFFFFFF)
    with np.errstate(all="ignore"):
        quotients = _floats(magnitudes) / _floats(scales)
    steps = share(bits_at(choices, 8, 16), 16, 5)
    near = moved(quotients.view(np.uint32).astype(_U), steps, _F32.infinity)
    is_number = magnitudes <= _U(_F32.infinity)
    return {"x": np.where(is_number, near | scaled & _U(1 << 31), scaled), "scale": scales}


def _floats(bits: Words) -> NDArray[np.float32]:
    return bits.astype(np.uint32).view(np.float32)


def _has_a_scale(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (arrays["scale"] >= _F32.hidden) & (arrays["scale"] <= _F32.largest)
    return inside


QUANTIZE_ELEMENT = Operation(
    "quantize_element",
    kinds("format"),
    inputs=fields("n x,scale f32"),
    outputs=fields("n xs,y f32; n code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(random_inputs, _has_a_scale, "a scale is positive, normal and finite"),
)
