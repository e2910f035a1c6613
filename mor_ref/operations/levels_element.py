"""levels_element: one weight as a level, with an alpha that is given."""

from typing import TYPE_CHECKING

import numpy as np

from mor_ref.definitions.levels import CLIP, LevelKind, level_kind
from mor_ref.operations import levels
from mor_ref.operations.bits import f32_array, numbers_of, tensor_of
from mor_ref.operations.fields import fields
from mor_ref.operations.operation import Arrays, DeviceArrays, Operation, Parameters, RandomInputs
from mor_ref.operations.parameters import kinds
from mor_ref.operations.random_blocks import bits_of, values_of
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    any_row,
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
_SPECIALS = np.array(
    [0, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001], _U
)
_SMALLEST = int(np.float32(1e-5).view(np.uint32))


def exact(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize with the exact model."""
    from mor_ref.exact.levels import level_row

    kind, arithmetic = level_kind(parameters["kind"]), parameters["arithmetic"]
    w, alphas = (numbers_of(arrays[name], "f32") for name in ("x", "alpha"))
    rows = [level_row([x], kind, a, arithmetic) for x, a in zip(w, alphas, strict=True)]
    elements = [row.elements[0] for row in rows]
    return {
        "used_alpha": f32_array(row.alpha for row in rows),
        **levels.element_fields(elements, arrays["x"].shape),
    }


def engine(parameters: Parameters, arrays: Arrays) -> Arrays:
    """Quantize a matrix of one column."""
    from mor_ref import quantize_levels

    w, alpha = (tensor_of(arrays[name], "f32") for name in ("x", "alpha"))
    record = quantize_levels(
        w.reshape(-1, 1), parameters["kind"], alpha=alpha, arithmetic=parameters["arithmetic"]
    )
    flat = {name: array.reshape(-1) for name, array in levels.stored(record).items()}
    return {"used_alpha": flat.pop("alpha"), **flat}


def cuda(device: "Device", parameters: Parameters, arrays: DeviceArrays) -> DeviceArrays:
    """Quantize a matrix of one column."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.levels import quantize_levels

    x, alpha = Bits(arrays["x"].reshape(-1, 1), "f32"), arrays["alpha"]
    kind, arithmetic = level_kind(parameters["kind"]), parameters["arithmetic"]
    by_name = quantize_levels(device, x, alpha, kind, arithmetic)._asdict()
    used = by_name.pop("alpha")
    return {"used_alpha": used, **{name: array.reshape(-1) for name, array in by_name.items()}}


def points_of(kind: LevelKind) -> list[float]:
    """Return ratios at which levels or gradients turn: ties and limits."""
    if kind.grid == "integers":
        whole = range(int(kind.lowest) - 2, int(kind.highest) + 3)
        return [ratio for n in whole for ratio in (n, n + 0.5)]
    return [0.0, 1 / 3, 0.5, 2 / 3, CLIP, 1.0, 1 / 4, 3 / 4, -1 / 3, -0.5, -2 / 3, -CLIP, -1.0]


def random_inputs(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw alphas of many binades, and weights next to where levels turn."""
    kind, narrow = level_kind(parameters["kind"]), parameters["arithmetic"] == "bf16"
    choices, words = draws.words(0), draws.words(1)
    field = share(bits_at(choices, 0, 16), 16, 48).astype(np.int64) + 100
    anywhere = share(bits_at(choices, 0, 16), 16, 276).astype(np.int64) - 22
    field = np.where(bits_at(choices, 16, 3) == 0, anywhere, field)
    alpha = magnitudes_of(field, edge_fractions(draws, 2, 1.0), _F32)
    near_smallest = moved(
        np.full(draws.count, _SMALLEST, _U), share(bits_at(choices, 20, 8), 8, 5), _F32.largest
    )
    kind_of_alpha = bits_at(choices, 32, 5)
    alpha = np.where(kind_of_alpha == 0, near_smallest, alpha)
    special = _SPECIALS[share(bits_at(choices, 40, 8), 8, _SPECIALS.size)]
    alpha = np.where(kind_of_alpha == 1, special, alpha)
    alpha = np.where(kind_of_alpha == 2, alpha | _U(1 << 31), alpha)
    points = np.array(points_of(kind))[share(bits_at(words, 0, 16), 16, len(points_of(kind)))]
    with np.errstate(all="ignore"):
        at = np.nan_to_num(np.abs(points * values_of(alpha)), nan=1.0, posinf=1.0)
    step = _U(1 << 16) if narrow else _U(1)
    steps = share(bits_at(words, 16, 16), 16, 5)
    x = moved(bits_of(at) // step, steps, _F32.largest // int(step)) * step
    x = np.where(bits_at(words, 48, 3) == 0, bits_at(words, 16, 31) % _U(_F32.infinity), x)
    lost = _SPECIALS[share(bits_at(words, 36, 8), 8, _SPECIALS.size)]
    x = np.where(bits_at(words, 44, 4) == 0, lost, x)
    signs = np.where(points < 0, _U(1), _U(0)) ^ (bits_at(words, 52, 2) == 0)
    return {"x": x | signs.astype(_U) << _U(31), "alpha": alpha}


LEVELS_ELEMENT = Operation(
    "levels_element",
    kinds("kind:level_kind arithmetic source:f32"),
    inputs=fields("n x,alpha f32"),
    outputs=fields(
        "n used_alpha,ratio,clipped,level f32; n code u8; n y,alpha_term f32; n inside u8"
    ),
    exact=exact,
    engine=engine,
    cuda=cuda,
    random=RandomInputs(
        random_inputs, any_row, ANY_NUMBER, answers=("level", "code", "y", "alpha_term")
    ),
    codes=levels.codes,
)
