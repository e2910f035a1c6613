"""fp8lm_scale: the scale of a tensor from its amax and the scale before it."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.fp8lm import format_of
from mor_ref.operations.bits import bits32, f32_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import amaxes_at, fraction_of
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_NAMES = ("ratio", "exponent", "scale", "scale_inv")
_F32 = LAYOUTS["f32"]
_SPECIALS = np.array(
    [0, 1, 0x7FFFFF, 0x800000, _F32.largest, _F32.infinity, 0x7FC00000, 0x7F800001], np.uint64
)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the exact model."""
    from mor_ref.exact.fp8lm import scale_of

    fmt, margin = format_of(parameters["format"]), parameters["margin"]
    pairs = zip(*(numbers_of(arrays[n], "f32") for n in ("amax", "previous")), strict=True)
    scales = [scale_of(a, p, fmt, margin, parameters["profile"]) for a, p in pairs]
    return {name: f32_array(getattr(scale, name) for scale in scales) for name in _NAMES}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute with the public function."""
    from mor_ref import fp8lm

    amax, previous = (tensor_of(arrays[name], "f32") for name in ("amax", "previous"))
    scales = fp8lm.scale(
        amax,
        previous,
        fmt=parameters["format"],
        margin=parameters["margin"],
        profile=parameters["profile"],
    )
    return {name: bits32(getattr(scales, name)) for name in _NAMES}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute on a device."""
    from mor_ref.cuda.fp8lm import scales

    fmt = format_of(parameters["format"])
    amaxes = arrays["amax"], arrays["previous"]
    return scales(device, *amaxes, fmt, parameters["margin"], parameters["profile"])


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes next to the largest number times a power of two, and scales before."""
    largest = format_of(parameters["format"]).largest
    amax = amaxes_at(draws, 0, (fraction_of(largest),), largest)
    words = draws.words(3)
    lost = _SPECIALS[share(bits_at(words, 0, 8), 8, _SPECIALS.size)]
    amax = np.where(bits_at(words, 8, 4) == 0, lost, amax)
    powers = (share(bits_at(words, 16, 16), 16, 254) + np.uint64(1)) << np.uint64(23)
    special = _SPECIALS[share(bits_at(words, 40, 8), 8, _SPECIALS.size)]
    return {"amax": amax, "previous": np.where(bits_at(words, 32, 4) == 0, special, powers)}


def _is_amax(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = arrays["amax"] < 1 << 31
    return inside


FP8LM_SCALE = Operation(
    "fp8lm_scale",
    kinds("format:fp8lm_format profile:fp8lm_profile margin"),
    inputs=fields("n amax,previous f32"),
    outputs=fields("n ratio,exponent,scale,scale_inv f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(
        random_inputs, _is_amax, "amax has no sign bit", answers=("exponent", "scale")
    ),
)
