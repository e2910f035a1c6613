"""mx_block: blocks in an MX format; a row of x is a block."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.formats import as_format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.operations import mx
from mor_ref.operations.elements import element_fields, row_by_row
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import (
    amaxes_at,
    filled,
    fraction_of,
    values_of,
    with_a_special,
)
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row, bits_at

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
    by_name = mx.engine({**parameters, "block": arrays["x"].shape[1]}, arrays)
    return {**by_name, "scale": by_name["scale"][:, 0]}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize a tensor whose rows are one block each."""
    by_name = mx.cuda(device, {**parameters, "block": arrays["x"].shape[1]}, arrays)
    return {**by_name, "scale": by_name["scale"][:, 0]}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw blocks whose amax is next to where the scale turns, and ties at both scales there."""
    fmt, rule = as_format(parameters["format"]), SCALE_RULES[parameters["scale_rule"]]
    largest = fraction_of(fmt.largest)
    turn = largest if rule.up_from is None else rule.up_from_of(fmt) % (1 << 23)
    amaxes = amaxes_at(draws, 0, (turn, turn, largest), fmt.largest)
    is_next = bits_at(draws.words(3), 0, 1)
    exponent = np.frexp(values_of(amaxes))[1] - np.frexp(fmt.largest)[1] + is_next.astype(np.int64)
    units = np.ldexp(1.0, np.maximum(exponent, -127))
    return {"x": with_a_special(draws, 4, filled(draws, 5, fmt, amaxes, units), amaxes)}


MX_BLOCK = Operation(
    "mx_block",
    kinds("format scale_rule source:f32"),
    inputs=fields("nk x f32"),
    outputs=fields("n scale e8m0; nk xs,y f32; nk code format"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=mx.admit,
    random=RandomInputs(random_inputs, any_row, ANY_NUMBER, answers=("scale", "code")),
)
