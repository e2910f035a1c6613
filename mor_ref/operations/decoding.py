"""decode: codes to numbers."""

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.formats import formats
from mor_ref.exact.decoding import decode
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws


def exact(call: Call) -> Results:
    """Decode code by code."""
    fmt = call.fmt
    return {"value": np.array([decode(code, fmt) for code in call.numbers("code")], np.uint32)}


def engine(call: Call) -> Results:
    """Decode with the public function."""
    return {"value": mor_ref.decode(call.arrays["code"], call["format"])}


def cuda(call: DeviceCall) -> DeviceArrays:
    """Decode on a device."""
    from mor_ref.cuda.decoding import decode

    return {"value": decode(call.device, call.arrays["code"], call.fmt)}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw any codes."""
    return {"code": draws.words(0) >> np.uint64(64 - formats[parameters["format"]].bits)}


def are_codes(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    """Return which rows have codes of their format alone."""
    is_code = arrays["code"] <= formats[parameters["format"]].code_count - 1
    inside: NDArray[np.bool_] = np.all(is_code, axis=tuple(range(1, is_code.ndim)))
    return inside


ARE_CODES = "a code has no more bits than its format"
DECODE = Operation(
    "decode",
    kinds("format"),
    (
        given("code format n", "the code"),
        expected("value f32 n", "what it stands for", "DEC-001 DEC-002 DEC-003"),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    random=RandomInputs(random_inputs, are_codes, ARE_CODES),
)
