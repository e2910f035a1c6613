"""MX on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums, no_errors
from mor_ref.cuda.launching import WORDS, Array, Bits, Device, Target, launch, run_team
from mor_ref.cuda.scales import ALL, extremes
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.format import Format


class MxArrays(NamedTuple):
    """A tensor in MX."""

    codes: Array
    scale: Array
    error: ErrorSums


def mx(device: Device, x: Bits, fmt: Format, rule: str, block: int) -> MxArrays:
    """Quantize a tensor to MX."""
    parts = partition(x.array.shape, (1, block))
    amax = extremes(device, x, parts, ALL).amax
    scale, to = device.empty(parts.grid, np.uint8), rows.mx_format(fmt, rule)
    launch(device, "mx", "mx_scales", amax.size, amax, np.uint64(amax.size), to, scale)
    codes = device.empty(x.array.shape, np.uint8)
    error = no_errors(device, partition(x.array.shape, "tensor").grid)
    run_team(device, "mx", "mx_elements", x, parts, scale, to, codes, *error)
    return MxArrays(codes, scale, error)


def dequantize(
    device: Device, tensor: MxArrays, fmt: Format, block: int, to: Target = "f32"
) -> Array:
    """Return the values of the codes, as bits of the target."""
    parts = partition(tensor.codes.shape, (1, block))
    y = device.empty(tensor.codes.shape, WORDS[to])
    codes = Bits(tensor.codes, "codes")
    arguments = (tensor.scale, rows.decoding(fmt), y)
    run_team(device, "mx", f"mx_dequantize_{to}", codes, parts, *arguments)
    return y
