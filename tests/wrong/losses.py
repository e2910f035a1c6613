"""Quantizers that do not count all lost numbers, or that count others."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import Task, by, dispatch, errors, finished, lost
from wrong.terms import restored


def counted(losses, counts=lambda x, y: errors(x, y)[3]):
    """Return the entry of a kernel that computes nonfinite and nonzero from x and y."""

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        scale, y = restored(task)
        return finished(task, scale) | task.answer(
            nonfinite=task.blocks.reduce(np.add, losses(task.x, y).astype(np.uint64)),
            nonzero=task.blocks.reduce(np.add, counts(task.x, y).astype(np.uint64)),
        )

    return dispatch(quantize=quantize, quantize_block=quantize)


def without(some):
    """Return a function that marks lost numbers, except for some numbers of x."""
    return lambda x, y: lost(x, y) & ~some(x)


def all_but_zeros_and_nan(x, _):
    return (x != 0) & ~np.isnan(x)


_WRONG = (
    ("negative_infinity_not_lost", "-infinity is not counted as lost",
     counted(without(np.isneginf))),
    ("infinities_not_lost", "an infinity is not counted as lost", counted(without(np.isinf))),
    ("nan_not_lost", "a NaN is not counted as lost", counted(without(np.isnan))),
    ("negative_nan_not_lost", "a NaN with the sign bit is not counted as lost",
     counted(without(lambda x: np.isnan(x) & np.signbit(x)))),
    ("infinities_counted", "nonzero has infinities", counted(lost, all_but_zeros_and_nan)),
)  # fmt: skip
KERNELS = [Kernel("losses_counted", counted(lost))]
for name, mistake, run in _WRONG:
    KERNELS += by("source", ("f32", "bf16", "f16"), Kernel(name, run, mistake))
