"""MX with mistakes in special numbers and in tables of scales, for each format and rule."""

import itertools

import numpy as np
from put_aside import put_aside

from wrong.causes import OF_MX
from wrong.microscaling import LARGEST, Register, f32, in_blocks, magnitude_bits, power
from wrong.mx_right import scale_codes
from wrong.mx_scales import finished

KERNELS = Register()
INFINITY, NAN = np.uint32(0x7F800000), np.uint32(0x7FC00000)
PAIRS = tuple(itertools.product(LARGEST, ("floor", "ceil", "even", "rceil")))
ALL = ("bf16", "f16", "f32")


def register(name, mistake, quantize, pairs=PAIRS, sources=ALL):
    """Register a function of (x, format, rule, k), once for each format and rule.

    One that the model of mistakes has in each kind of call is registered in one alone, and where it
    is put aside.
    """
    kinds = {f"{name}.{fmt}.{rule}": (fmt, rule) for fmt, rule in pairs}
    if f"mx.{name}" in OF_MX:
        aside = {full for full in kinds if f"mx.{full}" in put_aside()}
        kept = aside | {next(full for full in kinds if full not in aside)}
        kinds = {full: kinds[full] for full in kinds if full in kept}
    for full, (fmt, rule) in kinds.items():
        KERNELS.mx(full, mistake, (rule,), (fmt,), sources)(quantize)


def by_amax(name, mistake, amax_of, sources=ALL):
    """Register a function that returns the bits of the amax of each block."""

    def quantize(x, fmt, rule, k):
        return finished(x, scale_codes(amax_of(in_blocks(x, k)), fmt, rule), fmt, k)

    register(name, mistake, quantize, sources=sources)


# Infinities and NaNs in the amax


def infinity_hides_nan(blocks):
    """Return an infinite amax if a number is infinite, even next to a NaN."""
    held = magnitude_bits(blocks)
    return np.where((held == INFINITY).any(axis=2), INFINITY, held.max(axis=2))


def without(is_lost):
    """Return a function whose amaxes omit some numbers, chosen by their bits."""

    def amax_of(blocks):
        bits = np.ascontiguousarray(blocks).view(np.uint32)
        return magnitude_bits(np.where(is_lost(bits), f32(0), blocks)).max(axis=2)

    return amax_of


def folded(takes_new):
    """Reduce a block in a loop, comparing each number with the amax so far."""

    def amax_of(blocks):
        held = np.abs(blocks)
        amax = np.zeros(held.shape[:2], np.float32)
        for n in range(held.shape[2]):
            amax = np.where(takes_new(amax, held[:, :, n]), held[:, :, n], amax)
        return magnitude_bits(amax)

    return amax_of


def halved(takes_upper):
    """Reduce a block by halves, as the lanes of a warp do."""

    def amax_of(blocks):
        k = blocks.shape[2]
        held = np.zeros((*blocks.shape[:2], 1 << (k - 1).bit_length()), np.float32)
        held[:, :, :k] = np.abs(blocks)
        while held.shape[2] > 1:
            lower, upper = np.split(held, 2, axis=2)
            held = np.where(takes_upper(lower, upper), upper, lower)
        return magnitude_bits(held[:, :, 0])

    return amax_of


def of_signed_integers(blocks):
    """Take the largest bit pattern as a signed integer, which omits negative numbers."""
    return np.maximum(np.ascontiguousarray(blocks).view(np.int32), 0).max(axis=2).view(np.uint32)


def of_upper_halves(blocks):
    """Take the amax of upper halves, so that some NaNs look like an infinity."""
    return magnitude_bits(blocks).max(axis=2) & np.uint32(0xFFFF0000)


def nan_by_the_sum(blocks):
    """Find a NaN by the sum of the block, which is NaN for infinities of both signs, too."""
    amax = magnitude_bits(blocks).max(axis=2)
    return np.where(np.isnan(blocks.sum(axis=2)), NAN, amax)


def nan_by_the_first(blocks):
    """Look for a NaN in the first number of a block alone."""
    held = magnitude_bits(blocks)
    rest = np.where(held > INFINITY, np.uint32(0), held).max(axis=2)
    return np.where(held[:, :, 0] > INFINITY, NAN, rest)


def nonfinite_is_nan(blocks):
    """Look for a NaN by its exponent, which infinities share."""
    amax = magnitude_bits(blocks).max(axis=2)
    return np.where(amax >= INFINITY, NAN, amax)


for function in (
    infinity_hides_nan, of_signed_integers, nan_by_the_sum, nan_by_the_first, nonfinite_is_nan,
):  # fmt: skip
    by_amax(function.__name__, function.__doc__, function)
by_amax("of_upper_halves", of_upper_halves.__doc__, of_upper_halves, ("f32",))
for name, mistake, is_lost in (
    ("nan_is_lost", "A NaN is ignored.", lambda b: b & 0x7FFFFFFF > INFINITY),
    ("negative_nan_is_lost", "A NaN with a sign is ignored.", lambda b: b > 0xFF800000),
    ("negative_infinity_is_lost", "An infinity below zero is ignored.", lambda b: b == 0xFF800000),
    ("infinity_is_lost", "An infinity above zero is ignored.", lambda b: b == INFINITY),
    (
        "signalling_nan_is_lost",
        "A NaN without the quiet bit is ignored.",
        lambda b: (b & 0x7FFFFFFF > INFINITY) & (b & 0x400000 == 0),
    ),
):
    by_amax(name, mistake, without(is_lost))
for fold, names in ((folded, ("new", "old")), (halved, ("upper", "lower"))):
    first, second = names
    for name, text, takes in (
        (first, "b > a ? b : a", lambda a, b: b > a),
        (second, "a > b ? a : b", lambda a, b: ~(a > b)),
    ):
        by_amax(
            f"nan_by_{fold.__name__}_{name}", f"An amax is of {text}, {fold.__doc__}", fold(takes)
        )


# Powers of two


def shifted(width):
    """Return a function that computes 2^n as 1 << n in `width` bits, and 2^-n as its reciprocal."""

    def of(n):
        size = np.abs(n) % width
        numbers = np.left_shift(np.uint64(1), size.astype(np.uint64)).astype(np.float32)
        return np.where(n < 0, f32(1) / numbers, numbers)

    return of


def with_table(entry):
    """Return a function that looks up 2^n in a table with a wrong entry."""
    return lambda n: np.where(n == entry - 127, power(n) * f32(2), power(n))


def by_powers(name, mistake, up, down):
    """Register functions that map exponents of scales to the factors of numbers and of codes."""

    def quantize(x, fmt, rule, k):
        scale = scale_codes(magnitude_bits(in_blocks(x, k)).max(axis=2), fmt, rule)
        return finished(x, scale, fmt, k, up, down)

    register(name, mistake, quantize)


for width in (32, 64):
    of = shifted(width)
    by_powers(f"shift_of_{width}", f"2^n is 1 << n in {width} bits", lambda n, of=of: of(-n), of)
for entry in (36, 78, 110, 203):
    of = with_table(entry)
    by_powers(
        f"table_{entry}", f"Entry {entry} of a table of scales is wrong.", lambda n: power(-n), of
    )
