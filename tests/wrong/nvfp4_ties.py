"""NVFP4 with other ties in the scales of tiles in e4m3, and in the errors of 4 over 6."""

import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_candidates import ONE, SIX, THREE_HALVES, chosen, scales, under
from wrong.nvfp4_four_over_six import error
from wrong.nvfp4_parts import (
    ALL,
    E2M1,
    E4M3,
    F32,
    FLT_MAX,
    FOUR_OVER_SIX,
    TE,
    e2m1,
    e4m3,
    largest,
    record,
    registrar,
)

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
NUMBERS = E4M3[:0x7F]
TIES = (NUMBERS[1:] + NUMBERS[:-1]) / F32(2)  # the tie k is between the codes k and k + 1
INDEX = np.arange(TIES.size)
TO_EVEN = INDEX % 2 == 1
SUBNORMAL = INDEX < 8
NOT_TORCHAO = tuple(profile for profile in ALL if profile != "torchao")  # its scales are normal


def rounding(goes_up):
    """Return a conversion of scales to e4m3 that rounds ties up if `goes_up` says so."""

    def convert(t):
        below = np.searchsorted(TIES, t)
        at = np.minimum(below, TIES.size - 1)
        code = below + ((t == TIES[at]) & goes_up[at])
        return np.where(np.isnan(t), 0x7F, code).astype(np.uint8)

    return convert


assert all(np.array_equal(rounding(TO_EVEN)(a), e4m3(a)) for a in (NUMBERS, TIES))


def finished(profile, x, amax, convert):
    """Return the fields of tiles whose scales a function converts."""
    if profile in FOUR_OVER_SIX:
        return four_over_six(profile, x, amax, convert)
    if profile in TE:
        return transformer_engine(profile, x, amax, convert)
    return divided(profile, x, amax, convert)


def transformer_engine(profile, x, amax, convert):
    """Return the fields of tiles of one candidate."""
    b = largest(x, (1, 2))
    s_enc = np.minimum(F32(2688) / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    s = convert(b / SIX * s_enc if profile == "te_2_13" else b * (s_enc * F32(1 / 6)))
    return one_candidate(x, s, b, s_enc, ONE / s_enc)


def one_candidate(x, s, b, s_enc, s_dec):
    """Return the fields of tiles with a code of the scale."""
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


def four_over_six(profile, x, amax, convert):
    """Return the fields of tiles of two candidates."""
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    candidates, errors = [], []
    for t in (base, THREE_HALVES * base):
        of = one_candidate(x, convert(t), b, s_enc, s_dec)
        candidates.append(of)
        errors.append(error(profile, x, of, amax, q))
    return chosen(*candidates, *errors)


def divided(profile, x, amax, convert):
    """Return the fields of tiles of the three other libraries."""
    b = largest(x, (1, 2))
    if profile == "compressed_tensors":
        g = ONE / np.maximum(amax, F32(2**-126)) * F32(2688)
        g = np.where(np.isfinite(g), g, ONE)
        s = convert(g * (b / SIX))
        s = np.where(s == 0, np.uint8(0x20), s)
        globals_, decode = (g, ONE / g), E4M3[s] / g
    else:
        g = amax / F32(2688)
        globals_ = ONE / g, g
        if profile == "modelopt":
            t = b / (SIX * g)
            s = convert(np.clip(np.where(t == 0, ONE, t), F32(2**-9), F32(448)))
        else:
            s = convert(np.clip(b / SIX / g, F32(2**-6), F32(448)))
        decode = E4M3[s] * g
    if profile == "torchao":
        encode = (ONE / g) / E4M3[s]
        xs = x * encode
        code = e2m1(xs)
        return record(b, *globals_, s, decode, xs, code, E2M1[code] * decode, encode)
    xs = x / decode
    code = np.where(xs == 0, np.uint8(0), e2m1(xs))
    return record(b, *globals_, s, decode, xs, code, E2M1[code] * decode)


@wrong("ties of scales go to the smaller number", *ALL)
def scale_ties_down(profile, x, amax):
    return finished(profile, x, amax, rounding(np.zeros_like(TO_EVEN)))


@wrong("ties of scales go away from zero", *ALL)
def scale_ties_away(profile, x, amax):
    return finished(profile, x, amax, rounding(np.ones_like(TO_EVEN)))


@wrong("ties of normal scales go to the smaller number", *ALL)
def normal_scale_ties_down(profile, x, amax):
    return finished(profile, x, amax, rounding(TO_EVEN & SUBNORMAL))


@wrong("ties of normal scales go away from zero", *ALL)
def normal_scale_ties_away(profile, x, amax):
    return finished(profile, x, amax, rounding(TO_EVEN | ~SUBNORMAL))


@wrong("ties of subnormal scales go to the smaller number", *NOT_TORCHAO)
def subnormal_scale_ties_down(profile, x, amax):
    return finished(profile, x, amax, rounding(TO_EVEN & ~SUBNORMAL))


@wrong("ties of subnormal scales go away from zero", *NOT_TORCHAO)
def subnormal_scale_ties_away(profile, x, amax):
    return finished(profile, x, amax, rounding(TO_EVEN | SUBNORMAL & (INDEX > 0)))


# The scales of modelopt are at least the smallest number.
@wrong(
    "half of the smallest scale goes up",
    *TE,
    *FOUR_OVER_SIX,
    "compressed_tensors",
)
def half_of_the_smallest_scale_goes_up(profile, x, amax):
    return finished(profile, x, amax, rounding(TO_EVEN | (INDEX == 0)))


def by_errors(profile, x, amax, takes_four):
    """Return the fields of tiles whose candidate is chosen by a function of the two errors."""
    q, b, s_enc, s_dec = scales(profile, x, amax)
    base = b / SIX * s_enc
    six = under(x, base, b, s_enc, s_dec)
    four = under(x, THREE_HALVES * base, b, s_enc, s_dec)
    e6, e4 = error(profile, x, six, amax, q), error(profile, x, four, amax, q)
    return chosen(six, four, e6, e4, less=(e4 < e6) | takes_four(e6, e4))


@wrong("four is taken if both errors are zero", *FOUR_OVER_SIX)
def two_zeros_take_four(profile, x, amax):
    return by_errors(profile, x, amax, lambda e6, e4: (e6 == 0) & (e4 == 0))


@wrong("a tie of the errors takes four, unless both are zero", *FOUR_OVER_SIX)
def nonzero_tie_takes_four(profile, x, amax):
    return by_errors(profile, x, amax, lambda e6, e4: np.isfinite(e6) & (e6 == e4) & (e6 != 0))


@wrong("four is taken if neither error is finite", *FOUR_OVER_SIX)
def four_if_none_is_finite(profile, x, amax):
    return by_errors(profile, x, amax, lambda e6, e4: ~np.isfinite(e6) & ~np.isfinite(e4))
