"""scale: the scale of a block, from its amax and that of its group."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import scaled_format
from mor_ref.exact.scales import Scale, group_mantissa, scale_of_block
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import expected, given
from mor_ref.operations.operation import Operation, RandomInputs
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
from mor_ref.operations.results import each

_U = np.uint64
_F32 = LAYOUTS["f32"]


def exact(call: Call) -> Results:
    """Compute scale by scale."""
    largest, scaling = call.fmt.largest, call["scaling"]
    mantissas = shared_mantissas(call)
    pairs = zip(call.numbers("block_amax"), mantissas, strict=True)
    scales = [scale_of_block(scaling, largest, amax, m) for amax, m in pairs]
    return {"mantissa": mantissas, **scale_results(scales)}


def shared_mantissas(call: Call) -> list[int]:
    """Return the mantissas that groups share; 0 but under gam."""
    largest, is_gam = call.fmt.largest, call["scaling"] == "gam"
    return [group_mantissa(largest, g) if is_gam else 0 for g in call.numbers("group_amax")]


def scale_results(scales: Iterable[Scale] | Mapping[Any, Scale]) -> Results:
    """Return the exponents and the values of scales, or of scales by their places."""
    stored = each(scales, "stored_exponent", "value")
    return {"exponent": stored["stored_exponent"], "scale": stored["value"]}


def engine(call: Call) -> Results:
    """Quantize each pair as a group of two blocks of one element."""
    pair = np.stack([call.tensor("group_amax"), call.tensor("block_amax")], axis=1)
    record = mor_ref.quantize(
        pair,
        call["format"],
        scaling=call["scaling"],
        block=(1, 1),
        group="row" if call["scaling"] == "gam" else "tensor",
    )
    exponent, mantissa = record.scale_exponent, record.scale_mantissa
    return {
        "scale": record.scale[:, 1],
        "exponent": 0 if exponent is None else exponent[:, 1],
        "mantissa": 0 if mantissa is None else mantissa[:, 0],
    }


def cuda(call: DeviceCall) -> DeviceArrays:
    """Compute scales on a device."""
    from mor_ref.cuda.scales import scale_steps

    amaxes = call.arrays["group_amax"], call.arrays["block_amax"]
    return scale_steps(call.device, call["scaling"], call.fmt, *amaxes)


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
    (
        given("group_amax f32 n", "the amax of the group"),
        given("block_amax f32 n", "the amax of the block"),
        expected("mantissa u32 n", "the shared mantissa; 0 but under gam", "GAM-001"),
        expected(
            "exponent e8m0 n",
            "the stored exponent; 0 under fp32",
            "SCL-005 GAM-002 GAM-003 GAM-004 GAM-005",
        ),
        expected(
            "scale f32 n", "the scale that numbers are multiplied by", "SCL-002 SCL-004 GAM-005"
        ),
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    admit=admit,
    random=RandomInputs(
        random_inputs,
        _are_amaxes,
        "both amaxes are finite and not negative, and the block's is not larger",
    ),
)
