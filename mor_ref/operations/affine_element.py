"""affine_element: a number with a given scale and zero point, to an integer and back."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.affine import IntegerGrid, affine_profile, integer_grid
from mor_ref.definitions.blocks import partition
from mor_ref.operations import affine
from mor_ref.operations.bits import f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import LAYOUTS, Draws, Words, bits_at, moved, share

if TYPE_CHECKING:
    from mor_ref.cuda.affine import Choices as ChoicesOfKernels
    from mor_ref.cuda.affine import ScaleAndZero
    from mor_ref.cuda.launching import Device
    from mor_ref.exact.affine import Choices

_U = np.uint64
_F32 = LAYOUTS["f32"]
_SPECIALS = np.array(
    [0x7FC00000, 0x7F800000, 0, 1, 0x7F7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x5F000000], _U
)


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize number by number."""
    choices = affine.exact_choices({**parameters, "symmetric": False})
    return exact_with(choices, arrays, arrays["zero_point"].view(np.int32).tolist())


def exact_with(choices: "Choices", arrays: Arrays, zeros: list[Any]) -> Arrays:
    """Quantize number by number, given the zero points."""
    from mor_ref.exact.affine import AffineBlock, affine_element, inverse

    x, scales = (numbers_of(arrays[name], "f32") for name in ("x", "scale"))
    blocks = [
        AffineBlock(0.0, 0.0, scale, inverse(scale, choices), 0.0, zero)
        for scale, zero in zip(scales, zeros, strict=True)
    ]
    elements = [affine_element(*pair, choices) for pair in zip(x, blocks, strict=True)]
    inverses = f32_array(block.inverse_scale for block in blocks)
    return {"inverse_scale": inverses, **affine.element_fields(elements, arrays["x"].shape)}


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize a row whose numbers are blocks of their own."""
    profile = affine_profile(parameters["profile"])
    zeros = None if profile.stores_amax else arrays["zero_point"].view(np.int32)
    return engine_with(parameters, arrays, zeros, symmetric=profile.stores_amax)


def engine_with(parameters: Parameters, arrays: Arrays, zeros: Any, *, symmetric: bool) -> Arrays:
    """Quantize a row whose numbers are blocks of their own, given the zero points."""
    from mor_ref import quantize_affine

    record = quantize_affine(
        arrays["x"].view(np.float32),
        parameters["grid"],
        profile=parameters["profile"],
        block="column",
        symmetric=symmetric,
        scale=arrays["scale"].view(np.float32),
        zero_point=zeros,
    )
    fields_of_numbers = affine.stored(record)
    return {
        "inverse_scale": fields_of_numbers["inverse_scale"][0],
        **{name: fields_of_numbers[name] for name in ("xs", "code", "y")},
    }


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize a row whose numbers are blocks of their own."""
    from mor_ref.cuda.affine import ScaleAndZero

    choices = affine.kernel_choices({**parameters, "symmetric": False})
    scale_and_zero = ScaleAndZero(arrays["scale"], arrays["zero_point"].view(np.int32))
    return cuda_with(device, choices, arrays, scale_and_zero)


def cuda_with(
    device: "Device",
    choices: "ChoicesOfKernels",
    arrays: DeviceArrays,
    scale_and_zero: "ScaleAndZero",
) -> DeviceArrays:
    """Quantize a row whose numbers are blocks of their own, given their scales and zero points."""
    from mor_ref.cuda.affine import quantize_affine
    from mor_ref.cuda.launching import Bits

    x = Bits(arrays["x"].reshape(1, -1), "f32")
    quantized = quantize_affine(
        device, x, choices, partition(x.array.shape, "column"), scale_and_zero
    )
    flat = {name: array.reshape(-1) for name, array in affine.on_device(quantized).items()}
    return {name: flat[name] for name in ("inverse_scale", "xs", "code", "y")}


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw scales and zero points, and numbers next to ties, at the ends, and far outside."""
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    choices = draws.words(0)
    zeros = share(draws.words(3) >> _U(32), 32, 1 << grid.bits).astype(np.int64) + grid.lowest
    at_zero = bits_at(choices, 48, 2) == 0
    if profile.stores_amax:
        at_zero[:] = True
    zero_points: Words = np.where(at_zero, 0, zeros).astype(_U) & _U(0xFFFFFFFF)
    scales = drawn_scales(draws)
    x = near(draws, drawn_steps(draws, grid), scales, 127 if profile.stores_amax else 1)
    return {"x": x, "scale": scales, "zero_point": zero_points}


def drawn_scales(draws: Draws) -> Words:
    """Return scales, as words of binary32."""
    choices, words = draws.words(0), draws.words(1)
    exponents = np.where(bits_at(choices, 0, 2) == 0, share(words >> _U(48), 16, 253),
                         share(words >> _U(48), 16, 40) + _U(107)) + _U(1)  # fmt: skip
    return exponents << _U(23) | words & _U(0x7FFFFF)


def drawn_steps(draws: Draws, grid: IntegerGrid) -> NDArray[np.float64]:
    """Return steps from 0 to twice beyond the grid, most at ties."""
    steps = share(draws.words(2) >> _U(32), 32, 1 << grid.bits + 1).astype(np.int64)
    halves = np.where(bits_at(draws.words(0), 2, 3) == 0, 0.0, 0.5)
    return steps.astype(np.float64) - (1 << grid.bits) + halves


def near(draws: Draws, steps: NDArray[np.float64], scales: Words, divisor: int = 1) -> Words:
    """Return numbers at most two places from steps * scale / divisor, and special numbers."""
    choices = draws.words(0)
    unit = scales.astype(np.uint32).view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        values = (steps * unit / divisor).astype(np.float32)
    bits = values.view(np.uint32).astype(_U)
    magnitudes = moved(bits & _U(0x7FFFFFFF), share(bits_at(choices, 8, 16), 16, 5), _F32.infinity)
    special = _SPECIALS[share(bits_at(choices, 24, 16), 16, _SPECIALS.size)]
    kinds = bits_at(choices, 40, 5)
    words: Words = np.where(kinds == 0, special, magnitudes) | bits & _U(1 << 31)
    return words


def _is_inside(parameters: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    is_scale = (arrays["scale"] > 0) & (arrays["scale"] <= _F32.largest)
    zeros = arrays["zero_point"].astype(np.uint32).view(np.int32)
    ends = (0, 0) if profile.stores_amax else (grid.lowest, grid.highest)
    inside: NDArray[np.bool_] = is_scale & (ends[0] <= zeros) & (zeros <= ends[1])
    return inside


def admit(parameters: Parameters) -> None:
    """Refuse a grid that the profile does not have."""
    profile = affine_profile(parameters["profile"])
    affine.admit({**parameters, "symmetric": profile.stores_amax})


AFFINE_ELEMENT = Operation(
    "affine_element",
    kinds("grid:integer_grid profile:affine_profile source:f32"),
    inputs=fields("n x,scale f32; n zero_point u32"),
    outputs=fields("n inverse_scale,xs f32; n code u32; n y f32"),
    exact=exact,
    engine=engine,
    cuda=cuda,
    admit=admit,
    random=RandomInputs(
        random_inputs,
        _is_inside,
        "a scale is positive and finite, and a zero point is an integer of the grid, 0 if the "
        "scale is amax",
        answers=("code", "y"),
    ),
    codes=affine.codes,
)
