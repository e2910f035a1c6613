"""Levels with a mistake in weights: ratios, roundings, limits, terms and codes."""

import numpy as np

from wrong.levels_right import (
    LIMITS,
    LSQ,
    SEQ,
    Register,
    alphas,
    finished,
    levels_of,
    limits,
    plain,
    quantized,
    rn_of,
    rounded,
)
from wrong.microscaling import f32

KERNELS = Register()
levels = KERNELS.levels


def begun(w, given, kind, how):
    """Return a function that rounds results, the weights, and their alphas."""
    rn = rn_of(how)
    return rn, rn(w), alphas(w, given, kind, rn)


def changed(w, given, kind, how, **new):
    """Return the fields, some of them replaced."""
    names = ("alpha", "ratio", "clipped", "level", "code", "y", "alpha_term", "inside")
    found = dict(zip(names, quantized(w, given, kind, how), strict=True))
    return [new.get(name, found[name]) for name in names]


@levels("by_a_reciprocal_of_alpha", "w is multiplied by RN(1 / alpha).")
def _by_a_reciprocal_of_alpha(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, ratio=rn(w * rn(f32(1) / alpha)))


@levels("ratio_in_binary64", "The ratio is not rounded before it is rounded to an integer.",
        (*LSQ, *SEQ))  # fmt: skip
def _ratio_in_binary64(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    wide = w.astype(np.float64) / alpha
    low, high = limits(kind, rn)
    clipped = np.clip(wide, low, high)
    steps, shift = {"seq2": (2, 0.5), "seq1.58": (1.5, 0)}.get(kind, (1, 0))
    level = (np.rint(clipped * steps - shift) + shift) / steps
    return finished(w, alpha, kind, rn, level=rn(level))


@levels("ties_away", "Ties go away from zero.", (*LSQ, *SEQ))
def _ties_away(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn,
                    whole=lambda x: np.copysign(np.floor(np.abs(x) + f32(0.5)), x))  # fmt: skip


@levels("half_up", "floor(x + 1/2) is the nearest integer.", (*LSQ, *SEQ))
def _half_up(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, whole=lambda x: np.floor(x + f32(0.5)))


@levels("truncated", "A cast to int cuts the digits behind the point.", (*LSQ, *SEQ))
def _truncated(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, whole=np.trunc)


@levels("zero_without_a_sign", "rint goes through int, and loses -0 and NaN.", LSQ)
def _zero_without_a_sign(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    whole = lambda x: np.where(np.isnan(x), 0, np.rint(x)) + f32(0)  # noqa: E731 (one use)
    return finished(w, alpha, kind, rn, whole=whole)


@levels("symmetric", "The lowest level is -(2^(b - 1) - 1).", LSQ)
def _symmetric(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    high = LIMITS[kind][1]
    return finished(w, alpha, kind, rn, clipped=np.clip(rn(w / alpha), f32(-high), f32(high)))


@levels("not_clipped", "Ratios are not limited.", LSQ)
def _not_clipped(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    near = np.clip(rn(w / alpha), -1e6, 1e6)
    return finished(w, alpha, kind, rn, clipped=near)


@levels("nan_to_a_limit", "fmin and fmax bring NaN to a limit.", (*LSQ, *SEQ))
def _nan_to_a_limit(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    low, high = limits(kind, rn)
    return finished(w, alpha, kind, rn, clipped=np.fmin(np.fmax(rn(w / alpha), low), high))


@levels("clipped_at_1", "Ratios are limited to 1, as in the paper.", SEQ)
def _clipped_at_1(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, clipped=np.clip(rn(w / alpha), f32(-1), f32(1)))


@levels("limit_in_binary32", "0.99 is not rounded to bfloat16.", SEQ, ("bf16",))
def _limit_in_binary32(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, clipped=np.clip(rn(w / alpha), f32(-0.99), f32(0.99)))


@levels("quarters_without_a_shift", "2 bits have the levels -1, -1/2, 0 and 1/2.", ("seq2",))
def _quarters_without_a_shift(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    low, high = limits(kind, rn)
    level = np.clip(np.rint(rn(np.clip(rn(w / alpha), low, high) * f32(2))), -2, 1) / f32(2)
    return finished(w, alpha, kind, rn, level=level)


@levels("quarters_by_floor", "The level is (floor(2c) + 1/2) / 2.", ("seq2",))
def _quarters_by_floor(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    low, high = limits(kind, rn)
    whole = np.floor(rn(np.clip(rn(w / alpha), low, high) * f32(2)))
    return finished(w, alpha, kind, rn, level=rn(rn(whole + f32(0.5)) / f32(2)))


@levels("levels_of_one", "Ternary levels are -1, 0 and 1.", ("seq1.58",))
def _levels_of_one(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    found = finished(w, alpha, kind, rn)
    return finished(w, alpha, kind, rn, level=np.sign(found[3]))


@levels("thirds_by_a_product", "rint(1.5 c) is multiplied by 0.6666667.", ("seq1.58",), ("bf16",))
def _thirds_by_a_product(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    level = finished(w, alpha, kind, rn)[3]
    return finished(w, alpha, kind, rn, level=plain(np.sign(level) * f32(2 / 3)))


@levels("thirds_at_a_half", "A ratio above 1/2 in magnitude is not zero.", ("seq1.58",))
def _thirds_at_a_half(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    ratio = rn(w / alpha)
    sign = np.where(np.isnan(ratio), ratio, np.sign(ratio) * (np.abs(ratio) > 0.5)) + f32(0)
    return finished(w, alpha, kind, rn, level=rn(sign / f32(1.5)))


@levels("minus_zero_kept", "A ternary zero keeps the sign of w.", ("seq1.58",))
def _minus_zero_kept(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    level = finished(w, alpha, kind, rn)[3]
    return finished(w, alpha, kind, rn, level=np.where(level == 0, np.copysign(0, w), level))


@levels("two_levels", "One bit has two levels, as in the paper: 0 is positive.", ("elastic1",))
def _two_levels(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, level=np.where(w >= 0, f32(1), f32(-1)))


@levels("sign_of_nan", "The level of NaN is NaN.", ("elastic1",))
def _sign_of_nan(w, given, kind, how):
    rn, w, alpha = begun(w, given, kind, how)
    return finished(w, alpha, kind, rn, level=np.sign(w))


@levels("rounded_at_the_end", "All is binary32, and y is rounded to bfloat16.",
        arithmetics=("bf16",))  # fmt: skip
def _rounded_at_the_end(w, given, kind, _how):
    found = list(finished(rounded(w), alphas(w, given, kind, rounded), kind, plain))
    found[5] = rounded(found[5])
    return found


@levels("weights_not_rounded", "w stays in binary32.", arithmetics=("bf16",))
def _weights_not_rounded(w, given, kind, _how):
    alpha = alphas(w, given, kind, rounded)
    low, high = limits(kind, rounded)
    clipped = np.clip(rounded(w / alpha), low, high)
    level = levels_of(w, clipped, kind, rounded)
    return finished(w, alpha, kind, rounded, ratio=rounded(w / alpha), level=level)


@levels("cut_to_bfloat16", "Results are cut to bfloat16, not rounded.", arithmetics=("bf16",))
def _cut_to_bfloat16(w, given, kind, _how):
    def cut(x):
        x = np.ascontiguousarray(np.asarray(x, np.float32))
        upper = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return np.where(np.isnan(x), x, upper).astype(np.float32)

    return finished(w, alphas(w, given, kind, rounded), kind, cut)


@levels("binary32_everywhere", "The arithmetic is not looked at.", arithmetics=("bf16",))
def _binary32_everywhere(w, given, kind, _how):
    return quantized(w, given, kind, "f32")


@levels("term_of_the_clipped", "alpha_term is level - clipped, outside as well.", (*LSQ, *SEQ))
def _term_of_the_clipped(w, given, kind, how):
    rn = rn_of(how)
    _, ratio, clipped, level, *_ = quantized(w, given, kind, how)
    term = np.where(np.isfinite(ratio), rn(level - clipped), np.nan)
    return changed(w, given, kind, how, alpha_term=term)


@levels("term_of_the_level", "Outside, alpha_term is the level.", SEQ)
def _term_of_the_level(w, given, kind, how):
    _, _ratio, _, level, _, _, term, inside = quantized(w, given, kind, how)
    return changed(w, given, kind, how,
                   alpha_term=np.where(inside | np.isnan(term), term, level))  # fmt: skip


@levels("term_without_a_check", "Of an infinite ratio, alpha_term is a limit.", (*LSQ, *SEQ))
def _term_without_a_check(w, given, kind, how):
    _, ratio, _, _, _, _, term, _ = quantized(w, given, kind, how)
    ends = np.where(ratio < 0, LIMITS[kind][0], LIMITS[kind][1])
    return changed(w, given, kind, how, alpha_term=np.where(np.isinf(ratio), ends, term))


@levels("term_is_ratio_minus_level", "alpha_term has the other sign.", (*LSQ, *SEQ))
def _term_is_ratio_minus_level(w, given, kind, how):
    rn = rn_of(how)
    _, ratio, _, level, _, _, term, inside = quantized(w, given, kind, how)
    new = np.where(inside & ~np.isnan(term), rn(ratio - level), term)
    return changed(w, given, kind, how, alpha_term=new)


@levels("term_of_one_bit", "One bit has the terms of the other kinds.", ("elastic1",))
def _term_of_one_bit(w, given, kind, how):
    rn = rn_of(how)
    _, ratio, _, level, *_, inside = quantized(w, given, kind, how)
    return changed(w, given, kind, how, alpha_term=np.where(inside, rn(level - ratio), level))


@levels("limits_are_outside", "A ratio at a limit is outside.", (*LSQ, "elastic1"))
def _limits_are_outside(w, given, kind, how):
    rn = rn_of(how)
    _, ratio, *_, inside = quantized(w, given, kind, how)
    low, high = limits(kind, rn)
    return changed(w, given, kind, how, inside=inside & (ratio != low) & (ratio != high))


@levels("nan_is_outside", "A NaN is outside, as low <= r <= high is false.")
def _nan_is_outside(w, given, kind, how):
    _, ratio, *_, inside = quantized(w, given, kind, how)
    return changed(w, given, kind, how, inside=inside & ~np.isnan(ratio))


@levels("inside_of_1", "Ratios up to 1 have a gradient.", SEQ)
def _inside_of_1(w, given, kind, how):
    _, ratio, *_ = quantized(w, given, kind, how)
    return changed(w, given, kind, how, inside=~(np.abs(ratio) > 1))


@levels("codes_from_the_lowest", "Codes count from the lowest level.", LSQ)
def _codes_from_the_lowest(w, given, kind, how):
    level = quantized(w, given, kind, how)[3]
    code = np.where(np.isnan(level), 0, level) - LIMITS[kind][0]
    return changed(w, given, kind, how, code=code)


@levels("codes_as_signed_quarters", "2 bits have codes in two's complement.", ("seq2",))
def _codes_as_signed_quarters(w, given, kind, how):
    code = np.asarray(quantized(w, given, kind, how)[4]).astype(np.int64)
    return changed(w, given, kind, how, code=code + 2 & 3)


@levels("codes_of_a_sign_bit", "Three values have the codes 2, 0 and 1.", ("seq1.58", "elastic1"))
def _codes_of_a_sign_bit(w, given, kind, how):
    code = np.asarray(quantized(w, given, kind, how)[4]).astype(np.int64)
    return changed(w, given, kind, how, code=(code + 2) % 3)


@levels("nan_has_the_lowest_code", "NaN has the code 0 in 2 bits.", ("seq2",))
def _nan_has_the_lowest_code(w, given, kind, how):
    _, _, _, level, code, *_ = quantized(w, given, kind, how)
    return changed(w, given, kind, how, code=np.where(np.isnan(level), 0, code))
