"""Distances and ratios of numbers, at infinities and overflow, each with its mistake."""

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import dispatch, floats, pattern

F32, F64, U32 = np.float32, np.float64, np.uint32
ONE, TOP, LARGEST = F32(1), F32(2.0**23), np.finfo(F32).max


def step(function):
    """Return the entry of a kernel that computes d and r from x and y."""

    def error_term(_, inputs):
        d, r = function(floats(inputs["x"]), floats(inputs["y"]))
        return {"d": pattern(d), "r": pattern(r), "u": np.rint(r * TOP).astype(U32)}

    return dispatch(error_term=error_term)


def _steps(x, y, lost):
    d = np.abs(x - y)
    return d, np.where(lost, ONE, np.fmin(d / np.abs(x), ONE))


def distances(x, y):
    """Return distance and ratio: the right ones."""
    return _steps(x, y, ~np.isfinite(y))


def _taken_for_the_largest(sign):
    """Read infinities of one sign in y as the largest number."""

    def function(x, y):
        is_read = y == sign * np.inf
        return distances(x, np.where(is_read, sign * LARGEST, y))

    return function


def zero_for(lost):
    """Replace a lost y by x, so that it has no error."""

    def function(x, y):
        d, r = distances(x, y)
        return np.where(lost(y), F32(0), d), np.where(lost(y), F32(0), r)

    return function


def saturated_distance(x, y):
    d, r = distances(x, y)
    return np.where(np.isfinite(y), np.minimum(d, LARGEST), d), r


def infinite_distance(x, y):
    """Let a distance overflow before rounding."""
    d, r = distances(x, y)
    return np.where(np.abs(x.astype(F64) - y) > LARGEST, F32(np.inf), d), r


def of_magnitudes(x, y):
    """Subtract magnitudes, as if a sign were never lost."""
    return _steps(np.abs(x), np.abs(y), ~np.isfinite(y))


KERNELS = [
    Kernel("steps", step(distances)),
    Kernel("infinite_y", step(_taken_for_the_largest(1)), "inf in y is the largest number"),
    Kernel("minus_infinite_y", step(_taken_for_the_largest(-1)), "-inf in y is finite"),
    Kernel("y_is_infinite", step(zero_for(np.isposinf)), "inf in y is no error"),
    Kernel("y_is_minus_infinite", step(zero_for(np.isneginf)), "-inf in y is no error"),
    Kernel("saturated_distance", step(saturated_distance), "d is at most the largest number"),
    Kernel("infinite_distance", step(infinite_distance), "d overflows before it is rounded"),
    Kernel("of_magnitudes", step(of_magnitudes), "d is ||x| - |y||"),
]
