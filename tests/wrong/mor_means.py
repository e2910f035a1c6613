"""MoR with a mistake in means and comparisons of relative errors."""

import numpy as np

from wrong.microscaling import Register, f32, magnitude_bits, to_bf16
from wrong.mor_right import (
    INFINITE,
    LADDERS,
    LIMITS,
    acceptance,
    fields,
    read,
    tiled,
    written,
)

KERNELS = Register()
mor = KERNELS.mor
MEANS, PAIRS = ("tensor", "nvfp4"), ("two_way", "three_way")
THRESHOLDS = {"e4m3": 0.045, "nvfp4": 0.20}


def relative(x, y):
    """Return relative errors in binary32, and the numbers that have one."""
    pattern = magnitude_bits(x)
    counts = (pattern > 0) & (pattern < INFINITE)
    r = np.where(counts, np.abs(x - y) / np.abs(x), f32(0))
    return r, counts


def lost(x, y):
    """Return which numbers are infinite or NaN in x or in the output."""
    return (magnitude_bits(x) >= INFINITE) | (magnitude_bits(y) >= 0x7F7F8000)


def clean(x, y, unit):
    """Return which units have no lost number."""
    return tiled(lost(x, y), unit, np.logical_or) == 0


def by_units(a, unit):
    """Return the numbers of each unit in a list, and the shape of the grid of units."""
    rows, columns = unit
    grid = [
        a[i : i + rows, j : j + columns].reshape(-1)
        for i in range(0, a.shape[0], rows)
        for j in range(0, a.shape[1], columns)
    ]
    shape = (-(-a.shape[0] // rows), -(-a.shape[1] // columns))
    return grid, shape


def of_units(function, a, unit):
    """Return the results of a function for each unit."""
    grid, shape = by_units(a, unit)
    return np.array([function(part) for part in grid]).reshape(shape)


def shuffled(part):
    """Sum as warps do: 32 lanes add up numbers, then halves are added, all in binary32."""
    lanes = np.zeros(-(-part.size // 32) * 32, np.float32)
    lanes[: part.size] = part
    sums = np.cumsum(lanes.reshape(-1, 32), axis=0, dtype=np.float32)[-1]
    for half in (16, 8, 4, 2, 1):
        sums = sums[:half] + sums[half : 2 * half]
    return sums[0]


def _by_means(sum_of, dtype, thresholds=THRESHOLDS):
    """Run a policy of means, with sums by `sum_of`, and compare each mean with a fraction."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        accepted = []
        for rung in LADDERS[parameters["policy"]]:
            r, counts = relative(x, ys[rung])
            count = tiled(counts, unit, dtype=np.uint64)
            mean = of_units(sum_of, r, unit) / count.astype(dtype)
            good = (mean < dtype(thresholds[rung])) | (count == 0)
            accepted.append(good & clean(x, ys[rung], unit))
        return written(bits_in, parameters, accepted, ys)

    return mixed


mor(
    "mean_by_torch",
    "The mean relative error is a pairwise sum in binary32.",
    MEANS,
)(_by_means(lambda r: np.add.reduce(r, dtype=np.float32), np.float32))
mor(
    "mean_by_warps",
    "The mean relative error is summed by warps in binary32.",
    MEANS,
)(_by_means(shuffled, np.float32))
mor(
    "mean_by_a_loop",
    "The mean relative error is summed in binary32, one by one.",
    MEANS,
)(_by_means(lambda r: np.cumsum(r, dtype=np.float32)[-1], np.float32))
mor("mean_of_ratios", "The mean relative error is summed in binary64.", MEANS)(
    _by_means(lambda r: np.sum(r, dtype=np.float64), np.float64)
)


FRACTIONS = {name: limit / 2**23 for name, limit in LIMITS.items()}
mor(
    "mean_by_torch_of_steps",
    "The mean is a pairwise sum in binary32, compared with T / 2^23.",
    MEANS,
)(_by_means(lambda r: np.add.reduce(r, dtype=np.float32), np.float32, FRACTIONS))
mor(
    "mean_of_ratios_of_steps",
    "The mean of ratios that are never rounded to u is compared with T / 2^23.",
    MEANS,
)(_by_means(lambda r: np.sum(r, dtype=np.float64), np.float64, FRACTIONS))


@mor(
    "mean_of_sums",
    "T is not rounded to an integer: u is compared with t * 2^23.",
    MEANS,
)
def _mean_of_sums(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = []
    for rung in LADDERS[parameters["policy"]]:
        total, count = (found[f"{rung}.{n}"].astype(float) for n in ("sum", "nonzero"))
        good = (total / 2.0**23 / count < THRESHOLDS[rung]) | (count == 0)
        accepted.append(good & (found[f"{rung}.nonfinite"] == 0))
    return found | written(bits_in, parameters, accepted, ys)


@mor("limits_cut", "T is t * 2^23 cut to an integer.", ("nvfp4",))
def _limits_cut(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = []
    for rung in ("nvfp4", "e4m3"):
        total, count = found[f"{rung}.sum"], found[f"{rung}.nonzero"]
        good = (total < np.uint64(THRESHOLDS[rung] * 2**23) * count) | (count == 0)
        accepted.append(good & (found[f"{rung}.nonfinite"] == 0))
    return found | written(bits_in, parameters, accepted, ys)


@mor("limits_raised", "T is t * 2^23 rounded up.", ("tensor",))
def _limits_raised(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    total, count = found["e4m3.sum"], found["e4m3.nonzero"]
    good = (total < np.uint64(377488) * count) | (count == 0)
    return found | written(bits_in, parameters, [good & (found["e4m3.nonfinite"] == 0)], ys)


@mor("mean_over_all", "The mean is over all numbers, zeros too.", ("tensor",))
def _mean_over_all(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    good = (found["e4m3.sum"] < np.uint64(LIMITS["e4m3"] * x.size)) & (found["e4m3.nonfinite"] == 0)
    return found | written(bits_in, parameters, [good], ys)


@mor(
    "zeros_have_no_mean",
    "A unit of zeros has a mean of NaN, and stays as it is.",
    MEANS,
)
def _zeros_have_no_mean(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = []
    for rung in LADDERS[parameters["policy"]]:
        total, count = found[f"{rung}.sum"], found[f"{rung}.nonzero"]
        good = total < np.uint64(LIMITS[rung]) * count
        accepted.append(good & (found[f"{rung}.nonfinite"] == 0))
    return found | written(bits_in, parameters, accepted, ys)


@mor("mean_at_its_limit", "A mean equal to the threshold is accepted.", MEANS)
def _mean_at_its_limit(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = []
    for rung in LADDERS[parameters["policy"]]:
        total, count = found[f"{rung}.sum"], found[f"{rung}.nonzero"]
        good = total <= np.uint64(LIMITS[rung]) * count
        accepted.append(good & (found[f"{rung}.nonfinite"] == 0))
    return found | written(bits_in, parameters, accepted, ys)


def _by_sums(sum_of, is_worse=np.greater):
    """Decide the first rung of two_way and three_way by sums that `sum_of` computes."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        found = fields(x, unit, ys)
        mine, other = (of_units(sum_of, relative(x, ys[n])[0], unit) for n in ("e4m3", "e5m2"))
        accepted = acceptance(parameters, found)
        accepted[0] = ~is_worse(mine, other) & clean(x, ys["e4m3"], unit)
        return written(bits_in, parameters, accepted, ys)

    return mixed


mor(
    "yardstick_by_torch",
    "The two sums are compared as pairwise sums in binary32.",
    PAIRS,
)(_by_sums(lambda r: np.add.reduce(r, dtype=np.float32)))
mor(
    "yardstick_by_warps",
    "The two sums are compared as warps make them in binary32.",
    PAIRS,
)(_by_sums(shuffled))
mor(
    "yardstick_of_ratios",
    "The two sums are compared as sums of ratios in binary64.",
    PAIRS,
)(_by_sums(lambda r: np.sum(r, dtype=np.float64)))
mor("yardstick_of_bf16", "The two sums are compared in bf16.", PAIRS)(
    _by_sums(lambda r: to_bf16(np.add.reduce(r, dtype=np.float32, keepdims=True))[0])
)
mor("yardstick_wins_ties", "A sum equal to the yardstick's is worse.", PAIRS)(
    _by_sums(
        lambda r: np.sum((f32(1) + np.minimum(r, f32(1))).view(np.uint32), dtype=np.uint64),
        np.greater_equal,
    )
)
