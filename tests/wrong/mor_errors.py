"""MoR with a mistake in the error of an element, or in the elements that are lost."""

import ml_dtypes
import numpy as np

from wrong.microscaling import Register, f32, magnitude_bits
from wrong.mor_right import (
    INFINITE,
    ONE,
    acceptance,
    errors,
    fields,
    read,
    tiled,
    written,
)

KERNELS = Register()


def _with_errors(of_element):
    """Return all fields, with errors of elements that a function computes from x and y."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        found = fields(x, unit, ys)
        for name, y in ys.items():
            _, counts, gone = errors(x, y)
            u, gone = of_element(x, y, gone)
            found[f"{name}.sum"] = tiled(np.where(counts, u, np.uint32(0)), unit, dtype=np.uint64)
            found[f"{name}.nonfinite"] = tiled(gone, unit, dtype=np.uint64)
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mixed


def ratio_of(x, y):
    """Return relative errors of at most 1."""
    ratio = np.minimum(np.abs(x - y) / np.abs(x), f32(1))
    return np.where(magnitude_bits(y) >= INFINITE, f32(1), ratio)


def units_in_the_last_place(ratio):
    """Return u of relative errors."""
    return (f32(1) + ratio).view(np.uint32) - ONE


def wrong(name, mistake, of_element, **more):
    """Register an error of elements."""
    KERNELS.mor(name, mistake, **more)(_with_errors(of_element))


def flushed(x):
    """Replace subnormal numbers by zeros."""
    return np.where(np.abs(x) < f32(2.0**-126), f32(0), x)


wrong(
    "u_cut",
    "u is r * 2^23 cut to an integer.",
    lambda x, y, gone: ((ratio_of(x, y) * f32(2**23)).astype(np.uint32), gone),
)
wrong(
    "u_half_up",
    "u is r * 2^23 + 1/2 cut to an integer.",
    lambda x, y, gone: (
        np.floor(ratio_of(x, y).astype(float) * 2**23 + 0.5).astype(np.uint32),
        gone,
    ),
)
wrong(
    "u_of_binary64",
    "The quotient is of binary64, and rounded to u at once.",
    lambda x, y, gone: (
        np.where(
            magnitude_bits(y) >= INFINITE,
            2**23,
            np.rint(np.minimum(np.abs(x.astype(float) - y) / np.abs(x.astype(float)), 1) * 2**23),
        ).astype(np.uint32),
        gone,
    ),
)
wrong(
    "lost_ones_have_no_error",
    "An element whose y is infinite adds nothing to the sum.",
    lambda x, y, gone: (np.where(magnitude_bits(y) >= INFINITE, 0, errors(x, y)[0]), gone),
)
wrong(
    "differences_flushed",
    "A subnormal difference of x and y is flushed to zero.",
    lambda x, y, gone: (
        units_in_the_last_place(
            np.where(
                magnitude_bits(y) >= INFINITE,
                f32(1),
                np.minimum(flushed(np.abs(x - y)) / np.abs(x), f32(1)),
            )
        ),
        gone,
    ),
)
wrong(
    "errors_of_the_output",
    "Errors are computed from y after it was rounded to bf16.",
    lambda x, y, gone: (
        errors(x, y.astype(ml_dtypes.bfloat16).astype(np.float32))[0],
        gone,
    ),
)
wrong(
    "division_by_reciprocal",
    "The difference is multiplied by RN32(1 / |x|).",
    lambda x, y, gone: (
        units_in_the_last_place(
            np.where(
                magnitude_bits(y) >= INFINITE,
                f32(1),
                np.minimum(np.abs(x - y) * (f32(1) / np.abs(x)), f32(1)),
            )
        ),
        gone,
    ),
)
wrong(
    "error_of_y_over_x",
    "The relative error is |1 - y / x|.",
    lambda x, y, gone: (
        units_in_the_last_place(
            np.where(
                magnitude_bits(y) >= INFINITE, f32(1), np.minimum(np.abs(f32(1) - y / x), f32(1))
            )
        ),
        gone,
    ),
)
wrong(
    "lost_at_infinity",
    "A y is lost if it is infinite, and not if bf16 rounds it there.",
    lambda x, y, _gone: (
        errors(x, y)[0],
        (magnitude_bits(x) >= INFINITE) | (magnitude_bits(y) >= INFINITE),
    ),
)
wrong(
    "lost_in_x_alone",
    "Only x counts as lost if it is infinite or NaN, not its result.",
    lambda x, y, _gone: (errors(x, y)[0], magnitude_bits(x) >= INFINITE),
)
wrong(
    "lost_in_y_alone",
    "An infinity that e4m3 makes a number is not lost.",
    lambda x, y, _gone: (errors(x, y)[0], magnitude_bits(y) >= 0x7F7F8000),
)
wrong(
    "lost_above_the_last_bf16",
    "A y above the largest number of bf16 is lost, also where it is rounded down to it.",
    lambda x, y, _gone: (
        errors(x, y)[0],
        (magnitude_bits(x) >= INFINITE) | (magnitude_bits(y) > 0x7F7F0000),
    ),
)
