"""quantize_block: blocks to codes with scales; a row of x is a block, whose group has an amax."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import as_format
from mor_ref.operations.bits import bits32, f32_array, numbers_of
from mor_ref.operations.elements import element_fields, error_fields, row_by_row, sums
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import (
    amaxes_at,
    amaxes_of,
    filled,
    fraction_of,
    values_of,
    with_a_special,
)
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at
from mor_ref.operations.scale import admit
from mor_ref.operations.scale import random_inputs as random_amaxes

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_LARGEST = LAYOUTS["f32"].largest


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model, with all intermediates of every element."""
    from mor_ref.exact.errors import error_sum
    from mor_ref.exact.quantization import quantize_element
    from mor_ref.exact.scales import amax, group_mantissa, scale_of_block

    fmt, kind, shape = as_format(parameters["format"]), parameters["scaling"], arrays["x"].shape
    x = row_by_row(arrays["x"])
    groups = numbers_of(arrays["group_amax"], "f32")
    amaxes = [amax(row) for row in x]
    shared = [group_mantissa(fmt.largest, group) if kind == "gam" else 0 for group in groups]
    scales = [
        scale_of_block(kind, fmt.largest, block_amax, m)
        for block_amax, m in zip(amaxes, shared, strict=True)
    ]
    elements = [
        [quantize_element(number, scale.value, fmt) for number in row]
        for row, scale in zip(x, scales, strict=True)
    ]
    errors = [
        error_sum((number, e.y) for number, e in zip(row, row_elements, strict=True))
        for row, row_elements in zip(x, elements, strict=True)
    ]
    return {
        "amax": f32_array(amaxes),
        "mantissa": np.array(shared, np.uint32),
        "exponent": np.array([scale.exponent_code or 0 for scale in scales], np.uint8),
        "scale": f32_array(scale.value for scale in scales),
        **element_fields(elements, fmt, shape),
        **error_fields(x, elements, shape),
        **sums(errors, shape[:1]),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize each block in a row, behind a block that has only the amax of the group."""
    from mor_ref import quantize

    x, width = arrays["x"], arrays["x"].shape[1]
    first = np.zeros_like(x)
    first[:, 0] = arrays["group_amax"]
    record = quantize(
        np.concatenate([first, x], axis=1).view(np.float32),
        parameters["format"],
        scaling=parameters["scaling"],
        block=(1, width),
        group="row" if parameters["scaling"] == "gam" else "tensor",
    )
    nothing = np.zeros(len(x), np.uint32)
    exponent, mantissa = record.scale_exponent, record.scale_mantissa
    return {
        "amax": bits32(record.amax[:, 1]),
        "mantissa": nothing if mantissa is None else mantissa[:, 0],
        "exponent": nothing.astype(np.uint8) if exponent is None else exponent[:, 1],
        "scale": bits32(record.scale[:, 1]),
        "code": record.codes[:, width:],
        "y": bits32(record.dequantize()[:, width:]),
        "sum": record.error.sum[:, 1],
        "nonzero": record.error.nonzero[:, 1],
        "nonfinite": record.error.nonfinite[:, 1],
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize each block in a row, behind a block that has only the amax of the group."""
    from mor_ref.cuda import quantization
    from mor_ref.cuda.launching import Bits

    width, is_gam = arrays["x"].shape[1], parameters["scaling"] == "gam"
    pairs = device.filled((len(arrays["x"]), 2 * width), np.uint32, 0)
    pairs[:, 0], pairs[:, width:] = arrays["group_amax"], arrays["x"]
    cut = partition(pairs.shape, (1, width), "row" if is_gam else "tensor")
    fmt = as_format(parameters["format"])
    tensor = quantization.quantize(device, Bits(pairs, "f32"), fmt, parameters["scaling"], cut)
    nothing = device.filled((len(pairs),), np.uint32, 0)
    return {
        "amax": tensor.amax[:, 1],
        "scale": tensor.scales.scale[:, 1],
        "exponent": tensor.scales.exponent[:, 1],
        "mantissa": tensor.scales.mantissa[:, 0] if is_gam else nothing,
        "code": tensor.codes[:, width:],
        "y": quantization.dequantize(device, tensor, fmt, cut)[:, width:],
        **{name: array[:, 1] for name, array in tensor.error._asdict().items()},
    }


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes as the operation `scale` does, and ties at the scale that they lead to.

    In one row of four, the block has the amax of the group.
    """
    fmt = as_format(parameters["format"])
    pairs = random_amaxes(parameters, draws)
    alone = amaxes_at(draws, 8, (fraction_of(fmt.largest),), fmt.largest)
    is_alone = bits_at(draws.words(7), 0, 2) == 0
    groups, blocks = (
        np.where(is_alone, alone, pairs[name]) for name in ("group_amax", "block_amax")
    )
    with np.errstate(divide="ignore"):
        ideal, shared = (fmt.largest / values_of(amax) for amax in (blocks, groups))
    significand, exponent = np.frexp(ideal)
    if parameters["scaling"] == "e8m0":
        significand = np.full_like(significand, 0.5)
    if parameters["scaling"] == "gam":
        group_significand = np.frexp(shared)[0]
        exponent = exponent - (group_significand > significand)
        significand = group_significand
    with np.errstate(all="ignore"):
        units = 1 / np.ldexp(significand, exponent)
    x = with_a_special(draws, 3, filled(draws, 4, fmt, blocks, units), blocks)
    return {"x": x, "group_amax": groups}


def _are_blocks(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    groups = arrays["group_amax"]
    inside: NDArray[np.bool_] = groups <= _LARGEST
    return inside & (amaxes_of(arrays["x"], _LARGEST) <= groups)


QUANTIZE_BLOCK = Operation(
    "quantize_block",
    kinds("format scaling source:f32"),
    inputs=fields("nk x f32; n group_amax f32"),
    outputs=fields(
        "n amax,scale f32; n mantissa u32; n exponent e8m0; nk xs,y,d,r f32; nk code format; "
        "nk u u32; n sum,nonzero,nonfinite u64"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(
        random_inputs,
        _are_blocks,
        "group_amax is finite, not negative, and at least the largest finite magnitude of x",
        answers=("scale", "code"),
    ),
)
