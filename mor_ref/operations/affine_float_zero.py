"""affine_float_zero: a number with a given scale and a zero point of binary32, and back."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.affine import affine_profile, integer_grid, with_float_zeros
from mor_ref.operations import affine, affine_element
from mor_ref.operations.bits import numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import LAYOUTS, Draws, bits_at, share

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_U = np.uint64
_F32 = LAYOUTS["f32"]
# Zero points that are far outside, or so small that they leave no trace but at ties.
_FAR = np.array([0x7F7FFFFF, 0x00000001, 0x80000000, 0x4E6E6B28, 0xCB800001, 0x33800000], _U)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize number by number (AFF-012)."""
    from dataclasses import replace

    choices = affine.exact_choices({**parameters, "symmetric": False})
    choices = replace(choices, profile=with_float_zeros(choices.profile))
    return affine_element.exact_with(choices, arrays, numbers_of(arrays["zero_point"], "f32"))


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize a row whose numbers are blocks of their own."""
    zeros = arrays["zero_point"].view(np.float32)
    return affine_element.engine_with(parameters, arrays, zeros, symmetric=False)


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize a row whose numbers are blocks of their own."""
    from mor_ref.cuda.affine import ScaleAndZero

    choices = affine.kernel_choices({**parameters, "symmetric": False})
    choices = choices._replace(profile=with_float_zeros(choices.profile))
    scale_and_zero = ScaleAndZero(arrays["scale"], float_zero=arrays["zero_point"])
    return affine_element.cuda_with(device, choices, arrays, scale_and_zero)


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw scales, zero points between integers, and numbers next to ties of both."""
    grid = integer_grid(parameters["grid"])
    choices, words = draws.words(0), draws.words(3)
    scales = affine_element.drawn_scales(draws)
    whole = share(words >> _U(32), 32, 1 << grid.bits).astype(np.int64) + grid.lowest
    fractions = np.where(bits_at(choices, 50, 1) == 0, (words & _U(0xFFFFFF)) / (1 << 24),
                         (words & _U(3)) / 4)  # fmt: skip
    zeros = (whole + fractions).astype(np.float32)
    far = _FAR[share(bits_at(words, 24, 8), 8, _FAR.size)]
    zero_points = np.where(bits_at(choices, 52, 4) == 0, far, zeros.view(np.uint32).astype(_U))
    steps = affine_element.drawn_steps(draws, grid) - zeros
    x = affine_element.near(draws, steps, scales)
    return {"x": x, "scale": scales, "zero_point": zero_points}


def _is_inside(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    del parameters
    is_scale = (arrays["scale"] > 0) & (arrays["scale"] <= _F32.largest)
    inside: NDArray[np.bool_] = is_scale & (
        arrays["zero_point"] & arrays["zero_point"].dtype.type(0x7FFFFFFF) <= _F32.largest
    )
    return inside


def admit(parameters: Parameters) -> None:
    """Refuse a profile whose zero points are integers alone."""
    profile = affine_profile(parameters["profile"])
    if not profile.takes_float_zeros:
        raise ValueError(
            f"profile is {profile.name!r}, whose zero points are integers; give "
            "torch_fake_channel_2_13"
        )


AFFINE_FLOAT_ZERO = Operation(
    "affine_float_zero",
    kinds("grid:integer_grid profile:affine_profile source:f32"),
    inputs=fields("n x,scale,zero_point f32"),
    outputs=fields("n inverse_scale,xs f32; n code u32; n y f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(
        random_inputs,
        _is_inside,
        "a scale is positive and finite, and a zero point is finite",
        answers=("code", "y"),
    ),
    codes=affine.codes,
)
