"""mx_block: blocks in an MX format; a row of x is a block."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.formats import as_format
from mor_ref.operations import mx
from mor_ref.operations.elements import element_fields, row_by_row
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters
from mor_ref.operations.parameters import kinds

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model, with all intermediates of every element."""
    from mor_ref.exact.mx import quantize_element, scale_code

    fmt, rule, x = (
        as_format(parameters["format"]),
        parameters["scale_rule"],
        row_by_row(arrays["x"]),
    )
    codes = [scale_code(row, fmt, rule) for row in x]
    elements = [
        [quantize_element(number, code, fmt, rule) for number in row]
        for row, code in zip(x, codes, strict=True)
    ]
    return {
        "scale": np.array(codes, np.uint8),
        **element_fields(elements, fmt, arrays["x"].shape),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize a tensor whose rows are one block each."""
    found = mx.engine({**parameters, "block": arrays["x"].shape[1]}, arrays)
    return {**found, "scale": found["scale"][:, 0]}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize a tensor whose rows are one block each."""
    found = mx.cuda(device, {**parameters, "block": arrays["x"].shape[1]}, arrays)
    return {**found, "scale": found["scale"][:, 0]}


MX_BLOCK = Operation(
    "mx_block",
    kinds("format scale_rule source:f32"),
    inputs=fields("nk x f32"),
    outputs=fields("n scale e8m0; nk xs,y f32; nk code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=mx.admit,
)
