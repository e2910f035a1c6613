"""Edges (inputs at which implementations differ), and random numbers that any language makes."""

import itertools
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.exact import arithmetic
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import Unsigned, f32_array
from mor_ref.operations.random_numbers import SIGNIFICANDS
from mor_ref.operations.random_words import random_words

Bits = NDArray[np.uint32]
_RANDOM = 48  # numbers of any magnitude that follow the edges

SPECIALS = (
    0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF,
    0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF,
)  # fmt: skip

# Quiet and signalling NaNs of both signs; a signalling one has its payload in the last bit.
NANS = (0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC00000)


def bell(count: int, seed: int, stream: int) -> Bits:
    """Return numbers like activations: sums of four uniform 22-bit integers, centred, times 2^-22.

    All are binary32 numbers: nothing is rounded.
    """
    return bell_between(0, count, count, seed, stream)


def bell_between(first: int, last: int, count: int, seed: int, stream: int) -> Bits:
    """Return the numbers of `bell` at places `first` to `last`, without making all of them."""
    words = [random_words(last - first, seed, stream, start + first) for start in (0, count)]
    mask = np.uint64((1 << 22) - 1)
    total = np.full(last - first, -(1 << 23), np.int64)
    for word in words:
        total += (word & mask).view(np.int64)
        total += (word >> np.uint64(32) & mask).view(np.int64)
    numbers: NDArray[np.float32] = total.astype(np.float32) * np.float32(2.0**-22)
    return numbers.view(np.uint32)


def wide(count: int, seed: int, stream: int) -> Bits:
    """Return numbers of all magnitudes: random binary32 patterns, also NaN and infinity."""
    return (random_words(count, seed, stream) >> np.uint64(32)).astype(np.uint32)


def upper_halves(bits: Bits) -> NDArray[np.uint16]:
    """Return the upper halves: a bfloat16 is a binary32 whose lower half is zero."""
    return (bits >> np.uint32(16)).astype(np.uint16)


def to_f16(bits: Bits) -> NDArray[np.uint16]:
    """Return the nearest binary16 numbers."""
    with np.errstate(over="ignore"):
        return bits.view(np.float32).astype(np.float16).view(np.uint16)


def narrowed(bits: Bits, source: str) -> Unsigned:
    """Return binary32 numbers in the format of a source."""
    if source == "f32":
        return bits
    return upper_halves(bits) if source == "bf16" else to_f16(bits)


def in_source(numbers: Iterable[float], source: str) -> Unsigned:
    """Return the bits of numbers in the format of a source."""
    return narrowed(f32_array(numbers), source)


def values_of(fmt: Format) -> list[Fraction]:
    """Return every finite number of a small format that is not negative, ascending."""
    codes = range(fmt.largest_code + 1)
    return sorted({Fraction(fmt.value(code)) for code in codes})


def edges_of(fmt: Format) -> Bits:
    """Return each value and midpoint of a small format, their neighbours, and larger numbers."""
    values = values_of(fmt)
    step = values[-1] - values[-2] if len(values) > 1 else values[-1]
    points = [*values, *((a + b) / 2 for a, b in itertools.pairwise(values))]
    points += [values[-1] + step * Fraction(k, 4) for k in (1, 2, 4, 6, 32)]
    found = set(SPECIALS)
    for point in points:
        if point > Fraction(arithmetic.FLT_MAX):
            continue
        bits = arithmetic.bits_of(arithmetic.rn32(point))
        near = {max(bits - 1, 0), bits, min(bits + 1, 0x7F800000)}
        found |= near | {number | 0x80000000 for number in near}
    return np.array(sorted(found), np.uint32)


def single_bits_of(fmt: Format) -> Bits:
    """Return numbers that differ from a value or a tie in one bit, for each bit that rounding cuts.

    Subnormal binades are included: there, other bits are cut. These numbers expose a sticky bit
    that misses one of the cut bits.
    """
    smallest = fmt.smallest_exponent
    found = set()
    for exponent in range(max(smallest - fmt.mantissa_bits - 1, -126), smallest + 2):
        cut = 23 - fmt.mantissa_bits + max(smallest - exponent, 0)
        number = exponent + 127 << 23
        points = (number, number | 1 << (cut - 1)) if 0 < cut <= 23 else (number,)
        for bit in range(min(cut - 1, 23)):
            found |= {point | 1 << bit for point in points}
    return np.array(sorted(found | {bits | 0x80000000 for bits in found}), np.uint32)


def amaxes() -> Bits:
    """Return every edge significand with every edge exponent, also subnormal ones."""
    found = set()
    for exponent in (
        -149, -148, -140, -127, -126, -125, -118, -64, -1, 0, 1, 8, 9, 15, 16, 64, 126, 127,
    ):  # fmt: skip
        for significand in SIGNIFICANDS:
            value = arithmetic.rn32(Fraction(significand) * Fraction(2) ** (exponent - 23))
            if 0 < value <= arithmetic.FLT_MAX:
                found.add(arithmetic.bits_of(value))
    return np.array([0, *sorted(found)], np.uint32)


def edges_and_random(fmt: Format, size: Size) -> Bits:
    """Return binary32 numbers for a format: edges of its codes or, if it is large, of exponents."""
    random = wide(_RANDOM, size.seed, stream=1)
    if fmt.bits <= 8:
        edges = edges_of(fmt)
        more = np.setdiff1d(np.array([*NANS, 0x80800000], np.uint32), edges)
        return np.concatenate([edges, single_bits_of(fmt), random, more])
    dropped = 23 - fmt.mantissa_bits
    found = set(amaxes().tolist())
    for exponent in range(256):
        for mantissa in (0, 1, (1 << 23) - 1, (1 << 22) + 1):
            field = exponent << 23 | mantissa
            half = 1 << dropped >> 1
            found |= {field, field & ~((1 << dropped) - 1) | half, field ^ half}
    found |= {*NANS, arithmetic.bits_of(arithmetic.rn32(Fraction(fmt.largest)))}
    both = {bits | sign for bits in found for sign in (0, 0x80000000)}
    return np.concatenate([np.array(sorted(both), np.uint32), single_bits_of(fmt), random])
