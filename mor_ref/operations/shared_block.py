"""shared_block: blocks of numbers that share an exponent; a row of x is a block."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.shared import BLOCK, shared_kind, shared_profile
from mor_ref.operations import shared
from mor_ref.operations.elements import row_by_row
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import (
    amaxes_at,
    filled,
    fraction_of,
    with_a_special,
)
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row, bits_at

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_HIDDEN = np.uint64(1 << 23)
_SIGN = np.uint64(1 << 31)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.shared import shared_block

    x = arrays["x"]
    kind, profile = shared_kind(parameters["kind"]), shared_profile(parameters["profile"])
    blocks = [shared_block(row, kind, profile) for row in row_by_row(x)]
    return {
        "shared_exponent": np.array([block.exponent for block in blocks], np.uint8),
        "tau": np.array([block.tau for block in blocks], np.uint8),
        **shared.element_fields([e for block in blocks for e in block.elements], x.shape),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize a tensor whose rows are one block each."""
    by_name = shared.engine(parameters, arrays)
    return {**by_name, "shared_exponent": by_name["shared_exponent"][:, 0]}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize a tensor whose rows are one block each."""
    by_name = shared.cuda(device, parameters, arrays)
    return {**by_name, "shared_exponent": by_name["shared_exponent"][:, 0]}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw blocks next to where exponents turn, and pairs with ties at either unit."""
    bits = shared_kind(parameters["kind"]).magnitude_bits
    # Magnitudes in units; the last of them rounds up to 2^bits from half a unit below it on.
    units = Format(
        "magnitudes", exponent_bits=0, mantissa_bits=bits, bias=1 - bits, specials="none",
        sign="twos-complement",
    )  # fmt: skip
    turn = fraction_of((1 << bits) - 0.5)
    amaxes = amaxes_at(draws, 0, (turn, turn, 1 << 22), units.largest)
    exponent = (amaxes >> np.uint64(23)).astype(np.int64)
    unit = np.ldexp(1.0, np.maximum(exponent, 1) - 127 + 1 - bits)
    x = filled(draws, 3, units, amaxes, unit)
    halves = bits_at(draws.per_number().words(6), 0, 1).reshape(x.shape)
    halves = np.repeat(halves[:, ::2], 2, axis=1)[:, : draws.width]  # both numbers of a pair
    is_normal = (x & ~_SIGN) >= _HIDDEN * np.uint64(2)
    x = np.where((halves != 0) & is_normal, x - _HIDDEN, x)
    return {"x": with_a_special(draws, 7, x, amaxes)}


SHARED_BLOCK = Operation(
    "shared_block",
    kinds("kind:shared_kind profile:shared_profile source:f32"),
    inputs=fields("nk x f32"),
    outputs=fields("n shared_exponent u8; pair tau u8; nk sign,magnitude,code u8; nk y f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(
        random_inputs, any_row, ANY_NUMBER, answers=("shared_exponent", "tau", "code")
    ),
    widths=(1, BLOCK),
    codes=shared.codes,
)
