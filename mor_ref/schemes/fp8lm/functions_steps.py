"""FP8-LM: the all-reduce of gradients, and Adam with states of 6 bytes for each parameter."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.dequantization import WithY
from mor_ref.argument_checks import known_name
from mor_ref.arrays import Bits, code_dtype, unsigned_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions.format import Format
from mor_ref.records import Record
from mor_ref.schemes.fp8lm.definition import (
    BY_AMAX,
    FIRST_MOMENT,
    MASTER,
    REDUCTIONS,
    SECOND_MOMENT,
    SUMS,
    Adam,
    ScaleProfile,
    check_rate,
    format_of,
)
from mor_ref.schemes.fp8lm.functions import (
    Cast,
    Floats,
    cast,
    described,
    floats,
    inverse,
    scale,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class SharedScale(WithY):
    """The mean of the tensors of all ranks.

    `rank_scale`, `requantized` and `rank_codes` have an entry for each rank; `codes` and `y` are
    the result. `scale` multiplies the numbers of the ranks, and `scale_inv` those of the codes of
    the sum, which it also divides by the count of the ranks.

    >>> import mor_ref
    >>> mean = mor_ref.fp8lm.shared_scale([[1.0, 2.0], [4.0, 0.5]])
    >>> (mor_ref.decode(mean.codes, "e4m3") * mean.scale_inv).tolist() == mean.y.tolist()
    True
    """

    rank_scale: Floats
    scale: np.float32
    scale_inv: np.float32
    requantized: NDArray[np.bool_]
    rank_codes: Bits
    codes: Bits
    y: Floats

    def __repr__(self) -> str:
        ranks = counted(self.rank_scale.size, "rank")
        return f"<{described(self.codes)}, the mean of {ranks}, scale {self.scale}>"


@dataclass(frozen=True, eq=False, repr=False)
class AdamState(Record):
    """The state of Adam: the moments in e4m3 and f16, and master weights in f16.

    Each of the three is a `Cast`, whose `scale` multiplies the numbers.

    >>> from mor_ref import fp8lm
    >>> state = fp8lm.begin_adam([0.5, -2.0])
    >>> state, state.master.dequantize().tolist()
    (<state of Adam at step 0, of 2 weights>, [0.5, -2.0])
    """

    step: int
    first: Cast
    second: Cast
    master: Cast

    def __repr__(self) -> str:
        weights = counted(self.master.size, "weight")
        return f"<state of Adam at step {self.step}, of {weights}>"


@public
def shared_scale(
    ranks: "Sequence[ArrayLike]",
    *,
    fmt: str = "e4m3",
    profile: str = "paper",
    sums: str = "exact",
    scale_profile: ScaleProfile = "msamp",
) -> SharedScale:
    """Return the mean of a tensor of each rank, as an all-reduce in FP8 has it.

    `profile` is "paper", "msamp_min", "msamp_max" or "msamp_0_4_max". `sums` is "exact" or
    "by_rank".

    >>> from mor_ref import fp8lm
    >>> mean = fp8lm.shared_scale([[1.0, 2.0], [4.0, 0.5]])
    >>> mean.scale, mean.requantized.tolist(), mean.y.tolist()
    (np.float32(64.0), [True, True], [2.5, 1.25])
    """
    known_name("profile", profile, REDUCTIONS)
    known_name("sums", sums, SUMS)
    x = _tensors_of_ranks(ranks)
    target = format_of(fmt)
    from mor_ref.schemes.fp8lm.engine_tensors import all_reduce, largest_magnitude  # imports Numba

    amax = np.array([largest_magnitude(tensor) for tensor in x], np.float32)
    rank_scales, shared, back, changed = shared_scales(amax, fmt, profile, scale_profile)
    second_scales = [shared if changes and profile not in BY_AMAX else None for changes in changed]
    first_scales = np.full_like(rank_scales, shared) if profile in BY_AMAX else rank_scales
    rank_factors = list(zip(first_scales, inverse(first_scales), second_scales, strict=True))
    codes, added, y = all_reduce(x, rank_factors, target, sums, back)
    shape = x[0].shape
    rank_codes = codes.reshape(len(x), *shape)
    return SharedScale(
        rank_scales, shared, back, changed, rank_codes, added.reshape(shape), y.reshape(shape)
    )


def _tensors_of_ranks(ranks: "Sequence[ArrayLike]") -> list[Floats]:
    """Return the tensors of all ranks; refuse an empty list, and shapes that differ."""
    tensors = [floats(f"ranks[{i}]", tensor) for i, tensor in enumerate(ranks)]
    if not tensors:
        raise ValueError("ranks is empty; give a tensor for each rank")
    for i, tensor in enumerate(tensors):
        if tensor.shape != tensors[0].shape:
            raise ValueError(
                f"ranks[{i}] has the shape {tensor.shape}, but ranks[0] has "
                f"{tensors[0].shape}; give tensors of one shape"
            )
    return tensors


@public
def shared_scales(
    amax: Floats, fmt: str, profile: str, scale_profile: ScaleProfile
) -> tuple[Floats, np.float32, np.float32, NDArray[np.bool_]]:
    """Return the scales of ranks, the shared one, its inverse by their count, and who requantizes.

    `amax` has the amax of each rank (FLM-007, FLM-008).
    """
    rank_scales, count = scale(amax, fmt=fmt, profile=scale_profile).scale, np.float32(amax.size)
    if profile in BY_AMAX:
        whole = np.float32(scale(amax.max(), fmt=fmt, profile=scale_profile).scale)
        by_vendor = whole * np.float32(1 / math.sqrt(amax.size))
        shared = np.float32(whole / np.sqrt(count) if profile == "msamp_max" else by_vendor)
    else:
        shared = np.float32(rank_scales.min())
    with np.errstate(all="ignore"):
        back = np.float32(inverse(shared) / count)
    return rank_scales, shared, back, (rank_scales != shared) | (profile != "msamp_min")


@public
def sums_of(codes: Bits, fmt: Format, sums: str) -> Bits:
    """Return the codes of sums of ranks, whose codes are along the first axis (FLM-009).

    `sums` is "exact" or "by_rank".
    """
    from mor_ref.schemes.fp8lm import engine_tensors as fp8lm_tensors

    rank_codes = unsigned_from(codes, fmt.bits, code_dtype(fmt), "codes")
    return fp8lm_tensors.sums_of(rank_codes, fmt, sums)


@public
def begin_adam(parameters: "ArrayLike") -> AdamState:
    """Return the state of Adam before the first step, with these parameters as master weights."""
    from mor_ref.schemes.fp8lm.engine_tensors import largest_magnitude  # imports Numba

    w = floats("parameters", parameters)
    zeros = np.zeros_like(w)
    factor = float(scale(largest_magnitude(w), fmt=MASTER).scale)
    return AdamState(
        0,
        cast(zeros, 1.0, fmt=FIRST_MOMENT),
        cast(zeros, 1.0, fmt=SECOND_MOMENT),
        cast(w, factor, fmt=MASTER),
    )


@public
def adam(
    state: AdamState,
    gradient: "ArrayLike",
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> AdamState:
    """Return the state of Adam after a step; each number is rounded to binary32 first.

    The weight decay is as in AdamW: it shrinks the weights, and is not added to the gradient.

    >>> from mor_ref import fp8lm
    >>> after = fp8lm.adam(fp8lm.begin_adam([1.0, -2.0]), [0.5, 0.25], lr=0.125)
    >>> after.step, after.master.y.tolist(), after.first.codes.tolist()
    (1, [0.875, -2.125], [125, 117])
    """
    arguments = Adam(lr, beta1, beta2, eps, weight_decay)
    with np.errstate(over="ignore"):
        rounded = Adam(*np.array(arguments, np.float64).astype(np.float32))
    for name, argument, number in zip(Adam._fields, arguments, rounded, strict=True):
        check_rate(name, argument, number, 1 if name in ("beta1", "beta2") else math.inf)
    g = floats("gradient", gradient)
    if g.shape != state.master.codes.shape:
        raise ValueError(
            f"gradient has shape {g.shape}, but the state has {state.master.codes.shape}; "
            "give a number for each parameter"
        )
    return _after_step(state, g, rounded)


def _after_step(state: AdamState, g: NDArray[np.float32], numbers: Adam) -> AdamState:
    """Return the state after a step with a gradient."""
    from mor_ref.schemes.fp8lm.engine import rate_and_root  # imports Numba
    from mor_ref.schemes.fp8lm.engine_adam import after_step

    old = (state.first, state.second, state.master)
    kinds = (FIRST_MOMENT, SECOND_MOMENT, MASTER)
    inverses = np.array([moment.scale_inv for moment in old], np.float32)
    lr, beta1, beta2 = (float(number) for number in numbers[:3])
    rates = rate_and_root(lr, beta1, beta2, state.step + 1)
    updated, amaxes = after_step(g, [moment.codes for moment in old], inverses, numbers, *rates)
    factors = stored_scales([*map(float, amaxes)], float(state.master.scale))
    new = [
        _cast_in_place(moment, np.float32(factor), format_of(kind))
        for moment, factor, kind in zip(updated, factors, kinds, strict=True)
    ]
    return AdamState(state.step + 1, new[0], new[1], new[2])


def _cast_in_place(x: Floats, scale: np.float32, fmt: Format) -> Cast:
    """Return a cast of x, whose array has y from then on (FLM-014)."""
    from mor_ref.schemes.fp8lm.engine_tensors import recast  # imports Numba

    back = inverse(scale)
    return Cast(recast(x, scale, back, fmt), scale, back, x)


@public
def stored_scales(amaxes: "Sequence[float]", master: float) -> list[float]:
    """Return the scales of both moments and of the weights, given their scale before (FLM-014)."""
    kinds, before = (FIRST_MOMENT, SECOND_MOMENT, MASTER), (1.0, 1.0, master)
    return [
        float(scale(amax, previous, fmt=kind).scale)
        for amax, previous, kind in zip(amaxes, before, kinds, strict=True)
    ]
