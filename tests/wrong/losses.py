"""Quantizers that do not count all that is lost, or count what is not."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import ORDINARY, Task, by, dispatch, errors, finished, from_code, lost, to_code
from wrong.scaling import right


def counted(losses, counts=lambda x, y: errors(x, y)[3]):
    """The entry of a kernel that has nonfinite and nonzero by x and y."""

    def quantize(parameters, inputs):
        task = Task.of(parameters, inputs)
        amax = task.amax()
        groups = task.of_blocks(task.amax_of_groups(amax))
        _, _, scale = right(task.scaling, task.largest, groups, amax)
        spread = task.of_elements(scale)
        y = from_code(to_code(task.x * spread, task.name), task.name) / spread
        return finished(task, scale) | task.answer(
            nonfinite=task.blocks.reduce(np.add, losses(task.x, y).astype(np.uint64)),
            nonzero=task.blocks.reduce(np.add, counts(task.x, y).astype(np.uint64)),
        )

    return dispatch(quantize=quantize, quantize_block=quantize)


def without(some):
    """What is lost, but for some numbers of x."""
    return lambda x, y: lost(x, y) & ~some(x)


def all_but_zeros_and_nan(x, _):
    return (x != 0) & ~np.isnan(x)


KERNELS = [
    Kernel("losses_counted", counted(lost)),
    *(
        kernel
        for wrong in (
            Kernel(
                "negative_infinity_not_lost",
                counted(without(lambda x: x == -np.inf)),
                "-infinity is not counted as lost",
                ORDINARY,
            ),
            Kernel(
                "infinities_not_lost",
                counted(without(np.isinf)),
                "an infinity is not counted as lost",
                ORDINARY,
            ),
            Kernel(
                "nan_not_lost",
                counted(without(np.isnan)),
                "a NaN is not counted as lost",
                ORDINARY,
            ),
            Kernel(
                "negative_nan_not_lost",
                counted(without(lambda x: np.isnan(x) & np.signbit(x))),
                "a NaN with the sign bit is not counted as lost",
                ORDINARY,
            ),
            Kernel(
                "infinities_counted",
                counted(lost, all_but_zeros_and_nan),
                "nonzero has infinities",
                ORDINARY,
            ),
        )
        for kernel in by("source", ("f32", "bf16", "f16"), wrong)
    ),
]
