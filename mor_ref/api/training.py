"""Delayed scales, random words and stochastic rounding, for training."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.dequantization import OutcomeOfValues, values
from mor_ref.api.stochastic import codes_at_random
from mor_ref.arrays import Bits, Numbers, RandomWords
from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.definitions.scales import ScalingBlocks

_RANDOM_BITS = 32
_FLT_MAX = np.finfo(np.float32).max


def random_words(purpose: tuple[int, int, int, int, int], count: int) -> NDArray[np.uint32]:
    """Return a word of 32 bits for each of so many elements (TRN-007)."""
    seed, step, call, layer, use = purpose
    key, counter = (np.array(words, np.uint64) for words in ((seed, step), (0, call, layer, use)))
    words = np.random.Philox(key=key, counter=counter).random_raw(-(-count // 2))
    return np.asarray(words, "<u8").view("<u4")[:count].astype(np.uint32, copy=False)


def nvfp4_at_random(
    numbers: Numbers,
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    purpose: tuple[int, int, int, int, int],
    blocks: ScalingBlocks,
    out: Bits | None,
    threads: int | None,
) -> OutcomeOfValues:
    """Quantize a tensor to NVFP4 with stochastic rounding (TRN-008); `out` takes y as bfloat16."""
    from mor_ref.engine.block_formats import scales_of
    from mor_ref.engine.dequantization import dequantize

    tiles = partition(numbers.shape, tile)
    sides = tiles.rows, tiles.columns
    scales = scales_of(numbers, nvfp4_formulas(profile, tile), threads).blocks
    words = RandomWords(random_words(purpose, numbers.bits.size), _RANDOM_BITS)
    e2m1 = formats["e2m1"]
    codes = codes_at_random(numbers, e2m1, scales, words, threads)
    y = np.empty(sides, np.float32)
    dequantize(codes.reshape(-1), e2m1, scales, sides, y.reshape(-1).view(np.uint32), threads)
    return values(numbers, y, blocks, out, threads)


def delayed_scale(
    amaxes: Sequence[float], last: float, largest: float, margin: int, *, power_of_two: bool
) -> float:
    """Return the scale that follows from the amaxes of earlier steps (TRN-005)."""
    amax = np.float32(max(amaxes, default=0.0))
    if amax == 0 or not np.isfinite(amax):
        return last
    with np.errstate(over="ignore"):
        ideal = min(np.float32(largest) / amax, _FLT_MAX)
    if power_of_two:
        exponent = int(np.frexp(ideal)[1]) - 1 - margin
        return float(np.ldexp(1.0, min(max(exponent, -126), 127)))
    return float(ideal / np.float32(2.0**margin))


def hadamard_sums(z: Any) -> None:
    """Replace runs along the second of three axes by their sums and differences (TRN-009).

    `z` is an array, or a tensor of torch on any device, whose numbers lie in order.
    """
    from mor_ref.engine.before_blocks import add_and_subtract  # imports Numba

    add_and_subtract(z)
