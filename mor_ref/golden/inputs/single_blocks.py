"""Single blocks, each a row: numbers on the edges of a format, and thresholds of scales."""

from fractions import Fraction

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import Scaling
from mor_ref.exact import arithmetic
from mor_ref.golden.inputs.amaxes_at_thresholds import (
    BINADES,
    LOGARITHMS,
    SOME_BINADES,
    SOME_STEPS,
    around,
    edge_pairs_of_gam,
    found_pairs_of_gam,
    hard_amaxes,
    pairs_of_gam,
    with_subnormal_reciprocals,
)
from mor_ref.golden.inputs.edges import Bits, edges_of
from mor_ref.golden.inputs.extremes import TOPS
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_bits, numbers_of
from mor_ref.operations.random_words import random_words

WIDTH = 16  # numbers of a block
LARGEST = np.array([0x7F7FFFFF, *[0x7F000000] * (WIDTH - 1)], np.uint32)  # some y are infinite
_SPECIAL = (0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000)


def filled(fmt: Format, amaxes: Bits, width: int, size: Size, stream: int) -> Bits:
    """Return blocks of these amaxes; the other numbers are on or next to edges of a format."""
    edges = [bits for bits in edges_of(fmt).tolist() if 0 < bits < f32_bits(fmt.largest)]
    points = numbers_of(np.array(edges, np.uint32), "f32")
    picks = random_words(amaxes.size * width, size.seed, stream).tolist()
    blocks = []
    for n, amax in enumerate(numbers_of(amaxes, "f32")):
        unit = arithmetic.quotient(amax, fmt.largest)
        row = []
        for k in range(width):
            pick = picks[n * width + k]
            bits = f32_bits(arithmetic.product(points[pick % len(points)], unit))
            bits = min(max(bits + (pick >> 20) % 3 - 1, 0), int(amaxes[n]))
            row.append(bits | (pick >> 30 & 1) << 31)
        row[n % width] = int(amaxes[n]) | (n & 1) << 31
        blocks.append(row)
    return np.array(blocks, np.uint32)


def repeats(size: Size) -> int:
    """Return how often blocks are repeated, to outnumber the blocks next to thresholds."""
    return 5 * size.factor - 4


def with_specials(blocks: Bits, every: int = 8) -> Bits:
    """Put a NaN, an infinity, a zero or the smallest number into every `every`th block."""
    for n in range(every - 1, len(blocks), every):
        blocks[n, (n + 5) % blocks.shape[1]] = _SPECIAL[n // every % len(_SPECIAL)]
    return blocks


def spread_pairs_of_gam(count: int) -> tuple[Bits, Bits]:
    """Return `count` pairs of amaxes, of a group and a block in it, spread over the edges."""
    groups, blocks = edge_pairs_of_gam()
    chosen = np.linspace(0, groups.size - 1, count).astype(int)
    return groups[chosen], blocks[chosen]


def extremes(usual: Bits) -> tuple[Bits, Bits]:
    """Return blocks with a NaN or infinity at an end, huge and tiny ones, and their amaxes."""
    blocks = []
    for place, bits in ((0, 0x7FC00000), (0, 0xFFFFFFFF), (0, 0x7F800000), (WIDTH - 1, 0x7FC00000),
                        (1, 0x7FC00000)):  # fmt: skip
        blocks.append(usual.copy())
        blocks[-1][place] = bits
    blocks[2][7] = 0xFF800000  # a second number that is lost
    for top in (*TOPS, 0xFF7F8000):
        blocks.append(LARGEST - np.uint32(1 << 24))
        blocks[-1][3] = top
    for tiny in (0x025FFFFF, 0x005A827A, 0x00100001, 0x00000003):
        blocks.append(np.arange(WIDTH, dtype=np.uint32) * np.uint32(tiny // WIDTH))
        blocks[-1][9] = tiny
    x = np.array(blocks, np.uint32)
    magnitudes = x & np.uint32(0x7FFFFFFF)
    return x, np.where(magnitudes < 0x7F800000, magnitudes, 0).max(axis=1).astype(np.uint32)


def amaxes_near_turns(fmt: Format, scaling: Scaling) -> tuple[Bits, Bits]:
    """Return pairs of amaxes, of a group and a block, next to changes of this kind of scale."""
    largest = Fraction(fmt.largest)
    if scaling == "gam":
        groups, blocks = pairs_of_gam(fmt)
        near = [*around(largest, SOME_BINADES, SOME_STEPS), *around(largest, LOGARITHMS, (0,))]
        turns = np.array(list(dict.fromkeys(near)), np.uint32)
        found_in, found = found_pairs_of_gam()
        return (
            np.concatenate([groups[::9], turns, found_in]),
            np.concatenate([blocks[::9], turns, found]),
        )
    exponents = around(largest, (*BINADES, *LOGARITHMS, *with_subnormal_reciprocals(largest)))
    amaxes = np.array(exponents if scaling == "e8m0" else hard_amaxes(fmt), np.uint32)
    return amaxes, amaxes
