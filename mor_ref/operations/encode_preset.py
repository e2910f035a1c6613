"""encode_preset: numbers to codes as another library has them."""

from typing import TYPE_CHECKING

from mor_ref.definitions.encoding import rounding_for
from mor_ref.definitions.formats import as_format, encoding_profiles, formats, special_cases_for
from mor_ref.operations.bits import codes_array, numbers_of, tensor_of
from mor_ref.operations.encode import random_inputs
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import ANY_NUMBER, any_row

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Encode number by number."""
    from mor_ref.exact import encode

    fmt = as_format(parameters["format"])
    special = encoding_profiles[parameters["preset"]][fmt.name]
    x = numbers_of(arrays["x"], parameters["source"])
    return {"code": codes_array([encode(number, fmt, special=special) for number in x], fmt)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Encode with the public function."""
    from mor_ref import encode

    x = tensor_of(arrays["x"], parameters["source"])
    return {"code": encode(x, parameters["format"], profile=parameters["preset"])}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Encode on a device."""
    from mor_ref.cuda.encoding import encode
    from mor_ref.cuda.launching import Bits

    fmt = as_format(parameters["format"])
    special = encoding_profiles[parameters["preset"]][fmt.name]
    x = Bits(arrays["x"], parameters["source"])
    return {"code": encode(device, x, fmt, rounding_for(fmt, None, special), special)}


def admit(parameters: Parameters) -> None:
    """Refuse a profile that does not have the format."""
    special_cases_for(formats[parameters["format"]], None, None, parameters["preset"])


ENCODE_PRESET = Operation(
    "encode_preset",
    kinds("format source:any_source preset"),
    inputs=fields("n x source"),
    outputs=fields("n code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    rounded="x",
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER),
)
