"""The common part of implementations of 4 over 6: scales, candidates, sums in the right order."""

import numpy as np

from wrong.nvfp4_parts import E2M1, E4M3, F32, FLT_MAX, e2m1, e4m3, largest, record

SIX, ONE, THREE_HALVES = F32(6), F32(1), F32(1.5)
SQUARES = ("te_4over6_mse", "te_4over6_mse_448")


def scales(profile, x, amax):
    """Return Q, bamax, S_enc and S_dec."""
    q = F32(2688 if profile.endswith("448") else 1536)
    s_enc = np.minimum(q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    return q, largest(x, (1, 2)), s_enc, ONE / s_enc


def under(x, t, b, s_enc, s_dec):
    """Return the fields of tiles with the scale that t is rounded to."""
    s = e4m3(t)
    decode = E4M3[s] * s_dec
    encode = np.minimum(ONE / decode, FLT_MAX)
    xs = x * encode
    code = e2m1(xs)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


def chosen(six, four, six_error, four_error, less=None):
    """Return the fields of tiles with the candidate of less error."""
    less = four_error < six_error if less is None else less
    fields = {name: np.where(less, four[name], six[name]) for name in six}
    for name, of, error in (("six", six, six_error), ("four", four, four_error)):
        fields |= {f"{name}.block_scale": of["block_scale"], f"{name}.code": of["code"]}
        fields[f"{name}.error"] = error
    return fields


def restored(of, amax, q):
    """Return the numbers of codes, computed in the order that errors use."""
    return E2M1[of["code"]] * E4M3[of["block_scale"]] * amax / q


def left_to_right(terms):
    """Return the sums of rows, one element after the other."""
    return np.add.accumulate(terms, axis=2)[:, :, -1]


def in_halves(rows):
    """Return the sums over rows, added as a tree."""
    while rows.shape[1] > 1:
        rows = rows[:, : rows.shape[1] // 2] + rows[:, rows.shape[1] // 2 :]
    return rows[:, :, None]
