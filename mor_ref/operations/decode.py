"""decode: codes to numbers."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import as_format, formats
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decode code by code."""
    from mor_ref.exact import decode

    fmt = as_format(parameters["format"])
    values = [decode(code, fmt) for code in arrays["code"].tolist()]
    return {"value": np.array(values, np.uint32)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Decode with the public function."""
    from mor_ref import decode

    return {"value": decode(arrays["code"], parameters["format"]).view(np.uint32)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Decode on a device."""
    from mor_ref.cuda.decoding import decode

    return {"value": decode(device, arrays["code"], as_format(parameters["format"]))}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw any codes."""
    return {"code": draws.words(0) >> np.uint64(64 - formats[parameters["format"]].bits)}


def _is_code(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = arrays["code"] <= formats[parameters["format"]].code_count - 1
    return inside


DECODE = Operation(
    "decode",
    kinds("format"),
    inputs=fields("n code format"),
    outputs=fields("n value f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(random_inputs, _is_code, "a code has no more bits than its format"),
)
