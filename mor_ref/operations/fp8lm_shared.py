"""fp8lm_shared and fp8lm_stored: scales of an all-reduce, and of the state of Adam."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.fp8lm import format_of
from mor_ref.operations.bits import bits32, f32_array, numbers_of
from mor_ref.operations.fields import fields
from mor_ref.operations.fp8lm_scale import random_inputs
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_numbers import Draws

if TYPE_CHECKING:
    from mor_ref.cuda.launching import Device

_MOST_RANKS = 4096
_STATE = ("first", "second", "master")


def exact_shared(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute the scales of ranks with the exact model."""
    from mor_ref.exact.fp8lm import shared_scales

    fmt, choices = format_of(parameters["format"]), (parameters["reduction"], parameters["profile"])
    shared = [shared_scales(numbers_of(row, "f32"), fmt, *choices) for row in arrays["amax"]]
    shape = arrays["amax"].shape
    return {
        "rank_scale": f32_array(s for scales in shared for s in scales.rank_scale).reshape(shape),
        "scale": f32_array(scales.scale for scales in shared),
        "scale_inv": f32_array(scales.scale_inv for scales in shared),
        "requantized": np.array([scales.requantized for scales in shared], np.uint8).reshape(shape),
    }


def engine_shared(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Compute the scales of ranks as the all-reduce does."""
    from mor_ref.fp8lm import shared_scales

    choices = parameters["format"], parameters["reduction"], parameters["profile"]
    rows = [shared_scales(row, *choices) for row in arrays["amax"].view(np.float32)]
    rank_scales, shared, back, changed = (list(part) for part in zip(*rows, strict=True))
    return {
        "rank_scale": bits32(np.array(rank_scales)),
        "scale": bits32(np.array(shared)),
        "scale_inv": bits32(np.array(back)),
        "requantized": np.array(changed, np.uint8),
    }


def cuda_shared(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute the scales of ranks on a device."""
    from mor_ref.cuda.fp8lm_state import shared_scales

    choices = parameters["reduction"], parameters["profile"]
    return shared_scales(device, arrays["amax"], format_of(parameters["format"]), *choices)


def random_shared(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes of ranks; those of a row are next to each other in half of the rows."""
    amax = random_inputs(parameters, draws.per_number())["amax"].reshape(-1, draws.width)
    near = amax[:, :1] + np.arange(draws.width, dtype=np.uint64) % np.uint64(3)
    is_near = (draws.words(5)[:, np.newaxis] & np.uint64(1) == 1) & (amax[:, :1] < 0x7F000000)
    return {"amax": np.where(is_near, near, amax)}


def _are_amaxes(_: Parameters, arrays: Arrays) -> NDArray[np.bool_]:
    signs = [array.reshape(len(array), -1) >> 31 for array in arrays.values()]
    inside: NDArray[np.bool_] = np.all(np.concatenate(signs, axis=1) == 0, axis=1)
    return inside


def exact_stored(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the scales of a state with the exact model."""
    from mor_ref.exact.fp8lm_adam import stored_scales

    names = (*(f"{name}_amax" for name in _STATE), "previous")
    columns = [numbers_of(arrays[name], "f32") for name in names]
    scales = [stored_scales(row[:3], row[3]) for row in zip(*columns, strict=True)]
    return {
        f"{name}_scale": f32_array(row_scales[k] for row_scales in scales)
        for k, name in enumerate(_STATE)
    }


def engine_stored(_: Parameters, arrays: Arrays) -> Arrays:
    """Compute the scales of a state as a step of Adam does."""
    from mor_ref.fp8lm import stored_scales

    names = (*(f"{name}_amax" for name in _STATE), "previous")
    columns = [arrays[name].view(np.float32).tolist() for name in names]
    scales = [stored_scales(row[:3], row[3]) for row in zip(*columns, strict=True)]
    table = np.array(scales, np.float32).reshape(-1, len(_STATE))
    return {f"{name}_scale": bits32(table[:, k]) for k, name in enumerate(_STATE)}


def cuda_stored(device: "Device", _: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Compute the scales of a state on a device."""
    from mor_ref.cuda.fp8lm_state import stored_scales

    amaxes = [arrays[f"{name}_amax"] for name in _STATE]
    return stored_scales(device, amaxes, arrays["previous"])


def random_stored(_: Parameters, draws: Draws) -> Arrays:
    """Draw amaxes of both moments and of the weights, and scales of the weights before."""
    wider = Draws(draws.first * len(_STATE), draws.count * len(_STATE), draws.seed)
    drawn = {fmt: random_inputs({"format": fmt}, wider) for fmt in ("e4m3", "f16")}
    first, second, master = (drawn[fmt] for fmt in ("e4m3", "f16", "f16"))
    return {
        "first_amax": first["amax"][0::3],
        "second_amax": second["amax"][1::3],
        "master_amax": master["amax"][2::3],
        "previous": master["previous"][2::3],
    }


FP8LM_SHARED = Operation(
    "fp8lm_shared",
    kinds("format:fp8lm_format reduction profile:fp8lm_profile"),
    inputs=fields("nk amax f32"),
    outputs=fields("nk rank_scale f32; n scale,scale_inv f32; nk requantized u8"),
    exact=exact_shared,
    engine=engine_shared,
    cuda=cuda_shared,
    random=RandomInputs(random_shared, _are_amaxes, "an amax has no sign bit"),
    widths=(1, _MOST_RANKS),
)
FP8LM_STORED = Operation(
    "fp8lm_stored",
    {},
    inputs=fields("n first_amax,second_amax,master_amax,previous f32"),
    outputs=fields("n first_scale,second_scale,master_scale f32"),
    exact=exact_stored,
    engine=engine_stored,
    cuda=cuda_stored,
    random=RandomInputs(random_stored, _are_amaxes, "an amax has no sign bit"),
)
