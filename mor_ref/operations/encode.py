"""encode: numbers to codes."""

from typing import TYPE_CHECKING

from mor_ref.definitions.encoding import SpecialCases, rounding_for
from mor_ref.definitions.formats import as_format, formats
from mor_ref.operations.bits import codes_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row, numbers

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Encode number by number."""
    from mor_ref.exact import encode

    fmt = as_format(parameters["format"])
    special = SpecialCases(overflow=parameters["overflow"], nan=parameters["nan"])
    x = numbers_of(arrays["x"], parameters["source"])
    codes = [encode(number, fmt, parameters["rounding"], special) for number in x]
    return {"code": codes_array(codes, fmt)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Encode with the public function."""
    from mor_ref import encode

    arguments = {name: parameters[name] for name in ("rounding", "overflow", "nan")}
    x = tensor_of(arrays["x"], parameters["source"])
    return {"code": encode(x, parameters["format"], **arguments)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Encode on a device."""
    from mor_ref.cuda.encoding import encode
    from mor_ref.cuda.launching import Bits

    fmt = as_format(parameters["format"])
    special = SpecialCases(overflow=parameters["overflow"], nan=parameters["nan"])
    x = Bits(arrays["x"], parameters["source"])
    return {"code": encode(device, x, fmt, parameters["rounding"], special)}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw numbers at which encoders to the format differ."""
    return {"x": numbers(draws, 0, formats[parameters["format"]], parameters["source"])}


def admit(parameters: Parameters) -> None:
    """Refuse a rounding that the format does not have."""
    rounding_for(formats[parameters["format"]], parameters["rounding"], SpecialCases())


ENCODE = Operation(
    "encode",
    kinds("format source:any_source rounding overflow nan"),
    inputs=fields("n x source"),
    outputs=fields("n code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    rounded="x",
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER),
)
