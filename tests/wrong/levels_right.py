"""Levels of ParetoQ in vectorized NumPy, one operation at a time, without a mistake."""

from collections.abc import Collection, Mapping
from fractions import Fraction

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits, f32, widened

LIMITS = {"lsq4": (-8, 7), "lsq3": (-4, 3), "seq2": (-0.75, 0.75), "seq1.58": (-1, 1),
          "elastic1": (-1, 1)}  # fmt: skip
LSQ, SEQ = ("lsq4", "lsq3"), ("seq2", "seq1.58")
NAMES = ("ratio", "clipped", "level", "code", "y", "alpha_term", "inside")


class Register(list):
    """The kernels of a module."""

    def levels(
        self,
        name,
        mistake="",
        kinds: Collection[str] = tuple(LIMITS),
        arithmetics: Collection[str] = ("f32", "bf16"),
        operations: Collection[str] = ("levels", "levels_element"),
        unseen: Mapping[str, str] | None = None,
    ):
        """Take a function of (w, given alphas or None, kind, arithmetic): alphas and the fields."""

        def take(quantize):
            def run(operation, parameters, inputs):
                kind, how = parameters.get("kind"), parameters.get("arithmetic")
                if operation not in operations or kind not in kinds or how not in arithmetics:
                    return None
                is_whole = operation == "levels"
                w = widened(inputs["x"], parameters["source"])
                given = None if is_whole else inputs["alpha"].view(np.float32)[:, None]
                with np.errstate(all="ignore"):
                    alpha, *rest = quantize(w if is_whole else w[:, None], given, kind, how)
                found = {
                    name: np.asarray(part, np.uint8 if name in ("code", "inside") else np.float32)
                    for name, part in zip(NAMES, rest, strict=True)
                }
                found = {n: bits(a) if a.dtype == np.float32 else a for n, a in found.items()}
                used = bits(np.asarray(alpha, np.float32))
                if is_whole:
                    return {"alpha": used, **found}
                return {"used_alpha": used[:, 0], **{n: a[:, 0] for n, a in found.items()}}

            self.append(Kernel(f"levels.{name}", run, mistake, unseen or {}))
            return quantize

        return take


KERNELS = Register()


def plain(x):
    """Return numbers of binary32."""
    return np.asarray(x, np.float32)


def rounded(x):
    """Return numbers of binary32, rounded to bfloat16."""
    return np.asarray(x, np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)


def rn_of(how):
    """Return the function that rounds the result of an operation."""
    return rounded if how == "bf16" else plain


def starts(w, kind, rn):
    """Return the alphas of rows, before their limit."""
    size = np.abs(rn(w))
    if kind in LSQ:
        return rn(size.max(axis=1, keepdims=True) / f32(LIMITS[kind][1]))
    if kind in SEQ:
        return size.max(axis=1, keepdims=True)
    return rn(means(size))


def means(size):
    """Return the exact means of rows, each rounded once."""
    found = []
    for row in size.tolist():
        if not np.isfinite(row).all():
            found.append([np.nan if np.isnan(row).any() else np.inf])
            continue
        total = sum(map(Fraction, row), Fraction(0)) / len(row)
        found.append([once(total)])
    return f32(*found) if len(found) > 1 else np.float32(found)


def once(value):
    """Round a rational number to binary32, once: through a binary64 number rounded to odd."""
    near = float(value)
    exact = Fraction(near)
    word = np.float64(near).view(np.int64)
    if exact != value and word % 2 == 0:
        word += 1 if value > exact else -1
    return np.int64(word).view(np.float64).astype(np.float32)


def limited(alpha, rn):
    """Return alphas that are at least the smallest alpha, which also replaces NaN."""
    smallest = rn(f32(1e-5))
    return np.where(alpha > smallest, alpha, smallest).astype(np.float32)


def alphas(w, given, kind, rn):
    """Return the alphas that are used."""
    return limited(starts(w, kind, rn) if given is None else rn(given), rn)


def limits(kind, rn):
    """Return the limits of a ratio."""
    if kind in SEQ:
        return -rn(f32(0.99)), rn(f32(0.99))
    return f32(LIMITS[kind][0]), f32(LIMITS[kind][1])


def levels_of(w, clipped, kind, rn, whole=np.rint):
    """Return the levels."""
    if kind == "elastic1":
        return np.where(np.isnan(w), 0, np.sign(w)).astype(np.float32) + f32(0)
    if kind in LSQ:
        return whole(clipped)
    steps, shift = (f32(2), f32(0.5)) if kind == "seq2" else (f32(1.5), f32(0))
    return rn(rn(whole(rn(rn(clipped * steps) - shift)) + shift) / steps)


def codes_of(level, kind):
    """Return the codes of levels."""
    known = np.where(np.isnan(level), 0, level)
    if kind == "seq2":
        return np.where(np.isnan(level), 2, (known * 2 + 1.5)).astype(np.uint8)
    if kind in LSQ:
        return known.astype(np.int64) & (15 if kind == "lsq4" else 7)
    return np.sign(known).astype(np.int64) + 1


def terms_of(ratio, level, kind, rn):
    """Return the factors in the gradients of alpha."""
    if kind == "elastic1":
        return level
    low, high = limits(kind, rn)
    found = np.where(ratio < low, LIMITS[kind][0], rn(level - ratio))
    found = np.where(ratio > high, LIMITS[kind][1], found)
    return np.where(np.isfinite(ratio), found, np.nan)


def finished(w, alpha, kind, rn, whole=np.rint, ratio=None, clipped=None, level=None):
    """Return all fields of a matrix with these alphas."""
    w = rn(w)
    ratio = rn(w / alpha) if ratio is None else ratio
    low, high = limits(kind, rn)
    clipped = np.clip(ratio, low, high) if clipped is None else clipped
    level = levels_of(w, clipped, kind, rn, whole) if level is None else level
    inside = ~((ratio < low) | (ratio > high))
    y, term = rn(level * alpha), terms_of(ratio, level, kind, rn)
    return alpha, ratio, clipped, level, codes_of(level, kind), y, term, inside


@KERNELS.levels("numpy")
def quantized(w, given, kind, how):
    """Return the alphas and the fields of weights."""
    rn = rn_of(how)
    return finished(w, alphas(w, given, kind, rn), kind, rn)
