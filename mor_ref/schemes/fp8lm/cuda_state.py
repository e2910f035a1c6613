"""States of FP8-LM on a device."""

import math

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.schemes.fp8lm.cuda import scales, scaling
from mor_ref.schemes.fp8lm.definition import (
    FIRST_MOMENT,
    MASTER,
    PAPER_WINDOW,
    REDUCTIONS,
    SECOND_MOMENT,
)

_GROWTH = rows.structure("u4 is_paper; f4 threshold,growth")
_ONE = 0x3F800000
_FORMATS = {"first": FIRST_MOMENT, "second": SECOND_MOMENT, "master": MASTER}


def windows(device: Device, amax: Array, window: Array) -> Array:
    """Return the largest number of each window after each step (FLM-006)."""
    largest = device.empty(amax.shape, np.uint32)
    sides = [np.uint64(side) for side in amax.shape]
    launch(device, "fp8lm_state", "fp8lm_windows", amax.shape[0], amax, window, *sides, largest)
    return largest


def shared_scales(
    device: Device, amax: Array, fmt: Format, reduction: str, profile: str
) -> dict[str, Array]:
    """Return the scales of the ranks of each row, and the shared one (FLM-007, FLM-008)."""
    height, ranks = amax.shape
    by_name = {
        "rank_scale": device.empty((height, ranks), np.uint32),
        "scale": device.empty((height,), np.uint32),
        "scale_inv": device.empty((height,), np.uint32),
        "requantized": device.empty((height, ranks), np.uint8),
    }
    by_root = np.float32(1 / math.sqrt(ranks))
    rules = scaling(fmt, 0, profile), np.uint32(REDUCTIONS.index(reduction)), by_root
    arguments = (amax, np.uint64(height), np.uint64(ranks), *rules, *by_name.values())
    launch(device, "fp8lm_state", "fp8lm_shared_scales", height, *arguments)
    return by_name


def stored_scales(device: Device, amaxes: list[Array], previous: Array) -> dict[str, Array]:
    """Return the scales of both moments and of the weights, given their amaxes (FLM-014)."""
    ones = device.upload(np.full(previous.shape, _ONE, np.uint32))
    before = {"first": ones, "second": ones, "master": previous}
    return {
        f"{name}_scale": scales(device, amax, before[name], formats[fmt], 0, "msamp")["scale"]
        for (name, fmt), amax in zip(_FORMATS.items(), amaxes, strict=True)
    }


def mus(
    device: Device,
    saturated: Array,
    size: Array,
    mu: Array,
    profile: str,
    threshold: float,
    window: int,
) -> Array:
    """Return mu after each step (FLM-010).

    No 2^(1/w) of up to 2^16 steps is within 5,000 steps of binary64 of a tie of binary32.
    """
    steps = PAPER_WINDOW if profile == "paper" else window
    rule = rows.row(
        _GROWTH, is_paper=profile == "paper", threshold=threshold, growth=2.0 ** (1.0 / steps)
    )
    next_mus = device.empty(saturated.shape, np.uint32)
    sides = [np.uint64(side) for side in saturated.shape]
    launch(
        device, "fp8lm_state", "fp8lm_mus", saturated.shape[0], saturated, size, mu, *sides, rule,
        next_mus,
    )  # fmt: skip
    return next_mus
