"""4 over 6 with other errors of an element, including fused ones."""

import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_candidates import (
    ONE,
    SIX,
    SQUARES,
    THREE_HALVES,
    chosen,
    in_halves,
    left_to_right,
    restored,
    scales,
    under,
)
from wrong.nvfp4_parts import E2M1, E4M3, F32, FOUR_OVER_SIX, fma, registrar

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)


@wrong("squares are added by fma, as nvcc contracts", *SQUARES)
def squares_by_fma(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = restored(of, amax, q) - x
        acc = np.zeros(x.shape[:2], F32)
        for i in range(x.shape[2]):
            acc = fma(e[:, :, i], e[:, :, i], acc)
        candidates.append(of)
        errors.append(in_halves(acc))
    return chosen(*candidates, *errors)


@wrong("e is fma(v * w, amax / Q, -x)", *FOUR_OVER_SIX)
def difference_by_fma(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    unit = amax / q
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = fma(E2M1[of["code"]] * E4M3[of["block_scale"]], unit, -x)
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is fma(v * w * amax, 1 / Q, -x), squared by fma", *FOUR_OVER_SIX)
def all_by_fma(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    inverse = ONE / q
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = fma(E2M1[of["code"]] * E4M3[of["block_scale"]] * amax, inverse, -x)
        acc = np.zeros(x.shape[:2], F32)
        for i in range(x.shape[2]):
            one = e[:, :, i]
            acc = acc + np.abs(one) if "mae" in profile else fma(one, one, acc)
        candidates.append(of)
        errors.append(in_halves(acc))
    return chosen(*candidates, *errors)


@wrong("e is (v * w) * (amax / Q) - x", *FOUR_OVER_SIX)
def amax_over_q_first(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        w = E4M3[of["block_scale"]]
        e = v * w * (amax / q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is v * (w * amax) / Q - x", *FOUR_OVER_SIX)
def scale_times_amax_first(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        w = E4M3[of["block_scale"]]
        e = v * (w * amax) / q - x
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is (v * w / Q) * amax - x", *FOUR_OVER_SIX)
def over_q_first(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        w = E4M3[of["block_scale"]]
        e = v * w / q * amax - x
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is v * w * amax * RN(1 / Q) - x", *FOUR_OVER_SIX)
def times_reciprocal_of_q(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        w = E4M3[of["block_scale"]]
        e = v * w * amax * (ONE / q) - x
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is y - x, by S_dec in place of amax / Q", *FOUR_OVER_SIX)
def error_of_y(profile, x, amax):
    _, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = of["y"] - x
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is (v - xs) * decode", *FOUR_OVER_SIX)
def error_of_scaled(profile, x, amax):
    _, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        e = (v - of["xs"]) * of["decode_scale"]
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is v - xs, so that the candidates have different units", *FOUR_OVER_SIX)
def error_without_scale(profile, x, amax):
    _, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        e = v - of["xs"]
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is relative to x", *FOUR_OVER_SIX)
def relative_error(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        w = E4M3[of["block_scale"]]
        e = np.where(x == 0, F32(0), (v * w * amax / q - x) / x)
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is computed in binary64 and rounded at the end", *FOUR_OVER_SIX)
def difference_in_float64(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        v = E2M1[of["code"]]
        w = E4M3[of["block_scale"]]
        e = (np.float64(1) * v * w * amax / q - x).astype(F32)
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)
