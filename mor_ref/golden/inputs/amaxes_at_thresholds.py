"""Amaxes next to the thresholds of scales, at many magnitudes.

Approximate logarithms and quotients are exact near 1, but wrong next to thresholds far from 1.
"""

import functools
import itertools
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.exact.arithmetic import FLT_MAX, rn32
from mor_ref.exact.encoding import floor_log2
from mor_ref.golden.inputs.edges import Bits, amaxes, values_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.operations.bits import f32_bits
from mor_ref.operations.random_numbers import SIGNIFICANDS

Reals = NDArray[np.float64]
BINADES = (0, 1, -1, 5, -5, 20, -20, 60, -60, 100, -100, -127)
SOME_BINADES = (0, 5, -20, 60, -100, -127)
LOGARITHMS = (29, 47)  # n for which a rounded log(2^n) / log(2) is below n
STEPS = (-1, *range(9))
SOME_STEPS = (-1, 0, 1, 2)
_EXPONENTS_OF_ENDS = (127, -126, -130)
_LARGEST = 0x7F7FFFFF
_HARD = 8  # divisors to each side of a tie
_SOME = 1 << 16  # divisors at a time, which the caches hold
# Pairs of amaxes, of a group and a block, that a search has found. Some have equal mantissas, and
# the rebuilt scale times the amax rounds above the largest number. Others have mantissas that
# differ by a step or two, but the quotient of their scales does not show it.
_FOUND = (
    (0x44C1F630, 0x3FC1F630), (0x4487C862, 0x3F87C862), (0x44C1F62F, 0x3FC1F630),
    (0x44F3A645, 0x3FF3A646), (0x44D2BC35, 0x3FD2BC35), (0x44D2BC34, 0x3FD2BC35),
    (0x44A65EB7, 0x3FA65EB7), (0x44A65EB6, 0x3FA65EB7), (0x44E98DF4, 0x3FE98DF4),
    (0x44E98DF3, 0x3FE98DF4), (0x44D52161, 0x3FD52161), (0x44D52160, 0x3FD52161),
    (0x44FD6106, 0x3FFD6108), (0x44E70A54, 0x3FE70A55), (0x44F0FCC6, 0x3FF0FCC8),
    (0x44E6627E, 0x3FE6627F), (0x44FC0A40, 0x3FFC0A42), (0x44C3DC10, 0x3FC3DC11),
    (0x44FBEAB4, 0x3FFBEAB6), (0x44974FE3, 0x3F974FE4), (0x44FDE4DE, 0x3FFDE4E0),
    (0x448EF19A, 0x3F8EF19B),
)  # fmt: skip


def around(
    point: Fraction, binades: Iterable[int] = BINADES, steps: Iterable[int] = STEPS
) -> list[int]:
    """Return binary32 numbers `steps` from point * 2^k, for each binade k and at both ends."""
    exponent, steps, found = floor_log2(point), tuple(steps), []
    for binade in (*binades, *(end - exponent for end in _EXPONENTS_OF_ENDS)):
        at = point * Fraction(2) ** binade
        if Fraction(2) ** -149 <= at <= FLT_MAX:
            nearest = f32_bits(rn32(at))
            found += [nearest + k for k in steps if 0 < nearest + k <= _LARGEST]
    return list(dict.fromkeys(found))


def with_subnormal_reciprocals(point: Fraction) -> tuple[int, int]:
    """Return the k for which point * 2^k is in binade 126 or 127: its reciprocal is subnormal."""
    return 126 - floor_log2(point), 127 - floor_log2(point)


@functools.cache
def hard_divisors(significand: Fraction) -> tuple[int, ...]:
    """Return the divisors of `significand` whose quotients are nearest to a tie, on both sides.

    All are in [1, 2). Of the 2^23 divisors, an approximate division rounds these wrongly first.
    """
    whole = int(significand * (1 << 23))
    some = [_nearest_to_ties(whole, first) for first in range(1 << 23, 1 << 24, _SOME)]
    found = []
    for side in zip(*some, strict=True):
        divisors, distances = map(np.concatenate, zip(*side, strict=True))
        found += divisors[np.argpartition(distances, _HARD)[:_HARD]].tolist()
    return tuple(sorted(map(int, found)))


def _nearest_to_ties(whole: int, first: int) -> list[tuple[Reals, Reals]]:
    """Return for each side the divisors, of some from the first on, and how far they are from ties.

    All are integers of at most 50 bits, which binary64 has; it divides quickly.
    """
    divisors = np.arange(first, first + _SOME, dtype=np.float64)
    numerator = whole * np.where(divisors > whole, 2.0**25, 2.0**24)
    quotient = np.floor(numerator / divisors)
    rest = numerator - quotient * divisors
    is_odd = np.floor(quotient / 2) * 2 != quotient
    nearest = []
    for side in (np.where(is_odd, rest, divisors), np.where(is_odd, divisors, divisors - rest)):
        distance = np.where(side == 0, divisors, side) / divisors
        places = np.argpartition(distance, _HARD)[:_HARD]
        nearest.append((divisors[places], distance[places]))
    return nearest


def hard_amaxes(fmt: Format) -> list[int]:
    """Return amaxes whose ideal scales are nearly halfway between two numbers."""
    largest = Fraction(fmt.largest)
    points = hard_divisors(largest / Fraction(2) ** floor_log2(largest))
    return [bits for p in points for bits in around(Fraction(p, 1 << 23), SOME_BINADES, (0,))]


def pairs_of_gam(fmt: Format) -> tuple[Bits, Bits]:
    """Return pairs of amaxes, of a group and a block in it, with nearly equal mantissas."""
    pairs = []
    points = [Fraction(fmt.largest), *(Fraction(s, 1 << 23) for s in SIGNIFICANDS[2::3])]
    for point, binade in itertools.product(points, (110, 60, 5, -5, -60)):
        group = f32_bits(rn32(point * Fraction(2) ** binade))
        near = around(point, (binade - k for k in (0, 1, 5, 20, 60)), (-2, -1, 0, 1, 2, 5))
        pairs += [(group, block) for block in near if block <= group]
    groups, blocks = zip(*pairs, strict=True)
    return np.array(groups, np.uint32), np.array(blocks, np.uint32)


def edge_pairs_of_gam() -> tuple[Bits, Bits]:
    """Return pairs of amaxes, of a group and a block in it: edges, and nearly equal mantissas."""
    edges = amaxes()
    pairs = []
    some = edges[:: max(1, edges.size // 40)].tolist()
    for group in some:
        near = [
            group - 1,
            group,
            *((group & 0x7FFFFF) + (e << 23) + k for e in (1, 126, 127) for k in (-1, 0, 1)),
        ]
        pairs += [(group, block) for block in {*some, *near} if 0 <= block <= group]
    groups, blocks = np.array(pairs, np.uint32).T
    return groups, blocks


def found_pairs_of_gam() -> tuple[Bits, Bits]:
    """Return pairs of amaxes, of a group and a block in it, that expose errors in GAM-003."""
    groups, blocks = np.array(_FOUND, np.uint32).T
    return groups, blocks


def pairs_of_tiles(reach: Fraction) -> tuple[Bits, Bits]:
    """Return pairs of amaxes, of a tensor and a tile, next to a tie of the tile's e4m3 scale.

    `reach` is the stored scale of a tile that has the amax of the tensor.
    """
    scales = values_of(as_format("e4m3"))
    ties = [(a + b) / 2 for a, b in itertools.pairwise(scales[8:]) if b <= reach]
    wholes, tiles = [], []
    significands = itertools.cycle(SIGNIFICANDS[::-1])
    for n, binade in enumerate((*BINADES[:11], 127, 110, -112) * 2):
        whole = Fraction(next(significands), 1 << 23) * Fraction(2) ** binade
        tie = ties[(n * 37 + 11) % len(ties)]
        at = f32_bits(rn32(whole * tie / reach))
        for step in STEPS:
            wholes.append(f32_bits(rn32(whole)))
            tiles.append(at + step)
    return np.array(wholes, np.uint32), np.array(tiles, np.uint32)


def nearly_equal_mantissas() -> Tensor:
    """Return pairs of rows: one has the amax of a group, the next the amax of a block in it."""
    amaxes = np.stack(found_pairs_of_gam(), axis=1).reshape(-1, 1)
    return Tensor("mantissas.f32", "f32", np.concatenate([amaxes, amaxes - amaxes // 64], axis=1))
