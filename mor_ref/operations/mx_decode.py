"""mx_decode: codes and scales of MX to numbers, also those that no quantizer makes."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import as_format
from mor_ref.operations import mx
from mor_ref.operations.bits import f32_array
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws, bits_at

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decode with the exact model."""
    from mor_ref.exact.mx import decoded

    fmt = as_format(parameters["format"])
    rows = zip(arrays["code"].tolist(), arrays["scale"].tolist(), strict=True)
    numbers = [decoded(code, scale, fmt) for row, scale in rows for code in row]
    return {"y": f32_array(numbers).reshape(arrays["code"].shape)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decode as `dequantize` does."""
    block = {**parameters, "block": arrays["code"].shape[1]}
    return {"y": mx.restore(block, {**arrays, "scale": arrays["scale"].reshape(-1, 1)})}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Decode on a device."""
    from mor_ref.cuda.errors import no_errors
    from mor_ref.cuda.mx import MxArrays, dequantize

    fmt, code = as_format(parameters["format"]), arrays["code"]
    tensor = MxArrays(code, arrays["scale"].reshape(-1, 1), no_errors(device, (1, 1)))
    return {"y": dequantize(device, tensor, fmt, code.shape[1])}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw any codes, and any scales."""
    codes = bits_at(draws.per_number().words(0), 0, as_format(parameters["format"]).bits)
    return {"code": codes.reshape(-1, draws.width), "scale": bits_at(draws.words(1), 0, 8)}


def _are_codes(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    most = as_format(parameters["format"]).code_count - 1
    inside: NDArray[np.bool_] = np.all(arrays["code"] <= most, axis=-1)
    return inside


MX_DECODE = Operation(
    "mx_decode",
    kinds("format"),
    inputs=fields("nk code format; n scale e8m0"),
    outputs=fields("nk y f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=mx.admit,
    random=RandomInputs(random_inputs, _are_codes, "a code has no more bits than its format"),
)
