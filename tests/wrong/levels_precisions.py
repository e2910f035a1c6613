"""Levels with a step in another precision: narrower, wider, or without subnormal numbers."""

import numpy as np

from wrong.levels_alphas import WHOLE
from wrong.levels_right import (
    LSQ,
    SEQ,
    Register,
    alphas,
    finished,
    limited,
    limits,
    rn_of,
    rounded,
    starts,
)
from wrong.microscaling import f32

KERNELS = Register()
levels = KERNELS.levels


def flushed(x):
    """Return numbers without subnormal ones."""
    return np.where(np.abs(x) < f32(2.0**-126), np.copysign(f32(0), x), x)


@levels("ratio_in_bfloat16", "The ratio is rounded to bfloat16.", arithmetics=("f32",))
def _ratio_in_bfloat16(w, given, kind, how):
    alpha = alphas(w, given, kind, rn_of(how))
    return finished(w, alpha, kind, rn_of(how), ratio=rounded(w / alpha))


@levels("alpha_in_bfloat16", "Alphas are stored in bfloat16.", arithmetics=("f32",))
def _alpha_in_bfloat16(w, given, kind, how):
    alpha = rounded(alphas(w, given, kind, rn_of(how)))
    return finished(w, alpha, kind, rn_of(how))


@levels("y_in_bfloat16", "y is rounded to bfloat16.", (*SEQ, "lsq4"), ("f32",))
def _y_in_bfloat16(w, given, kind, how):
    found = list(finished(w, alphas(w, given, kind, rn_of(how)), kind, rn_of(how)))
    found[5] = rounded(found[5])
    return found


@levels(
    "shift_fused", "2c - 1/2 and 1.5c are not rounded before they are integers.", SEQ, ("bf16",)
)
def _shift_fused(w, given, kind, how):
    rn = rn_of(how)
    alpha = alphas(w, given, kind, rn)
    clipped = np.clip(rn(rn(w) / alpha), *limits(kind, rn))
    steps, shift = (f32(2), f32(0.5)) if kind == "seq2" else (f32(1.5), f32(0))
    level = rn(rn(np.rint(clipped * steps - shift) + shift) / steps)
    return finished(w, alpha, kind, rn, level=level)


@levels("ratio_flushed", "A subnormal ratio is zero.")
def _ratio_flushed(w, given, kind, how):
    rn = rn_of(how)
    alpha = alphas(w, given, kind, rn)
    return finished(w, alpha, kind, rn, ratio=flushed(rn(rn(w) / alpha)))


@levels("weights_flushed", "Subnormal weights are zero.")
def _weights_flushed(w, given, kind, how):
    rn = rn_of(how)
    return finished(flushed(w), alphas(flushed(w), given, kind, rn), kind, rn)


@levels("ties_up", "Ties go up.", (*LSQ, *SEQ))
def _ties_up(w, given, kind, how):
    def whole(x):
        return np.floor(x.astype(np.float64) + 0.5).astype(np.float32)

    rn = rn_of(how)
    return finished(w, alphas(w, given, kind, rn), kind, rn, whole=whole)


@levels("mean_with_signs", "The mean is of w, not of |w|.", ("elastic1",), operations=WHOLE)
def _mean_with_signs(w, _given, kind, how):
    rn = rn_of(how)
    mean = rn(rn(w).astype(np.float64).mean(axis=1, keepdims=True).astype(np.float32))
    return finished(w, limited(mean, rn), kind, rn)


@levels("alpha_of_the_first", "A maximum of magnitudes begins with the first weight as it is.",
        (*LSQ, *SEQ), operations=WHOLE)  # fmt: skip
def _alpha_of_the_first(w, _given, kind, how):
    rn = rn_of(how)
    own = np.abs(w)
    own[:, :1] = np.maximum(w[:, :1], f32(-0.0)) if w.shape[1] > 1 else w
    return finished(w, limited(starts(own, kind, rn), rn), kind, rn)
