"""Blocks of MX whose amaxes are at, or next to, a change or an underflow of the scale."""

import itertools
import math
from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact.arithmetic import rn32
from mor_ref.golden.inputs.amaxes_at_thresholds import (
    LOGARITHMS,
    SOME_BINADES,
    around,
)
from mor_ref.golden.inputs.edges import Bits, in_source, values_of
from mor_ref.golden.inputs.single_blocks import filled
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_bits

_HALF_STEPS = (0x007F0000, 0x007F7FFF, 0x007F8000)  # where even rounds subnormal amaxes


def below_powers_of_two() -> Tensor:
    """Return blocks of a number just below a power of two, and smaller ones of the other sign."""
    rows = []
    for k in range(-3, 4):
        power = 127 + 7 * k << 23
        for steps in (1, 3, 1 << 15, 1 << 17, 1 << 20):
            top = power - steps | (k & 1) << 31
            rows.append([top, *(top - (n << 18) ^ 0x80000000 for n in range(4, 32, 4))])
    return Tensor("ladder_below.f32", "f32", np.array(rows, np.uint32))


def with_half_of(amaxes: list[int]) -> list[list[int]]:
    """Return blocks of these amaxes, in which all other numbers are half of the amax."""
    return [[amax, *[amax >> 1] * 31] for amax in amaxes]


def divides(rule: str) -> bool:
    """Return whether a rule divides amax by the largest number of the elements, as rceil does."""
    return SCALE_RULES[rule].up_from is None


def rounds(fmt: Format, rule: str) -> bool:
    """Return whether a rule has a turn between two powers of two, as even does."""
    return not divides(rule) and SCALE_RULES[rule].turn_of(fmt) > 1


def underflowing(fmt: Format) -> Bits:
    """Return blocks whose amax / largest just underflows to 0, and just does not.

    A format whose largest number is below 2 has none: no quotient is that small.
    """
    last = int(fmt.largest / 2)
    return np.array(with_half_of([last, last + 1] if last else []), np.uint32).reshape(-1, 32)


def turning_tensor(fmt: Format, rule: str) -> Tensor:
    """Return blocks whose amaxes are next to a change of the scale, and a block of zeros."""
    amaxes = [0, *around(SCALE_RULES[rule].turn_of(fmt), SOME_BINADES, (-1, 0, 1)), 0x7F800000]
    if divides(rule):  # a quotient that is subnormal
        amaxes.append(f32_bits(rn32(Fraction(fmt.largest) * 3 / 2**128)))
    if rounds(fmt, rule):  # half a step is added to the number, not to the bits of a subnormal
        amaxes += _HALF_STEPS
    tops = np.array(amaxes, np.uint32)[:, np.newaxis]
    x = tops - tops // 64 * (1 + np.arange(32, dtype=np.uint32) % 5)
    rows = np.arange(len(x))
    x[rows, (20 + 11 * rows) % 32] = tops[:, 0]  # each amax in another lane
    return Tensor("turning.f32", "f32", x | (np.arange(32, dtype=np.uint32) % 2 << 31))


def turning_in_source(fmt: Format, source: str, rule: str) -> Tensor:
    """Return blocks whose amax is at a change of the scale, or a step from it."""
    turn, half = in_source([float(SCALE_RULES[rule].turn_of(fmt)), 0.5], source).tolist()
    rows = [[turn + step, half] for step in (-1, 0, 1)]
    return Tensor(f"{rule}.{source}", source, np.array(rows, np.uint16))


def turning_by_logarithms(fmt: Format, rule: str) -> Bits:
    """Return pairs of an amax, for which rounded logarithms change the scale, and its half."""
    both = [sign * n for n in LOGARITHMS for sign in (1, -1)]
    amaxes = np.array(around(SCALE_RULES[rule].turn_of(fmt), both, (0,)), np.uint32)
    return np.stack([amaxes, amaxes >> np.uint32(1)], axis=1)


def turning_blocks(fmt: Format) -> Bits:
    """Return blocks whose amax is at a change of a scale rule, and a block of ties with scale 1."""
    width = fmt.mantissa_bits - (fmt.sign == "twos-complement")
    amaxes = [
        f32_bits(fmt.largest) + 1,
        f32_bits(2 - 2.0 ** -(width + 1)) - 1,
        0x3F800001,
        f32_bits(rn32(Fraction(fmt.largest) * Fraction(3, 2) / 2**127)),
        0x007FFFFF,
        0x00400000,
        *_HALF_STEPS,
        0x3FFE8000,
    ]
    ties = [float(a + b) / 2 for a, b in itertools.pairwise(values_of(fmt)[:17])]
    top = 2.0 ** (math.frexp(fmt.largest)[1] - 1)
    signed = [x * sign for sign in (1, -1) for x in (ties * 32)[:16]]
    blocks = with_half_of(amaxes)
    turned = [np.roll(block, 25 + 3 * n) for n, block in enumerate(blocks)]  # to other lanes
    return np.array([*turned, [f32_bits(x) for x in (top, *signed[1:])]], np.uint32)


def long_block(fmt: Format, size: Size, stream: int) -> Bits:
    """Return a block of four warps; the amax is in the last warp."""
    amax = np.array([f32_bits(fmt.largest)], np.uint32)
    x = filled(fmt, amax, 128, size, stream)
    x = np.where(x & 0x7F800000, x - (1 << 23), x)  # half of the amax at most
    x[0, 100] = amax[0]
    return x
