"""4 over 6 with other sums of errors."""

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_candidates import (
    SIX,
    THREE_HALVES,
    chosen,
    in_halves,
    left_to_right,
    restored,
    scales,
    under,
)
from wrong.nvfp4_parts import F32, FOUR_OVER_SIX, registrar

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)


def threads(terms, of_each, tree):
    """Return the sums of rows, in which each thread sums some neighbours."""
    parts = terms.reshape(*terms.shape[:2], -1, of_each)
    parts = np.add.accumulate(parts, axis=3)[..., -1]
    while tree and parts.shape[2] > 1:
        half = parts.shape[2] // 2
        parts = parts[:, :, :half] + parts[:, :, half:]
    return np.add.accumulate(parts, axis=2)[:, :, -1]


@wrong("errors are summed in binary64, and rounded at the end", *FOUR_OVER_SIX)
def summed_in_float64(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = terms.sum((1, 2), keepdims=True, dtype=np.float64).astype(F32)
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("16 lanes add their elements by shuffles", *FOUR_OVER_SIX)
def summed_by_a_butterfly(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(threads(terms, 1, tree=True))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("4 threads load 4 elements each, and are added as a tree", *FOUR_OVER_SIX)
def summed_by_four(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(threads(terms, 4, tree=True))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("4 threads load 4 elements each, and are added in turn", *FOUR_OVER_SIX)
def summed_by_four_in_turn(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(threads(terms, 4, tree=False))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("2 threads load 8 elements each", *FOUR_OVER_SIX)
def summed_by_eight(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(threads(terms, 8, tree=True))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("sums run down the columns, and over columns as a tree", *FOUR_OVER_SIX)
def summed_by_columns(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(left_to_right(terms.swapaxes(1, 2)))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("sums run from right to left", *FOUR_OVER_SIX)
def summed_backwards(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(left_to_right(terms[:, :, ::-1]))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("np.sum adds pairwise, in its own order", *FOUR_OVER_SIX)
def summed_by_numpy(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = terms.reshape(len(terms), 1, -1).sum(2, keepdims=True)
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("sums of rows are compensated, after Kahan", *FOUR_OVER_SIX)
def summed_with_compensation(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        rows = rest = np.zeros(x.shape[:2], F32)
        for i in range(x.shape[2]):
            term = terms[:, :, i] - rest
            rest = (rows + term - rows) - term
            rows = rows + term
        error = in_halves(rows)
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong(
    "one thread adds the tile from its first element to its last",
    *FOUR_OVER_SIX,
    square=True,
)
def summed_by_one_thread(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = left_to_right(terms.reshape(len(terms), 1, -1))[:, :, None]
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong(
    "the sums of rows are added one after the other",
    *FOUR_OVER_SIX,
    square=True,
)
def rows_in_turn(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = left_to_right(left_to_right(terms)[:, None, :])[:, :, None]
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong(
    "the sums of rows are added to those of neighbours, not in halves",
    *FOUR_OVER_SIX,
    square=True,
)
def rows_by_neighbours(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        rows = left_to_right(terms)
        while rows.shape[1] > 1:
            rows = rows[:, ::2] + rows[:, 1::2]
        error = rows[:, :, None]
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("the error is a mean", *FOUR_OVER_SIX)
def mean_of_errors(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = in_halves(left_to_right(terms)) / F32(terms[0].size)
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("the error is the root of the sum", *FOUR_OVER_SIX)
def root_of_errors(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = np.sqrt(in_halves(left_to_right(terms)))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("the error is the largest of the tile", *FOUR_OVER_SIX)
def largest_error(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        error = terms.max((1, 2), keepdims=True)
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)


@wrong("each error is rounded to bfloat16", *FOUR_OVER_SIX)
def errors_in_bfloat16(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        coarse = terms.astype(ml_dtypes.bfloat16).astype(F32)
        error = in_halves(left_to_right(coarse))
        candidates.append(of)
        errors.append(error)
    return chosen(*candidates, *errors)
