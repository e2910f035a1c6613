"""scale: the scale of a block, from its amax and that of its group."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.scales import scaled_format
from mor_ref.operations.bits import bits32, f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import (
    LAYOUTS,
    Draws,
    bits_at,
    edge_fractions,
    magnitudes_of,
    moved,
    share,
)

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute scale by scale."""
    from mor_ref.exact.scales import group_mantissa, scale_of_block

    largest, kind = as_format(parameters["format"]).largest, parameters["scaling"]
    groups, blocks = (numbers_of(arrays[name], "f32") for name in ("group_amax", "block_amax"))
    shared = [group_mantissa(largest, amax) if kind == "gam" else 0 for amax in groups]
    scales = [
        scale_of_block(kind, largest, amax, m) for amax, m in zip(blocks, shared, strict=True)
    ]
    return {
        "mantissa": np.array(shared, np.uint32),
        "exponent": np.array([scale.exponent_code or 0 for scale in scales], np.uint8),
        "scale": f32_array(scale.value for scale in scales),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize each pair as a group of two blocks of one element."""
    from mor_ref import quantize

    pair = np.stack([arrays["group_amax"], arrays["block_amax"]], axis=1).view(np.float32)
    record = quantize(
        pair,
        parameters["format"],
        scaling=parameters["scaling"],
        block=(1, 1),
        group="row" if parameters["scaling"] == "gam" else "tensor",
    )
    nothing = np.zeros(len(pair), np.uint32)
    exponent, mantissa = record.scale_exponent, record.scale_mantissa
    return {
        "scale": bits32(record.scale[:, 1]),
        "exponent": nothing.astype(np.uint8) if exponent is None else exponent[:, 1],
        "mantissa": nothing if mantissa is None else mantissa[:, 0],
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute scales on a device."""
    from mor_ref.cuda.scales import scale_steps

    fmt, amaxes = as_format(parameters["format"]), (arrays["group_amax"], arrays["block_amax"])
    return scale_steps(device, parameters["scaling"], fmt, *amaxes)


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw the amax of a group, and of a block whose mantissa is the same, a step off, or any."""
    largest = formats[parameters["format"]].largest
    choices = draws.words(0)
    exponents = share(choices >> _U(32), 32, 254 + 23).astype(np.int64) - 22
    groups = magnitudes_of(exponents, edge_fractions(draws, 1, largest), _F32)
    below = np.where(bits_at(choices, 0, 1) == 0, bits_at(choices, 8, 2), bits_at(choices, 8, 8))
    is_of_group = bits_at(choices, 1, 1) == 0
    fractions = np.where(
        is_of_group, groups & _U(_F32.hidden - 1), edge_fractions(draws, 2, largest)
    )
    blocks = magnitudes_of(exponents - below.astype(np.int64), fractions, _F32)
    blocks = moved(blocks, share(bits_at(choices, 16, 8), 8, 5), _F32.largest)
    # Now and then a block, or all the group, has nothing but zeros.
    blocks = np.where(bits_at(choices, 24, 6) == 0, _U(0), np.minimum(blocks, groups))
    groups = np.where(bits_at(choices, 24, 8) == 0, _U(0), groups)
    return {"group_amax": groups, "block_amax": blocks}


def _are_amaxes(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = arrays["block_amax"] <= arrays["group_amax"]
    return inside & (arrays["group_amax"] <= _F32.largest)


def admit(parameters: Parameters) -> None:
    """Refuse a format that numbers are not scaled into."""
    scaled_format(parameters["format"])


SCALE = Operation(
    "scale",
    kinds("format scaling"),
    inputs=fields("n group_amax,block_amax f32"),
    outputs=fields("n mantissa u32; n exponent e8m0; n scale f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(
        random_inputs,
        _are_amaxes,
        "both amaxes are finite and not negative, and the block's is not larger",
    ),
)
