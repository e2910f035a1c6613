"""Whole tensors in kernels, and the numbers that a launch, a warp or a loop misses."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import (
    Task,
    dispatch,
    finished,
)
from wrong.scaling import right

F32, U32 = np.float32, np.uint32


def launch(amaxes, written=lambda task: task):
    """Return the entry of a kernel; its function returns the amax of blocks, or None.

    `written` returns the task that is written, from the task that is asked for.
    """

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        amax = amaxes(task)
        if amax is None:
            return None
        groups = task.amax_of_groups(amax)
        mantissa, _, _ = right(task.scaling, task.largest, groups, groups)
        of_blocks = task.of_blocks(groups)
        _, exponent, scale = right(task.scaling, task.largest, of_blocks, amax)
        return finished(written(task), scale, amax=amax, mantissa=mantissa, exponent=exponent)

    return dispatch(quantize=quantize, quantize_block=quantize)


def _finite(x):
    magnitudes = np.abs(x)
    return np.where(magnitudes < np.inf, magnitudes, F32(0))


def integers(task):
    """Take the largest bit pattern of finite numbers, without signs: the right amax."""
    bits = np.ascontiguousarray(task.x).view(U32) & U32(0x7FFFFFFF)
    bits = np.where(bits < 0x7F800000, bits, U32(0))
    return task.blocks.reduce(np.maximum, bits).view(F32)


def without_abs(task):
    """Take the largest number, not magnitude."""
    x = np.where(np.isfinite(task.x), task.x, F32(0))
    return np.maximum(task.blocks.reduce(np.maximum, x), F32(0))


def flushed_half(task):
    """Widen binary16 by the bits of normal numbers alone."""
    if task.source != "f16":
        return None
    x = np.where(np.abs(task.x) < F32(2.0**-14), F32(0), _finite(task.x))
    return task.blocks.reduce(np.maximum, x)


def larger_of_the_ends(task):
    """Take the largest number, or the negated smallest number if no number is positive."""
    x = np.where(np.isfinite(task.x), task.x, F32(0))
    top = task.blocks.reduce(np.maximum, x)
    return np.where(top > 0, top, -task.blocks.reduce(np.minimum, x))


def with_infinities(task):
    """Use fmaxf, which skips NaN but not infinities."""
    return task.blocks.reduce(np.fmax, np.abs(task.x))


def with_nan(task):
    """Use the maximum of torch: any NaN wins."""
    x = np.where(np.isinf(task.x), F32(0), np.abs(task.x))
    return task.blocks.reduce(np.maximum, x)


def clamped(task):
    """Replace an infinite amax by FLT_MAX."""
    return np.fmin(task.blocks.reduce(np.fmax, np.abs(task.x)), np.finfo(F32).max)


def none_if_any_is_infinite(task):
    """Count an amax that is not finite as 0."""
    amax = task.blocks.reduce(np.maximum, np.abs(task.x))
    return np.where(np.isfinite(amax), amax, F32(0))


def begun_with_the_first(task):
    """Start from the first element and compare: if it is NaN, the amax is NaN."""
    x = np.where(np.isinf(task.x), F32(0), np.abs(task.x))
    first = x[np.ix_(task.blocks.rows, task.blocks.columns)]
    return np.where(np.isnan(first), first, task.blocks.reduce(np.fmax, x))


def in_half(task):
    """Reduce in bfloat16, for speed."""
    bits = np.ascontiguousarray(_finite(task.x)).view(U32) & U32(0xFFFF0000)
    return task.blocks.reduce(np.maximum, bits.view(F32))


def _inside(task):
    """Return the row and the column of each element within its block."""
    return (
        np.arange(n) - starts[np.searchsorted(starts, np.arange(n), side="right") - 1]
        for n, starts in zip(task.x.shape, (task.blocks.rows, task.blocks.columns), strict=True)
    )


def _widths(task):
    widths = np.diff([*task.blocks.columns, task.x.shape[1]])
    return np.broadcast_to(widths, (task.blocks.rows.size, widths.size))


def limited(task, rows, columns):
    """Return the amax of the first rows and columns of each block."""
    down, across = _inside(task)
    inside = (down < rows)[:, None] & (across < columns)
    return task.blocks.reduce(np.maximum, np.where(inside, _finite(task.x), F32(0)))


def one_warp(task):
    """Use a lane for each column of a block; a warp has 32 lanes."""
    return limited(task, 1 << 30, 32)


def half_a_warp(task):
    return limited(task, 1 << 30, 16)


def launch_of_512(task):
    """Reduce the first 512 columns of a block for its amax."""
    return limited(task, 1 << 30, 512)


def rows_of_1024(task):
    """Reduce the first 1,024 rows of a block for its amax."""
    return limited(task, 1024, 1 << 30)


def rows_of_16(task):
    """Use sixteen rows of threads, without a loop."""
    return limited(task, 16, 1 << 30)


def first_numbers(count):
    """Return the amax of the first numbers of each block, row by row."""

    def amaxes(task):
        rows, columns = _inside(task)
        inside = rows[:, None] * task.of_elements(_widths(task)) + columns < count
        return task.blocks.reduce(np.maximum, np.where(inside, _finite(task.x), F32(0)))

    return amaxes


def grid_of_65535(task):
    """Use a block of threads for each row of blocks, in the dimension that has 16 bits."""
    amax = task.amax()
    amax[65535:] = 0
    return amax


def vectors_of_four(task):
    """Load four columns at a time; columns after the last whole four are not read."""
    columns = task.x.shape[1] // 4 * 4
    if columns == 0:
        return None
    x = _finite(task.x)
    x[:, columns:] = 0
    return task.blocks.reduce(np.maximum, x)


_SIXTEEN = {"quantize_blocks": "its blocks are one row of 16 numbers"}
_SMALL = _SIXTEEN | {"quantize": "its tensors are small"}
KERNELS = [
    Kernel("flushed_half", launch(flushed_half), "subnormal binary16 counts as 0"),
    Kernel("amax_of_integers", launch(integers)),
    Kernel("without_abs", launch(without_abs), "the amax is taken from the positive numbers"),
    Kernel("larger_of_the_ends", launch(larger_of_the_ends), "negative numbers only alone"),
    Kernel("with_infinities", launch(with_infinities), "an infinity is an amax"),
    Kernel("with_nan", launch(with_nan), "a NaN is an amax"),
    Kernel("infinity_as_flt_max", launch(clamped), "an infinity counts as FLT_MAX"),
    Kernel(
        "none_if_infinite",
        launch(none_if_any_is_infinite),
        "an infinity hides all others",
    ),
    Kernel("begun_with_the_first", launch(begun_with_the_first), "a NaN in front is the amax"),
    Kernel("amax_in_half", launch(in_half), "the amax is cut to bfloat16"),
    Kernel("one_warp", launch(one_warp), "an amax of the first 32 columns of a block"),
    Kernel("half_a_warp", launch(half_a_warp), "an amax of the first 16 columns of a block"),
    Kernel("rows_of_16", launch(rows_of_16), "an amax of the first 16 rows of a block", _SIXTEEN),
    Kernel(
        "threads_of_1024",
        launch(first_numbers(1024)),
        "an amax of 1,024 numbers of a block",
        _SIXTEEN,
    ),
    Kernel(
        "loop_of_16_bits",
        launch(first_numbers(1 << 16)),
        "the loop over the numbers of a block counts in 16 bits",
        _SMALL,
    ),
    Kernel(
        "columns_of_2048",
        launch(lambda task: limited(task, 1 << 30, 2048)),
        "an amax of the 2,048 columns of a block that fit in shared memory",
        _SMALL,
    ),
    Kernel(
        "rows_of_2048",
        launch(lambda task: limited(task, 2048, 1 << 30)),
        "an amax of the first 2,048 rows of a block",
        _SMALL,
    ),
    Kernel(
        "grid_of_65535", launch(grid_of_65535), "an amax of the first 65,535 rows of blocks", _SMALL
    ),
    Kernel("vectors_of_four", launch(vectors_of_four), "the last columns have no amax", _SIXTEEN),
]
