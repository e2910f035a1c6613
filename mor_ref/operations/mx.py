"""mx: a tensor in an MX format."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formulas import mx_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.mx import mx_element
from mor_ref.operations.bits import Unsigned, codes_array, f32_array, numbers_of, tensor_of
from mor_ref.operations.elements import listed, rows_of, tensor_fields
from mor_ref.operations.fields import fields
from mor_ref.operations.given_words import BITS, GIVEN, refuse_words, words_for_engine, words_of
from mor_ref.operations.operation import (
    Arrays,
    DeviceArrays,
    Operation,
    Parameters,
    PublicRecord,
    WayBack,
    instance_test,
)
from mor_ref.operations.parameters import RECIPE, kinds
from mor_ref.operations.way_back import coded_with, restored

if TYPE_CHECKING:
    from mor_ref import Mx
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model; a tensor that is not large has all intermediates."""
    from mor_ref.exact import mx

    fmt, block, shape = as_format(parameters["format"]), parameters["block"], arrays["x"].shape
    x = rows_of(arrays, parameters["source"])
    tensor = mx.mx(x, fmt, parameters["scale_rule"], block, words_of(parameters, arrays))
    cut = partition(shape, (1, block))
    return {
        "scale": np.array(listed(tensor.scale, cut.grid), np.uint8).reshape(cut.grid),
        **tensor_fields(tensor.elements, fmt, shape),
    }


def columns(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model, many numbers at a time."""
    from mor_ref.exact.block_formulas import quantize

    fmt, shape = as_format(parameters["format"]), arrays["x"].shape
    formulas = mx_formulas(fmt, parameters["scale_rule"], parameters["block"])
    blocks = quantize(numbers_of(arrays["x"], parameters["source"]), shape, formulas)
    scales = blocks.scales["s"]
    return {
        "scale": np.array(scales.codes, np.uint8).reshape(scales.parts.grid),
        "code": codes_array(blocks.codes, fmt).reshape(shape),
        "y": f32_array(blocks.y).reshape(shape),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the public function."""
    from mor_ref import quantize_mx

    record = quantize_mx(
        tensor_of(arrays["x"], parameters["source"]),
        parameters["format"],
        scale_rule=parameters["scale_rule"],
        block=parameters["block"],
        **words_for_engine(parameters, arrays),
    )
    return stored(record)


def stored(record: "Mx") -> Arrays:
    """Return the fields that a record has."""
    return {"code": record.codes, "scale": record.scale, "y": record.dequantize().view(np.uint32)}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.cuda import mx
    from mor_ref.cuda.launching import Bits

    refuse_words(parameters)
    fmt, x = as_format(parameters["format"]), Bits(arrays["x"], parameters["source"])
    tensor = mx.mx(device, x, fmt, parameters["scale_rule"], parameters["block"])
    y = mx.dequantize(device, tensor, fmt, parameters["block"])
    return {"code": tensor.codes, "scale": tensor.scale, "y": y}


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y: the values of codes times the power of two of their block (MXS-008)."""
    fmt, code = as_format(parameters["format"]), arrays["code"]
    block = partition(code.shape, (1, parameters["block"])).block
    return restored(code, fmt, block, *_powers_of_two(arrays["scale"]))


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a scale each (MXS-007)."""
    x = tensor_of(arrays["x"], parameters["source"])
    return coded_with(x, as_format(parameters["format"]), *_powers_of_two(arrays["scale"]))


def _powers_of_two(scale: Unsigned) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the factors of numbers, and of the values of codes."""
    from mor_ref.engine.mx import powers_of_two

    codes = np.ascontiguousarray(scale, np.uint8)
    encode, decode = (np.empty(codes.shape, np.uint32) for _ in range(2))
    powers_of_two(codes.reshape(-1), encode.reshape(-1), decode.reshape(-1))
    return encode, decode


def admit(parameters: Parameters) -> None:
    """Refuse a format that elements of MX do not have."""
    mx_element(parameters["format"])


def parameters_of(record: "Mx") -> Parameters:
    """Return the parameters that made a record."""
    parameters = {"format": record.fmt.name, "scale_rule": record.scale_rule}
    return {**parameters, "block": record.tile[1]}


MX = Operation(
    "mx",
    kinds("format scale_rule block:side source"),
    inputs=fields("rc x source"),
    outputs=fields("grid scale e8m0; rc xs,y f32; rc code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    columns=columns,
    admit=admit,
    optional=kinds(f"{RECIPE} {BITS}"),
    optional_inputs=GIVEN,
    ignores_zeros=True,
    way_back=WayBack(lambda _: (("code",), ("scale",)), restore, coded),
    record=PublicRecord(instance_test("Mx"), parameters_of, stored),
)
