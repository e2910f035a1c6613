"""Kernels that look for NaN and infinities only in some blocks, rows or columns of a tensor."""

import itertools

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import LARGEST, Register, in_blocks, magnitude_bits
from wrong.mx_right import scale_codes
from wrong.mx_scales import finished
from wrong.nvfp4_launches import called, global_amax, quantized
from wrong.nvfp4_parts import FOUR_OVER_SIX, TE
from wrong.porting import Task, by, dispatch, to_code
from wrong.reaches import SMALLER, of_tensors
from wrong.terms import restored

KERNELS = Register()


def seen_by_fast_path(x):
    """Return where a kernel sees NaN: nowhere if it takes its path of whole warps."""
    fast = x.shape[1] % 32 == 0 and x.shape[1] > 32
    return np.full(x.shape, not fast)


def first(rows, columns):
    """Return a function that marks the first rows and columns, where a kernel sees NaN."""
    return lambda x: (np.arange(x.shape[0])[:, None] < rows) & (np.arange(x.shape[1]) < columns)


SEEING = {
    "the_first_block": ("the first block of a row sets the flag", first(1 << 30, 32)),
    "512_columns": ("512 threads have a column each", first(1 << 30, 512)),
    "512_rows": ("512 threads have a row each", first(512, 1 << 30)),
    "no_whole_warps": ("fmaxf drops NaN in the path of whole warps", seen_by_fast_path),
}


def nan_of(seen):
    """Return a function that quantizes in MX, and sees NaN only at marked places."""

    def quantize(x, fmt, rule, k):
        heard = np.where(np.isnan(x) & ~seen(x), np.float32(0), x)
        amax = magnitude_bits(in_blocks(heard, k)).max(axis=2)
        return finished(x, scale_codes(amax, fmt, rule), fmt, k)

    return quantize


for (name, (mistake, seen)), fmt, rule in itertools.product(
    SEEING.items(), LARGEST, ("floor", "ceil", "even", "rceil")
):
    of = f"nan_of_{name}.{fmt}.{rule}"
    KERNELS.mx(of, mistake, (rule,), (fmt,), operations=("mx",), unseen={"mx": SMALLER})(
        nan_of(seen)
    )


def clamped(parameters, inputs):
    """Return codes of a kernel whose path of whole warps clamps NaN to the largest number."""
    task = Task.of(parameters, inputs)
    scale, _ = restored(task)
    xs = task.x * task.of_elements(scale)
    xs = np.where(np.isnan(xs) & ~seen_by_fast_path(task.x), task.largest, xs)
    return task.answer(scale=scale, code=to_code(xs, task.name))


of_whole_warps = of_tensors(dispatch(quantize=clamped))
for scaling in ("gam", "fp32", "e8m0"):
    for fmt in ("e4m3", "e5m2"):  # formats with NaN
        one = Kernel(
            "nan_clamped", of_whole_warps, SEEING["no_whole_warps"][0], {"quantize": SMALLER}
        )
        KERNELS.extend(by("scaling", (scaling,), by("format", (fmt,), one)[0]))


def without_infinity(seen):
    """Return a function that quantizes in NVFP4, and sees infinities only at marked places."""

    def quantize(profile, x, tile):
        finite = np.where(np.isinf(x) & ~seen(x), np.float32(0), x)
        return quantized(profile, x, tile, global_amax(profile, finite))

    return quantize


for name, profile in itertools.product(("512_columns", "512_rows"), (*TE, *FOUR_OVER_SIX)):
    mistake, seen = SEEING[name]
    run, unseen = called(without_infinity(seen), profile), {f"nvfp4_{profile}": SMALLER}
    KERNELS.append(Kernel(f"nvfp4.infinities_of_{name}.{profile}", run, mistake, unseen))
