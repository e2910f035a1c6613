"""Loops over vectors whose last numbers take another way, with a mistake there.

All other numbers are those of the engine. The tails that no suite shows are in `still_missed.py`.
"""

import numpy as np

from mor_ref.operations import OPERATIONS
from wrong.kernel import Kernel

WIDTHS = (4, 8, 16)
# The sizes of the cases of these suites are multiples of the width.
WHOLE = {"fp8lm_scale": (4, 8), "fp8lm_stored": (4, 8), "fp8lm_adam": WIDTHS, "mx_decode": (4, 8)}


def right(operation, parameters, inputs):
    return OPERATIONS[operation].engine(parameters, inputs)


def tail(operation, width, name, mistake, changed):
    """Take a function of (parameters, inputs) that returns the fields of the last numbers.

    It returns None where it has no mistake.
    """

    def run(asked, parameters, inputs):
        other = changed(parameters, inputs) if asked == operation else None
        if other is None:
            return None
        size = len(next(iter(inputs.values())))
        behind = size // width * width
        found = right(operation, parameters, inputs)
        return {
            name: np.concatenate([field[:behind], other[name][behind:]])
            for name, field in found.items()
        }

    return Kernel(f"{operation}.{name}_behind_vectors_of_{width}", run, mistake)


def ties_away(parameters, inputs):
    if parameters["rounding"] != "rne":
        return None
    return right("encode", {**parameters, "rounding": "rna"}, inputs)


def unwritten(operation, width):
    """Return the mistake that last results are not written, in a buffer of zeros."""
    return tail(
        operation, width, "unwritten", "The last results are not written.",
        lambda parameters, inputs: {
            name: np.zeros_like(field)
            for name, field in right(operation, parameters, inputs).items()
        },
    )  # fmt: skip


KERNELS = [
    tail("encode", 16, "ties_away", "Ties are rounded away from zero.", ties_away),
    *(
        unwritten(operation.name, width)
        for operation in OPERATIONS.values()
        for width in WIDTHS
        if operation.first_axes == "n" and width not in WHOLE.get(operation.name, ())
    ),
]
