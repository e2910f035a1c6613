"""Levels with a mistake in alpha: the statistic of a row, its divisor or its limit."""

import numpy as np

from wrong.levels_right import (
    LIMITS,
    LSQ,
    SEQ,
    Register,
    alphas,
    finished,
    limited,
    means,
    rn_of,
    rounded,
    starts,
)
from wrong.microscaling import f32

KERNELS = Register()
WHOLE, ONE = ("levels",), ("levels_element",)
SMALL = {"levels": "No matrix of it is so large."}


def first(name, mistake, kinds=tuple(LIMITS), arithmetics=("f32", "bf16"), unseen=None):
    """Register a kernel of matrices with first alphas from a function of (w, kind, rn)."""

    def take(function):
        @KERNELS.levels(name, mistake, kinds, arithmetics, WHOLE, unseen)
        def run(w, _given, kind, how):
            rn = rn_of(how)
            return finished(w, limited(function(w, kind, rn), rn), kind, rn)

        return function

    return take


@first("by_2_to_the_b", "The divisor is 2^(b - 1).", LSQ)
def _by_2_to_the_b(w, kind, rn):
    return rn(np.abs(rn(w)).max(axis=1, keepdims=True) / f32(-LIMITS[kind][0]))


@first("by_half_the_range", "The divisor is half of 2^b - 1, as in torch's observers.", LSQ)
def _by_half_the_range(w, kind, rn):
    low, high = LIMITS[kind]
    return rn(np.abs(rn(w)).max(axis=1, keepdims=True) / f32((high - low) / 2))


@first("by_a_reciprocal", "max|w| is multiplied by 1 / 7 or 1 / 3.", LSQ)
def _by_a_reciprocal(w, kind, rn):
    return rn(np.abs(rn(w)).max(axis=1, keepdims=True) * rn(f32(1) / f32(LIMITS[kind][1])))


@first("max_of_both_signs", "The maximum is of w, not of |w|.", (*LSQ, *SEQ))
def _max_of_both_signs(w, kind, rn):
    return rn(rn(w).max(axis=1, keepdims=True) / f32(LIMITS[kind][1] if kind in LSQ else 1))


@first("without_nan", "The maximum skips NaN, as fmax does.", (*LSQ, *SEQ))
def _without_nan(w, kind, rn):
    top = np.fmax.reduce(np.abs(rn(w)), axis=1, keepdims=True)
    return rn(top / f32(LIMITS[kind][1] if kind in LSQ else 1))


@first("without_infinities", "The maximum is of finite numbers.", (*LSQ, *SEQ))
def _without_infinities(w, kind, rn):
    size = np.abs(rn(w))
    top = np.where(np.isinf(size), 0, size).max(axis=1, keepdims=True)
    return rn(top / f32(LIMITS[kind][1] if kind in LSQ else 1))


@first("of_the_matrix", "All rows have the alpha of the matrix.")
def _of_the_matrix(w, kind, rn):
    return np.repeat(starts(w.reshape(1, -1), kind, rn), len(w), axis=0)


@first("max_for_one_bit", "One bit has max|w|, as two bits have.", ("elastic1",))
def _max_for_one_bit(w, _kind, rn):
    return starts(w, "seq2", rn)


@first("mean_for_two_bits", "Two bits have mean|w|, as one bit has.", SEQ)
def _mean_for_two_bits(w, _kind, rn):
    return starts(w, "elastic1", rn)


@first("mean_of_those_that_are_not_zero", "Zeros do not count in the mean.", ("elastic1",))
def _mean_of_those_that_are_not_zero(w, _kind, rn):
    return rn(np.concatenate([means(row[row != 0][None]) if row.any() else means(row[None])
                              for row in np.abs(rn(w))]))  # fmt: skip


@first("sum_in_binary32", "The mean is a sum in binary32 from the left, divided.", ("elastic1",))
def _sum_in_binary32(w, _kind, rn):
    total = np.cumsum(np.abs(rn(w)), axis=1, dtype=np.float32)[:, -1:]
    return rn(total / f32(w.shape[1]))


@first("sum_times_reciprocal", "The sum is rounded, and multiplied by 1 / n.", ("elastic1",))
def _sum_times_reciprocal(w, _kind, rn):
    total = np.abs(rn(w)).astype(np.float64).sum(axis=1, keepdims=True).astype(np.float32)
    return rn(total * f32(1 / w.shape[1]))


@first("sum_in_binary64", "The mean is of binary64, rounded at last.", ("elastic1",))
def _sum_in_binary64(w, _kind, rn):
    total = np.abs(rn(w)).astype(np.float64).sum(axis=1, keepdims=True)
    return rn((total / w.shape[1]).astype(np.float32))


@first("parts_in_binary64", "Each |w| is divided by n in binary64, and added.", ("elastic1",))
def _parts_in_binary64(w, _kind, rn):
    parts = np.abs(rn(w)).astype(np.float64) / w.shape[1]
    return rn(parts.sum(axis=1, keepdims=True).astype(np.float32))


@first("reciprocal_in_binary64", "A sum of binary64 is multiplied by 1 / n.", ("elastic1",))
def _reciprocal_in_binary64(w, _kind, rn):
    total = np.abs(rn(w)).astype(np.float64).sum(axis=1, keepdims=True)
    return rn((total * (1 / w.shape[1])).astype(np.float32))


@first("sum_in_bfloat16", "The sum is of bfloat16.", ("elastic1",), ("bf16",))
def _sum_in_bfloat16(w, _kind, rn):
    total = np.zeros((len(w), 1), np.float32)
    for column in np.abs(rn(w)).T:
        total = rounded(total + column[:, None])
    return rn(total / f32(w.shape[1]))


@first("first_1024_columns", "A row has 1,024 threads, a thread a weight.", unseen=SMALL)
def _first_1024_columns(w, kind, rn):
    return starts(np.ascontiguousarray(w[:, :1024]), kind, rn)


@first("whole_fours", "Weights are read four at a time; the last ones of a row do not count.")
def _whole_fours(w, kind, rn):
    whole = w.shape[1] // 4 * 4 or w.shape[1]
    return starts(np.ascontiguousarray(w[:, :whole]), kind, rn)


@first("of_columns", "The alphas are computed from columns.")
def _of_columns(w, kind, rn):
    return np.resize(starts(np.ascontiguousarray(w.T), kind, rn), (len(w), 1))


def used(name, mistake, operations=("levels", "levels_element"), arithmetics=("f32", "bf16")):
    """Register a kernel with used alphas from a function of (alpha, rn)."""

    def take(function):
        @KERNELS.levels(name, mistake, operations=operations, arithmetics=arithmetics)
        def run(w, given, kind, how):
            rn = rn_of(how)
            start = starts(w, kind, rn) if given is None else rn(given)
            return finished(w, np.asarray(function(start, rn), np.float32), kind, rn)

        return function

    return take


@used("nan_stays", "max(alpha, 1e-5) keeps NaN, as torch.maximum does.")
def _nan_stays(alpha, rn):
    return np.maximum(alpha, rn(f32(1e-5)))


@used("no_smallest_alpha", "Nothing limits alpha.")
def _no_smallest_alpha(alpha, _rn):
    return alpha


@used("epsilon_added", "1e-5 is added.")
def _epsilon_added(alpha, rn):
    return rn(alpha + rn(f32(1e-5)))


@used("magnitude_of_alpha", "A negative alpha counts by its magnitude.", ONE)
def _magnitude_of_alpha(alpha, rn):
    return limited(np.abs(alpha), rn)


@used("at_least_the_epsilon_of_binary32", "The smallest alpha is 2^-23.")
def _at_least_the_epsilon_of_binary32(alpha, _rn):
    return np.where(alpha > f32(2**-23), alpha, f32(2**-23))


@used("smallest_in_binary32", "1e-5 is not rounded to bfloat16.", arithmetics=("bf16",))
def _smallest_in_binary32(alpha, _rn):
    return np.where(alpha > f32(1e-5), alpha, f32(1e-5))


@used("one_for_no_alpha", "An alpha that is too small becomes 1.")
def _one_for_no_alpha(alpha, rn):
    return np.where(alpha > rn(f32(1e-5)), alpha, f32(1))


@KERNELS.levels("alpha_not_rounded", "A given alpha stays in binary32.", arithmetics=("bf16",),
                operations=ONE)  # fmt: skip
def _alpha_not_rounded(w, given, kind, how):
    rn = rn_of(how)
    return finished(w, limited(given, rn), kind, rn)


@KERNELS.levels("rows_of_four", "Rows behind the last multiple of four are never launched.",
                operations=WHOLE)  # fmt: skip
def _rows_of_four(w, given, kind, how):
    rn, whole = rn_of(how), len(w) // 4 * 4
    found = finished(w, alphas(w, given, kind, rn), kind, rn)
    return [np.where(np.arange(len(w))[:, None] < whole, part, 0) for part in found]
