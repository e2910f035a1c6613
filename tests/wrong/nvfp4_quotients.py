"""4 over 6 with the operations of the errors, or of s4, in other orders that round differently."""

import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_candidates import (
    SIX,
    THREE_HALVES,
    chosen,
    in_halves,
    left_to_right,
    scales,
    under,
)
from wrong.nvfp4_four_over_six import both
from wrong.nvfp4_parts import E2M1, E4M3, F32, FOUR_OVER_SIX, fma, registrar

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
# With te_4over6_mse the errors are the same: if the quotient by 256 is inexact, e * e is 0.
NOT_SQUARES_OF_256 = tuple(profile for profile in FOUR_OVER_SIX if profile != "te_4over6_mse")


def by_differences(profile, x, amax, difference):
    """Return the fields of tiles; e is a function of v, w, x, amax, Q and S_dec."""
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = under(x, t, b, s_enc, s_dec)
        e = difference(E2M1[of["code"]], E4M3[of["block_scale"]], x, amax, q, s_dec)
        terms = np.abs(e) if "mae" in profile else e * e
        candidates.append(of)
        errors.append(in_halves(left_to_right(terms)))
    return chosen(*candidates, *errors)


@wrong("e is v * ((w * amax) / Q) - x", *FOUR_OVER_SIX)
def decode_of_the_error_first(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: v * (w * amax / q) - x)


@wrong("e is fma(v, (w * amax) / Q, -x)", *FOUR_OVER_SIX)
def decode_of_the_error_fused(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: fma(v, w * amax / q, -x))


@wrong("e is v * (w * (amax / Q)) - x", *FOUR_OVER_SIX)
def decode_by_amax_over_q(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: v * (w * (amax / q)) - x)


@wrong("e is v * ((w / Q) * amax) - x", *FOUR_OVER_SIX)
def decode_by_scale_over_q(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: v * (w / q * amax) - x)


@wrong("e is ((v * amax) * w) / Q - x", *FOUR_OVER_SIX)
def element_times_amax_first(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: v * amax * w / q - x)


@wrong("e is ((v * amax) / Q) * w - x", *FOUR_OVER_SIX)
def element_over_q_before_scale(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: v * amax / q * w - x)


@wrong("e is (v * (amax / Q)) * w - x", *FOUR_OVER_SIX)
def element_by_amax_over_q(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, amax, q, _: v * (amax / q) * w - x)


@wrong("e is fma(v, w * S_dec, -x)", *FOUR_OVER_SIX)
def error_of_y_fused(profile, x, amax):
    return by_differences(profile, x, amax, lambda v, w, x, _amax, _q, s_dec: fma(v, w * s_dec, -x))


@wrong("e is (((v * w) * amax) / (Q / 6)) / 6 - x", *NOT_SQUARES_OF_256)
def divided_by_range_then_six(profile, x, amax):
    return by_differences(
        profile, x, amax, lambda v, w, x, amax, q, _: v * w * amax / (q / SIX) / SIX - x
    )


@wrong("e is (((v * w) * amax) / 6) / (Q / 6) - x", *NOT_SQUARES_OF_256)
def divided_by_six_then_range(profile, x, amax):
    return by_differences(
        profile, x, amax, lambda v, w, x, amax, q, _: v * w * amax / SIX / (q / SIX) - x
    )


@wrong("s4 is the code of base / RN(2/3)", *FOUR_OVER_SIX)
def four_over_two_thirds(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    return both(profile, x, amax, q, b, s_enc, s_dec, base, base / F32(2 / 3))
