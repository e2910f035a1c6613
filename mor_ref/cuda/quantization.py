"""Tensors to codes and back, on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums, no_errors
from mor_ref.cuda.launching import WORDS, Array, Bits, Device, Target, launch, run_team
from mor_ref.cuda.scales import BlockScales, extremes, scales
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale, Scaling


class ScaledCodes(NamedTuple):
    """Codes of a tensor, with the scale and the error sums of each block."""

    codes: Array
    amax: Array
    scales: BlockScales
    error: ErrorSums


def quantize(
    device: Device,
    x: Bits,
    fmt: Format,
    kind: Scaling,
    parts: Partition,
    given: AmaxOrScale = NOTHING_GIVEN,
) -> ScaledCodes:
    """Quantize a tensor with scales."""
    amax = extremes(device, x, parts).amax
    block_scales = scales(device, kind, amax, fmt, parts, given)
    codes = device.empty(x.array.shape, np.uint8)
    error = no_errors(device, parts.grid)
    arguments = (block_scales.scale, rows.scaled(fmt), codes, *error)
    run_team(device, "quantization", "quantize", x, parts, *arguments)
    return ScaledCodes(codes, amax, block_scales, error)


def dequantize(
    device: Device, quantized: ScaledCodes, fmt: Format, parts: Partition, to: Target = "f32"
) -> Array:
    """Return the values of the codes, as bits of the target."""
    y = device.empty(quantized.codes.shape, WORDS[to])
    codes = Bits(quantized.codes, "codes")
    arguments = (quantized.scales.scale, rows.decoding(fmt), y)
    run_team(device, "quantization", f"dequantize_{to}", codes, parts, *arguments)
    return y


def quantize_steps(device: Device, fmt: Format, x: Array, scale: Array) -> dict[str, Array]:
    """Quantize each number with a scale of its own."""
    dtypes = {"xs": np.uint32, "code": np.uint8, "y": np.uint32}
    by_name = {name: device.empty(x.shape, dtype) for name, dtype in dtypes.items()}
    arguments = (x, scale, np.uint64(x.size), rows.scaled(fmt))
    launch(device, "quantization", "quantize_steps", x.size, *arguments, *by_name.values())
    return by_name
