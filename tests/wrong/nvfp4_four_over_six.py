"""4 over 6 with other candidates, choices and ranges."""

import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_candidates import (
    ONE,
    SIX,
    THREE_HALVES,
    chosen,
    in_halves,
    left_to_right,
    restored,
    scales,
    under,
)
from wrong.nvfp4_parts import E4M3, F32, FLT_MAX, FOUR_OVER_SIX, e4m3, largest, registrar

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
FEW = {"te_4over6_mse": "few of its tiles take four, and none is such"}


def error(profile, x, of, amax, q):
    """Return the error of a candidate."""
    e = restored(of, amax, q) - x
    return in_halves(left_to_right(np.abs(e) if "mae" in profile else e * e))


def both(profile, x, amax, q, b, s_enc, s_dec, base, raised):
    """Return the fields of tiles with two scales, given before they are encoded."""
    six, four = under(x, base, b, s_enc, s_dec), under(x, raised, b, s_enc, s_dec)
    return chosen(six, four, error(profile, x, six, amax, q), error(profile, x, four, amax, q))


@wrong("s4 is the code of 1.5 times the number of s6", *FOUR_OVER_SIX)
def four_from_stored_six(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    raised = THREE_HALVES * E4M3[e4m3(base)]
    return both(profile, x, amax, q, b, s_enc, s_dec, base, raised)


@wrong("s4 is the code of (bamax / 4) * S_enc", *FOUR_OVER_SIX)
def four_by_division(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base, raised = b / SIX * s_enc, b / F32(4) * s_enc
    return both(profile, x, amax, q, b, s_enc, s_dec, base, raised)


@wrong("s4 is the code of ((1.5 * bamax) / 6) * S_enc", *FOUR_OVER_SIX)
def four_from_raised_amax(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base, raised = b / SIX * s_enc, THREE_HALVES * b / SIX * s_enc
    return both(profile, x, amax, q, b, s_enc, s_dec, base, raised)


@wrong("s4 is the code of (bamax / 6) * (1.5 * S_enc)", *FOUR_OVER_SIX)
def four_from_raised_s_enc(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base, raised = b / SIX * s_enc, b / SIX * (THREE_HALVES * s_enc)
    return both(profile, x, amax, q, b, s_enc, s_dec, base, raised)


@wrong("s4 is the code of ((bamax / 6) * 1.5) * S_enc", *FOUR_OVER_SIX)
def four_from_raised_sixth(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    sixth = b / SIX
    raised = sixth * THREE_HALVES * s_enc
    return both(profile, x, amax, q, b, s_enc, s_dec, sixth * s_enc, raised)


@wrong("both scales are computed in binary64", *FOUR_OVER_SIX)
def scales_in_float64(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    product = b.astype(np.float64) * s_enc.astype(np.float64)
    base, raised = (product / 6).astype(F32), (product / 4).astype(F32)
    return both(profile, x, amax, q, b, s_enc, s_dec, base, raised)


@wrong("base is bamax * (S_enc * RN(1/6)), as in te", *FOUR_OVER_SIX)
def base_as_te(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b * (s_enc * F32(1 / 6))
    return both(profile, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base)


@wrong("base is (bamax * S_enc) / 6", *FOUR_OVER_SIX)
def base_divided_last(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b * s_enc / SIX
    return both(profile, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base)


@wrong("base is bamax / (6 * S_dec)", *FOUR_OVER_SIX)
def base_over_decode_scale(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / (SIX * s_dec)
    return both(profile, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base)


@wrong("1.5 * base is clamped to 256", *FOUR_OVER_SIX)
def four_clamped_to_256(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    raised = np.minimum(THREE_HALVES * base, F32(256))
    return both(profile, x, amax, q, b, s_enc, s_dec, base, raised)


@wrong("a tie of the errors takes four", *FOUR_OVER_SIX)
def tie_takes_four(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    six = under(x, base, b, s_enc, s_dec)
    four = under(x, THREE_HALVES * base, b, s_enc, s_dec)
    e6, e4 = error(profile, x, six, amax, q), error(profile, x, four, amax, q)
    return chosen(six, four, e6, e4, less=e4 <= e6)


@wrong(
    "four is taken unless six is no worse, so that NaN takes four",
    *FOUR_OVER_SIX,
)
def nan_takes_four(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    six = under(x, base, b, s_enc, s_dec)
    four = under(x, THREE_HALVES * base, b, s_enc, s_dec)
    e6, e4 = error(profile, x, six, amax, q), error(profile, x, four, amax, q)
    return chosen(six, four, e6, e4, less=~(e4 >= e6) & ~(e6 == e4))


@wrong("errors of NaN are not added", *FOUR_OVER_SIX)
def nan_has_no_error(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    six, four = (under(x, t, b, s_enc, s_dec) for t in (base, THREE_HALVES * base))
    numbers = np.where(np.isnan(x), F32(0), x)
    e6, e4 = (
        error(profile, numbers, under(numbers, t, b, s_enc, s_dec), amax, q)
        for t in (base, THREE_HALVES * base)
    )
    return chosen(six, four, e6, e4)


@wrong("four is taken if it is better by more than a millionth", *FOUR_OVER_SIX)
def four_by_a_margin(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    six = under(x, base, b, s_enc, s_dec)
    four = under(x, THREE_HALVES * base, b, s_enc, s_dec)
    e6, e4 = error(profile, x, six, amax, q), error(profile, x, four, amax, q)
    return chosen(six, four, e6, e4, less=e4 < e6 * F32(1 - 1e-6))


@wrong("the metrics are swapped", *FOUR_OVER_SIX)
def metrics_swapped(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    other = "mse" if "mae" in profile else "mae"
    return both(other, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base)


@wrong("the ranges 256 and 448 are swapped", *FOUR_OVER_SIX)
def ranges_swapped(profile, x, amax):
    other = profile.removesuffix("_448") if profile.endswith("_448") else f"{profile}_448"
    q, b, s_enc, s_dec = scales(other, x, amax)
    base = b / SIX * s_enc
    return both(profile, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base)


@wrong("the error divides by 2688 in each profile", "te_4over6_mae", "te_4over6_mse")
def error_over_2688(profile, x, amax):
    _, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    return both(profile, x, amax, F32(2688), b, s_enc, s_dec, base, THREE_HALVES * base)


@wrong("the scale of a tile is stored from six, its codes from the better one", *FOUR_OVER_SIX)
def scale_of_six_is_stored(profile, x, amax):
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    fields = dict(both(profile, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base))
    return fields | {"block_scale": e4m3(base)}


@wrong(
    "each row of a tile chooses for itself, and the first row's scale is stored",
    *FOUR_OVER_SIX,
    square=True,
)
def rows_choose(profile, x, amax):
    q, _, s_enc, s_dec = scales(profile, x, amax)
    b = largest(x, (1, 2))
    base = b / SIX * s_enc
    six = under(x, base, b, s_enc, s_dec)
    four = under(x, THREE_HALVES * base, b, s_enc, s_dec)
    e6, e4 = (
        left_to_right(np.abs(e) if "mae" in profile else e * e)[:, :, None]
        for e in (restored(six, amax, q) - x, restored(four, amax, q) - x)
    )
    fields = chosen(six, four, e6, e4)
    return {n: a if a.shape[1:] == x.shape[1:] else a[:, :1] for n, a in fields.items()}


@wrong("S_enc is not clamped, and S_dec is amax / Q", *FOUR_OVER_SIX)
def global_scales_by_division(profile, x, amax):
    q = F32(2688 if profile.endswith("448") else 1536)
    s_enc = np.where(amax == 0, ONE, q / amax)
    s_dec = np.where(amax == 0, ONE, amax / q)
    b = largest(x, (1, 2))
    base = np.minimum(b / SIX * s_enc, FLT_MAX)
    return both(profile, x, amax, q, b, s_enc, s_dec, base, THREE_HALVES * base)
