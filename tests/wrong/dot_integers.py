"""Dot products of int8 with SwitchBack's epilogue in NumPy: a right program, and mistakes."""

import re

import numpy as np

from wrong.kernel import Kernel
from wrong.microscaling import bits, f32

UNSCALE = f32(1) / f32(127 * 127)


def signed(codes):
    """Return the integers of codes."""
    return codes.view(np.int8).astype(np.int64)


def wrapped(sums):
    """Return sums wrapped to int32."""
    return sums.astype(np.uint64).astype(np.uint32).view(np.int32)


def epilogue(n, x, w):
    """Return a sum times 1 / 127^2, x and w."""
    return w * (x * (n * UNSCALE))


def run(operation, arrays, *, read=signed, total=None, hold=wrapped, convert=None, end=epilogue):
    """Return the fields by these steps; None for another operation."""
    if operation != "dot_integers":
        return None
    products = read(arrays["a"]) * signed(arrays["b"])
    sums = hold(products.sum(axis=1) if total is None else total(products))
    number = sums.astype(np.float32) if convert is None else convert(sums)
    x, w = (arrays[f"scale_{name}"].view(np.float32) for name in "ab")
    with np.errstate(all="ignore"):
        result = end(number, x, w)
    return {"int32_sum": sums.view(np.uint32), "number": bits(number), "result": bits(result)}


def at_once(n, x, w):
    """Return the exact product but for 1 / 127^2, rounded to binary64 and then to binary32."""
    return (n.astype(np.float64) * x * w / 127**2).astype(np.float32)


def truncated(sums):
    """Return sums in binary32, cut toward zero."""
    near = sums.astype(np.float32)
    above = np.abs(near.astype(np.float64)) > np.abs(sums.astype(np.int64))
    return np.where(above, np.nextafter(near, f32(0)), near)


def without_tail(products):
    """Return sums of the whole sixteens of a row; a short row counts as a whole."""
    return products[:, : products.shape[1] // 16 * 16 or None].sum(axis=1)


def flushed(n, x, w):
    """Return the result with subnormal intermediate results flushed."""
    inner = x * (n * UNSCALE)
    small = np.abs(inner) < np.finfo(np.float32).tiny
    return w * np.where(small, np.copysign(f32(0), inner), inner)


_MISTAKES = {
    "codes are unsigned": {"read": lambda codes: codes.astype(np.int64)},
    "the sign bit is a sign": {
        "read": lambda codes: np.where(codes >> 7, -1, 1) * (codes & 127).astype(np.int64)
    },
    "-128 counts as -127": {"read": lambda codes: np.maximum(signed(codes), -127)},
    "sums are kept in 16 bits": {"hold": lambda sums: wrapped(sums).astype(np.int16).astype("i4")},
    "sums are kept in 24 bits": {"hold": lambda sums: (wrapped(sums) << 8) >> 8},
    "sums saturate": {"hold": lambda sums: np.clip(sums, -(2**31), 2**31 - 1).astype(np.int32)},
    "sums are added up in binary32": {
        "total": lambda products: np.cumsum(products.astype(np.float32), axis=1)[:, -1]
    },
    "products past a multiple of sixteen are lost": {"total": without_tail},
    "the sum is cut to binary32": {"convert": truncated},
    "the sum goes through bfloat16": {
        "convert": lambda sums: (
            sums.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        ).view(np.float32)
    },
    "the factor is 1 / 128^2": {"end": lambda n, x, w: w * (x * (n * f32(2.0**-14)))},
    "the factor is 1 / 127": {"end": lambda n, x, w: w * (x * (n * (f32(1) / f32(127))))},
    "the sum is divided by 127^2": {"end": lambda n, x, w: w * (x * (n / f32(127 * 127)))},
    "w is multiplied first": {"end": lambda n, x, w: x * (w * (n * UNSCALE))},
    "x and w are multiplied first": {"end": lambda n, x, w: (w * x) * (n * UNSCALE)},
    "the scales come before the factor": {"end": lambda n, x, w: w * (x * n) * UNSCALE},
    "the result is rounded once": {"end": at_once},
    "the scale of b is lost": {"end": lambda n, x, w: epilogue(n, x, np.ones_like(w))},
    "the scales are magnitudes": {"end": lambda n, x, w: epilogue(n, np.abs(x), np.abs(w))},
    "subnormal numbers are flushed": {"end": flushed},
    "a scale of zero counts as one": {
        "end": lambda n, x, w: epilogue(n, np.where(x == 0, f32(1), x), w)
    },
}


def _kernel(name, steps, mistake=""):
    return Kernel(name, lambda operation, _, arrays: run(operation, arrays, **steps), mistake)


KERNELS = [
    _kernel("integers_in_numpy", {}),
    *(
        _kernel(f"integers.{re.sub('[^a-z0-9]+', '_', mistake)}", steps, mistake)
        for mistake, steps in _MISTAKES.items()
    ),
]
