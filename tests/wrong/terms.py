"""Errors of elements and their sums, as kernels shorten them, each with its mistake."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import Task, dispatch, floats, from_code, to_code
from wrong.scaling import right

F32, F64, U32 = np.float32, np.float64, np.uint32
ONE, TOP = F32(1), F32(2.0**23)
_BITS = U32(0x3F800000)


def term(function):
    """Return the entry of a kernel that computes u from x and y; for tensors it sums u."""

    def error_term(_, inputs):
        u = function(floats(inputs["x"]), floats(inputs["y"]))
        return {"u": np.asarray(u).astype(np.int64).astype(U32)}

    def sums(x, y, blocks):
        counts = np.isfinite(x) & (x != 0)
        u = np.where(counts, np.asarray(function(x, y)).astype(np.int64), 0)
        nonzero = blocks.reduce(np.add, counts.astype(np.uint64))
        return blocks.reduce(np.add, u).astype(np.uint64), nonzero

    return dispatch(error_term=error_term, **summed(sums))


def restored(task):
    """Return the scales of a tensor, and y."""
    amax = task.amax()
    groups = task.of_blocks(task.amax_of_groups(amax))
    _, _, scale = right(task.scaling, task.largest, groups, amax)
    spread = task.of_elements(scale)
    return scale, from_code(to_code(task.x * spread, task.name), task.name) / spread


def summed(sums):
    """Return the entries of a kernel that computes sum and nonzero from x, y and blocks."""

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        scale, y = restored(task)
        total, nonzero = sums(task.x, y, task.blocks)
        return task.answer(scale=scale, y=y, sum=total, nonzero=nonzero)

    return {"quantize": quantize, "quantize_block": quantize}


def ratio(x, y):
    return np.where(np.isfinite(y), np.minimum(np.abs(x - y) / np.abs(x), ONE), ONE)


def rounded(x, y):
    """Use lrint of r * 2^23, a product that is exact: the right one."""
    return np.rint(ratio(x, y) * TOP)


def added_in_binary64(x, y):
    """Round r * 2^23 in binary64, by adding 2^52: right as well."""
    return ratio(x, y).astype(F64) * 2.0**23 + 2.0**52 - 2.0**52


def truncated(x, y):
    return np.trunc(ratio(x, y) * TOP)


def half_up(x, y):
    return np.floor(ratio(x, y).astype(F64) * 2.0**23 + 0.5)


def half_added_in_binary32(x, y):
    return np.floor(ratio(x, y) * TOP + F32(0.5))


def binary64(x, y):
    """Divide and round in binary64, so that r is not rounded to binary32."""
    r = np.abs(x.astype(F64) - y) / np.abs(x.astype(F64))
    return np.rint(np.where(np.isfinite(y), np.minimum(r, 1), 1) * 2.0**23)


def exact_distance(x, y):
    """Subtract in binary64, and divide in binary32."""
    d = np.abs(x.astype(F64) - y).astype(F64)
    r = (d / np.abs(x.astype(F64))).astype(F32)
    return np.rint(np.where(np.isfinite(y), np.minimum(r, ONE), ONE) * TOP)


def reciprocal(x, y):
    r = np.abs(x - y) * (ONE / np.abs(x))
    return np.rint(np.where(np.isfinite(y), np.fmin(r, ONE), ONE) * TOP)


def residual(x, y):
    """Divide by a reciprocal and a residual, added in binary64 where a processor fuses."""
    d, a = np.abs(x - y), np.abs(x)
    up = np.where(a < 2.0**-60, F32(2.0**90), ONE)
    d, a = d * up, a * up
    inverse = ONE / a
    r = d * inverse
    rest = (d.astype(F64) - r.astype(F64) * a).astype(F32)
    r = np.where(rest == 0, r, (r.astype(F64) + rest * inverse.astype(F64)).astype(F32))
    return np.rint(np.where(np.isfinite(y), np.fmin(r, ONE), ONE) * TOP)


def one_less_quotient(x, y):
    """Use |1 - y / x| in place of |x - y| / |x|."""
    r = np.abs(ONE - y / x)
    return np.rint(np.where(np.isfinite(y), np.minimum(r, ONE), ONE) * TOP)


def guarded(x, y):
    """Divide by |x| + 1e-12."""
    r = np.abs(x - y) / (np.abs(x) + F32(1e-12))
    return np.rint(np.where(np.isfinite(y), np.minimum(r, ONE), ONE) * TOP)


def guarded_by_maximum(x, y):
    """Divide by at least the smallest normal number."""
    r = np.abs(x - y) / np.maximum(np.abs(x), F32(2.0**-126))
    return np.rint(np.where(np.isfinite(y), np.minimum(r, ONE), ONE) * TOP)


def flushed_distance(x, y):
    """Flush a subnormal difference."""
    d = np.abs(x - y)
    r = np.where(d < F32(2.0**-126), F32(0), d) / np.abs(x)
    return np.rint(np.where(np.isfinite(y), np.minimum(r, ONE), ONE) * TOP)


def not_clipped(x, y):
    """Trust that the error is below the number."""
    r = np.abs(x - y) / np.abs(x)
    return (ONE + r).view(U32).astype(np.int64) - 0x3F800000


def not_a_number(x, y):
    """Take the minimum with fmin, which makes NaN 1; but u is 0 if y is not finite."""
    r = np.abs(x - y) / np.abs(x)
    return np.rint(np.fmax(np.fmin(r, ONE), F32(0)) * TOP) * np.isfinite(y)


def of_the_squares(x, y):
    """Take the root of a quotient of squares, which are tiny or infinite at the ends."""
    d = x - y
    r = np.sqrt(d * d / (x * x))
    return np.rint(np.where(np.isfinite(y), np.fmin(r, ONE), ONE) * TOP)


def in_binary32(x, y, blocks):
    """Sum u in binary32, and count so too."""
    counts = np.isfinite(x) & (x != 0)
    u = np.where(counts, rounded(x, y), F32(0)).astype(F32)
    total = blocks.reduce(np.add, u)
    return total.astype(np.uint64), blocks.reduce(np.add, counts.astype(F32)).astype(np.uint64)


def ratios_in_binary64(x, y, blocks):
    """Sum r in binary64, and round the sum."""
    counts = np.isfinite(x) & (x != 0)
    total = blocks.reduce(np.add, np.where(counts, ratio(x, y), 0).astype(F64))
    return np.rint(total * 2.0**23).astype(np.uint64), blocks.reduce(np.add, counts * np.uint64(1))


def low_words(x, y, blocks):
    """Sum in 32 bits."""
    counts = np.isfinite(x) & (x != 0)
    u = np.where(counts, rounded(x, y), 0).astype(np.uint32)
    return blocks.reduce(np.add, u), blocks.reduce(np.add, counts.astype(np.uint64))


def signed_words(x, y, blocks):
    """Sum in 32 bits with a sign, and widen it."""
    counts = np.isfinite(x) & (x != 0)
    u = np.where(counts, rounded(x, y), 0).astype(np.int32)
    total = blocks.reduce(np.add, u).astype(np.int64).view(np.uint64)
    return total, blocks.reduce(np.add, counts.astype(np.uint64))


def narrow_counts(x, y, blocks):
    """Count in 16 bits."""
    counts = np.isfinite(x) & (x != 0)
    u = np.where(counts, rounded(x, y), 0).astype(np.uint64)
    return blocks.reduce(np.add, u), blocks.reduce(np.add, counts.astype(np.uint16))


def bfloat16_output(x, y, blocks):
    """Take the error of the output, which is bfloat16."""
    bits = y.view(U32)
    y = (bits + U32(0x7FFF) + (bits >> 16 & 1) & U32(0xFFFF0000)).view(F32)
    counts = np.isfinite(x) & (x != 0)
    u = np.where(counts, rounded(x, y), 0).astype(np.uint64)
    return blocks.reduce(np.add, u), blocks.reduce(np.add, counts.astype(np.uint64))


def all_that_are_not_zero(x, y, blocks):
    """Count infinities and NaNs as well, each as an error of 1."""
    counts = x != 0
    u = np.where(counts, np.where(np.isfinite(x), rounded(x, y), TOP), 0).astype(np.uint64)
    return blocks.reduce(np.add, u), blocks.reduce(np.add, counts.astype(np.uint64))


def codes_that_are_not_zero(x, y, blocks):
    """Count the numbers that do not become zero."""
    counts = np.isfinite(x) & (y != 0)
    u = np.where(counts, rounded(x, y), 0).astype(np.uint64)
    return blocks.reduce(np.add, u), blocks.reduce(np.add, counts.astype(np.uint64))


_SIXTEEN = {"quantize_blocks": "a sum of 16 numbers is 2^27 at most"}
_EXACT = "y is 0, infinite or at most twice and at least half of x, so that d is exact"
_NEAR = dict.fromkeys(("quantize", "quantize_blocks", "quantize_large"), _EXACT)
KERNELS = [
    Kernel("u_rounded", term(rounded)),
    Kernel("u_in_binary64", term(added_in_binary64)),
    Kernel("u_truncated", term(truncated), "r * 2^23 is cut"),
    Kernel("u_half_up", term(half_up), "ties go up"),
    Kernel("u_half_added", term(half_added_in_binary32), "floor(r * 2^23 + 0.5) in binary32"),
    Kernel("u_of_binary64", term(binary64), "r is not rounded to binary32"),
    Kernel("exact_distance", term(exact_distance), "d is not rounded to binary32", _NEAR),
    Kernel("r_by_reciprocal", term(reciprocal), "r is d * RN32(1 / |x|)"),
    Kernel("r_with_residual", term(residual), "the residual is added in binary64"),
    Kernel("one_less_quotient", term(one_less_quotient), "r is |1 - y / x|"),
    Kernel("guarded", term(guarded), "r is d / (|x| + 1e-12)"),
    Kernel("guarded_by_maximum", term(guarded_by_maximum), "a subnormal |x| counts as 2^-126"),
    Kernel("flushed_distance", term(flushed_distance), "a subnormal d is flushed"),
    Kernel("not_clipped", term(not_clipped), "r may be above 1"),
    Kernel("zero_for_infinite", term(not_a_number), "an infinite y has no error"),
    Kernel("of_the_squares", term(of_the_squares), "the root of a quotient of squares"),
    Kernel("sum_in_binary32", dispatch(**summed(in_binary32)), "u is summed in binary32"),
    Kernel("sum_of_ratios", dispatch(**summed(ratios_in_binary64)), "r is summed, then rounded"),
    Kernel("signed_words", dispatch(**summed(signed_words)), "sums of 31 bits", _SIXTEEN),
    Kernel("bfloat16_output", dispatch(**summed(bfloat16_output)), "y is rounded to bfloat16"),
    Kernel("all_nonzero", dispatch(**summed(all_that_are_not_zero)), "infinities count"),
    Kernel(
        "nonzero_codes",
        dispatch(**summed(codes_that_are_not_zero)),
        "numbers that become 0 do not count",
    ),
]
