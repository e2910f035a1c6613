"""Stochastic rounding of binary32, as kernels add random bits, each with its mistake."""

import numpy as np

from wrong.conversions import Layout
from wrong.kernel import Kernel
from wrong.porting import by, dispatch

F32, U32, U64, I64 = np.float32, np.uint32, np.uint64, np.int64


def rounder(function, formats=("e4m3", "e5m2", "e2m1", "bf16"), overflow="satfinite"):
    """Return the entry of a kernel that computes the code of a magnitude."""

    def encode(parameters, inputs):
        name = parameters["format"]
        if name not in formats or parameters["overflow"] != overflow:
            return None
        layout, x = Layout.table[name], inputs["x"]
        magnitude = (x & U32(0x7FFFFFFF)).astype(I64)
        word = inputs["random_word"].astype(I64)
        code = function(layout, magnitude, word, parameters["n_random_bits"])
        if overflow == "satfinite":
            code = np.minimum(code, layout.largest)
        code = code | np.where(x >> 31, layout.top, 0)
        nan = layout.nan if layout.kind != "none" else layout.largest
        return {"code": np.where(magnitude > 0x7F800000, nan, code).astype(layout.dtype)}

    return dispatch(encode_stochastic=encode)


def parts(layout, magnitude):
    """Return the code cut off, the bits of the significand below it, and their count."""
    field = magnitude >> 23
    significand = np.where(field > 0, magnitude & 0x7FFFFF | 1 << 23, magnitude)
    e = np.maximum(field, 1) - 127
    p = np.maximum(e, 1 - layout.bias)
    drop = p - e + 23 - layout.m
    gone = np.minimum(drop, 62)
    code = (p - 1 + layout.bias << layout.m) + (significand >> gone)
    return code, significand & (np.left_shift(1, gone) - 1), drop


def fraction(rest, drop, n):
    """Return the first n of the bits that are dropped."""
    return rest >> np.clip(drop - n, 0, 62) << np.maximum(n - drop, 0)


def right(layout, magnitude, word, n):
    code, rest, drop = parts(layout, magnitude)
    return code + (fraction(rest, drop, n) + word >= 1 << n)


def strictly(layout, magnitude, word, n):
    code, rest, drop = parts(layout, magnitude)
    return code + (fraction(rest, drop, n) > (1 << n) - word)


def less_than_the_fraction(layout, magnitude, word, n):
    """Go up if the word is below the fraction, as frameworks compare a uniform number."""
    code, rest, drop = parts(layout, magnitude)
    return code + (word < fraction(rest, drop, n))


def rounded_fraction(layout, magnitude, word, n):
    code, rest, drop = parts(layout, magnitude)
    half = np.where(drop > n, np.left_shift(1, np.clip(drop - n - 1, 0, 62)), 0)
    return code + (fraction(rest + half, drop, n) + word >= 1 << n)


def in_32_bits(layout, magnitude, word, n):
    """Let 32 random bits and the fraction overflow a register."""
    code, rest, drop = parts(layout, magnitude)
    total = fraction(rest, drop, n) + word & 0xFFFFFFFF
    return code + (total >= (1 << n & 0xFFFFFFFF)) * (n < 32)


def normal_alignment(layout, magnitude, word, n):
    """Add the word to the bits of x below the mantissa that a normal number keeps."""
    drop = 23 - layout.m
    word = word << drop - n if drop > n else word >> n - drop
    added = np.where(magnitude < 0x7F800000, magnitude + word, magnitude) >> drop << drop
    added = np.minimum(added, 0x7F800000)
    code, _, _ = parts(layout, added)
    return code


def register_shift(layout, magnitude, word, n):
    """Shift by the lower five bits of the distance, as processors do."""
    code, rest, drop = parts(layout, magnitude)
    away = np.where(drop > n, drop - n & 31, 0)
    return code + ((rest >> away << np.maximum(n - drop, 0)) + word >= 1 << n)


def limited_shift(layout, magnitude, word, n):
    """Shift by 31 bits at most."""
    code, _, _ = parts(layout, magnitude)
    field = magnitude >> 23
    significand = np.where(field > 0, magnitude & 0x7FFFFF | 1 << 23, magnitude)
    drop = np.minimum(np.maximum(1 - layout.bias, field - 127) - field + 150 - layout.m, 31)
    rest = significand & (np.left_shift(1, drop) - 1)
    return code + (fraction(rest, drop, n) + word >= 1 << n)


def unshifted(layout, magnitude, word, n):
    """Use the dropped bits as they are if they are fewer than the random bits."""
    code, rest, drop = parts(layout, magnitude)
    return code + ((rest >> np.clip(drop - n, 0, 62)) + word >= 1 << np.minimum(n, drop))


def high_bits(layout, magnitude, word, n):
    """Use the upper bits of a word of 32, where the n lower ones are given."""
    code, rest, drop = parts(layout, magnitude)
    return code + (fraction(rest, drop, n) + (word >> 32 - n) >= 1 << n)


def in_floating_point(layout, magnitude, word, n):
    """Add a uniform number in binary32, and cut."""
    code, rest, drop = parts(layout, magnitude)
    dropped = np.ldexp(rest.astype(F32), -drop)
    uniform = np.ldexp(word.astype(F32), -n)
    return code + (dropped + uniform >= 1)


def in_binary64(layout, magnitude, word, n):
    """Add all dropped bits in binary64, which has too few bits for them."""
    code, rest, drop = parts(layout, magnitude)
    return code + (np.ldexp(rest.astype(np.float64), -drop) + np.ldexp(word * 1.0, -n) >= 1)


def half_for_few(layout, magnitude, word, n):
    """Centre the word, so that the mean is right: r + 1/2."""
    code, rest, drop = parts(layout, magnitude)
    return code + (2 * fraction(rest, drop, n) + 2 * word + 1 >= 2 << n)


def complement(layout, magnitude, word, n):
    """Go up if the fraction is at least the word's complement, one too many."""
    code, rest, drop = parts(layout, magnitude)
    return code + (fraction(rest, drop, n) >= (1 << n) - 1 - word)


def above_the_largest(layout, magnitude, word, n):
    """Judge overflow before rounding: a number rounded up from the largest becomes the largest."""
    top = (layout.largest >> layout.m) - layout.bias + 127 << 23
    top |= (layout.largest & (1 << layout.m) - 1) << 23 - layout.m
    code = np.minimum(right(layout, magnitude, word, n), layout.largest)
    return np.where(magnitude >= top + (1 << 23 - layout.m), layout.infinity, code)


def overflowing(layout, magnitude, word, n):
    return np.minimum(right(layout, magnitude, word, n), layout.infinity)


_FORMATS = ("e4m3", "e5m2", "e2m1", "bf16")
_SMALL = _FORMATS[:3]
_BITS = (1, 2, 3, 8, 16, 23, 24, 31, 32)
_IEEE = ("e4m3", "e5m2", "bf16", "f16")
KERNELS = [
    Kernel("stochastic_overflow", rounder(overflowing, _IEEE, "ieee")),
    *by(
        "format",
        _IEEE,
        Kernel("above_the_largest", rounder(above_the_largest, _IEEE, "ieee"), "judged too early"),
    ),
    Kernel("stochastic_in_64_bits", rounder(right)),
    # Half a random unit more changes nothing: both sides of the comparison are even.
    Kernel("half_for_few", rounder(half_for_few)),
    *by("format", _FORMATS, Kernel("strictly", rounder(strictly), "F + r has to be above 2^n")),
    Kernel("less_than", rounder(less_than_the_fraction), "goes up if r < F"),
    Kernel("rounded_fraction", rounder(rounded_fraction), "F is rounded to nearest"),
    Kernel("in_32_bits", rounder(in_32_bits), "with n = 32, F + r overflows"),
    *by(
        "format",
        _SMALL,
        Kernel("normal_alignment", rounder(normal_alignment), "as if all results were normal"),
    ),
    *by(
        "n_random_bits",
        _BITS,
        Kernel(
            "register_shift", rounder(register_shift, _SMALL), "shifts by the distance modulo 32"
        ),
    ),
    Kernel("limited_shift", rounder(limited_shift, _SMALL), "shifts by at most 31"),
    *by(
        "format",
        _FORMATS,
        Kernel("unshifted", rounder(unshifted), "fewer dropped than random bits are not aligned"),
    ),
    Kernel("high_bits", rounder(high_bits), "the word's upper bits are used"),
    *by(
        "n_random_bits",
        _BITS,
        Kernel(
            "in_floating_point",
            rounder(in_floating_point, _SMALL),
            "f + r / 2^n is rounded to binary32",
        ),
    ),
    Kernel("in_binary64", rounder(in_binary64), "f + r / 2^n is rounded to binary64"),
    Kernel("complement", rounder(complement), "one word too many goes up"),
]
