"""Whole kernels that save a step of quantization, an operand or a special case."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import Task, dispatch, errors, from_code, lost, to_code, two_to
from wrong.scaling import right

F32, F64, U32 = np.float32, np.float64, np.uint32
_FLT_MAX = np.finfo(F32).max


def kernel(function, *scalings):
    """Return the entry of a kernel that computes results of a task, for some kinds of scales."""

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        return function(task) if task.scaling in scalings else None

    return dispatch(quantize=quantize, quantize_block=quantize)


ALL = ("gam", "e8m0", "fp32")


def scales(task):
    """Return the right amax, the group amax of each block, and the right scale."""
    amax = task.amax()
    groups = task.of_blocks(task.amax_of_groups(amax))
    return amax, groups, right(task.scaling, task.largest, groups, amax)[2]


def spread(task, scale=None):
    """Return the scale of each element, and its code."""
    scale = scales(task)[2] if scale is None else scale
    wide = task.of_elements(scale)
    return scale, wide, to_code(task.x * wide, task.name)


def units(task, u, counts, gone):
    """Return the sums of blocks."""
    fields = {"sum": u, "nonzero": counts, "nonfinite": gone}
    return {name: task.blocks.reduce(np.add, a.astype(np.uint64)) for name, a in fields.items()}


def inverse_of_powers(task):
    """Multiply by the reciprocal of a power of two, which is exact: right."""
    scale, wide, code = spread(task)
    y = from_code(code, task.name) * (F32(1) / wide)
    return task.answer(scale=scale, code=code, y=y)


def fused_distance(task):
    """Compute d as a fused |x - v * (1 / scale)|, so that y is not rounded."""
    scale, wide, code = spread(task)
    inverse = (F32(1) / wide).astype(F64)
    d = np.abs(task.x - from_code(code, task.name) * inverse).astype(F32)
    counts = np.isfinite(task.x) & (task.x != 0)
    r = np.where(counts, np.fmin(d / np.abs(task.x), F32(1)), F32(0))
    u = np.rint(r * F32(2.0**23))
    total = task.blocks.reduce(np.add, u.astype(np.uint64))
    return task.answer(scale=scale, code=code, sum=total)


def scaled_distance(task):
    """Use |xs - v| / |xs|, the error of scaled numbers, which powers of two hardly change."""
    scale, wide, code = spread(task)
    xs = task.x * wide
    counts = np.isfinite(task.x) & (task.x != 0)
    u = errors(np.where(counts, xs, F32(0)), from_code(code, task.name))[2]
    y = from_code(code, task.name) / wide
    return task.answer(scale=scale, code=code, **units(task, u, counts, lost(task.x, y)))


def added_exponents(task):
    """Divide by a power of two: subtract its exponent from the exponent field of v."""
    scale, wide, code = spread(task)
    v = from_code(code, task.name)
    e = (wide.view(U32) >> U32(23)).astype(np.int64) - 127
    bits = v.view(U32).astype(np.int64) - (e << 23)
    y = np.where(np.isfinite(v) & (v != 0), bits.astype(U32), v.view(U32)).view(F32)
    return task.answer(scale=scale, code=code, y=y)


def _lost(test):
    def function(task):
        scale, wide, code = spread(task)
        y = from_code(code, task.name) / wide
        gone = task.blocks.reduce(np.add, test(task.x, np.abs(y)).astype(np.uint64))
        return task.answer(scale=scale, code=code, nonfinite=gone)

    return function


_WIDEST = U32(0x7F7F8000)
lost_inputs = _lost(lambda x, y: ~np.isfinite(x) | np.isnan(y))
lost_infinities = _lost(lambda x, y: ~np.isfinite(x) | ~np.isfinite(y))
lost_above_tie = _lost(lambda x, y: ~np.isfinite(x) | (y.view(U32) > _WIDEST))
lost_above_largest = _lost(lambda x, y: ~np.isfinite(x) | (y.view(U32) > U32(0x7F7F0000)))
lost_outputs = _lost(lambda x, y: (y.view(U32) >= _WIDEST) | (np.isnan(x)))


def own_if_largest(task):
    """Let a block with the amax of its group keep its own binary32 scale."""
    amax, groups, scale = scales(task)
    own = np.minimum(task.largest / np.where(amax > 0, amax, F32(1)), _FLT_MAX)
    scale, wide, code = spread(task, np.where((amax == groups) & (amax > 0), own, scale))
    return task.answer(scale=scale, code=code, y=from_code(code, task.name) / wide)


def nothing_subnormal(task):
    """Skip subnormal numbers, which the processor compares as zero."""
    scale, wide, code = spread(task)
    y = from_code(code, task.name) / wide
    u, counts = errors(task.x, y)[2:]
    normal = np.abs(task.x) >= F32(2.0**-126)
    return task.answer(scale=scale, **units(task, u * normal, counts & normal, lost(task.x, y)))


def zero_blocks_skipped(task):
    """Return early from a block of zeros, with +0 and the exponent 0."""
    amax, groups, scale = scales(task)
    exponent = right(task.scaling, task.largest, groups, amax)[1]
    exponent = np.where(amax > 0, exponent, 0)
    scale, _, code = spread(task, scale)
    none = task.of_elements(amax) == 0
    code = np.where(none & np.isfinite(task.x), np.uint8(0), code)
    return task.answer(exponent=exponent, scale=scale, code=code)


def stored_decode_scales(task):
    """Store 1 / scale as e8m0, and invert it again: 2^-127 is not a normal number."""
    scale = scales(task)[2]
    decode = 254 - (scale.view(U32) >> U32(23)).astype(np.int64)  # the stored byte
    bits = (decode << 23).astype(U32).view(F32)  # as in a cast by a shift
    again = np.where(bits > 0, F32(1) / bits, two_to(126))
    scale, wide, code = spread(task, again)
    return task.answer(scale=scale, code=code, y=from_code(code, task.name) / wide)


def source_arithmetic(task):
    """Scale in bfloat16: the product, not the scale, is rounded to eight bits."""
    scale = scales(task)[2]
    wide = task.of_elements(scale)
    bits = (task.x * wide).view(U32)
    product = (bits + U32(0x7FFF) + (bits >> U32(16) & U32(1)) & U32(0xFFFF0000)).view(F32)
    code = to_code(np.where(np.isfinite(task.x), product, task.x), task.name)
    return task.answer(scale=scale, code=code)


def odd_product(task):
    """Encode the exact product through binary64 and a cast to binary16, which is wide enough."""
    scale = scales(task)[2]
    product = task.x.astype(F64) * task.of_elements(scale)
    half = product.astype(np.float16).astype(F32)
    return task.answer(scale=scale, code=to_code(half, task.name))


KERNELS = [
    Kernel("inverse_of_powers", kernel(inverse_of_powers, "e8m0")),
    Kernel("fused_distance", kernel(fused_distance, *ALL), "d is of v / scale without rounding"),
    Kernel("scaled_distance", kernel(scaled_distance, "e8m0"), "r is computed from xs"),
    Kernel("added_exponents", kernel(added_exponents, "e8m0"), "y leaves the exponent field"),
    Kernel("lost_inputs", kernel(lost_inputs, *ALL), "a large y is not lost"),
    Kernel("lost_infinities", kernel(lost_infinities, *ALL), "y is lost from infinity on"),
    Kernel("lost_above_tie", kernel(lost_above_tie, *ALL), "0x7F7F8000 is not lost"),
    Kernel("lost_above_largest", kernel(lost_above_largest, *ALL), "lost above 0x7F7F0000"),
    Kernel(
        "lost_outputs",
        kernel(lost_outputs, *ALL),
        "infinite x is not lost, infinite y is",
    ),
    Kernel(
        "own_if_largest",
        kernel(own_if_largest, "gam"),
        "a tiny group has FLT_MAX as scale",
    ),
    Kernel("nothing_subnormal", kernel(nothing_subnormal, *ALL), "subnormal x do not count"),
    Kernel(
        "zero_blocks_skipped",
        kernel(zero_blocks_skipped, *ALL),
        "-0 and a stored 127 are 0",
    ),
    Kernel("stored_decode", kernel(stored_decode_scales, "e8m0"), "2^127 becomes 2^126"),
    Kernel("source_arithmetic", kernel(source_arithmetic, *ALL), "xs is rounded to bfloat16"),
    Kernel("odd_product", kernel(odd_product, *ALL), "x * scale is rounded to binary16"),
]
