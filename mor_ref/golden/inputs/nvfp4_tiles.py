"""Tensors whose NVFP4 tiles are on, or next to, points at which implementations differ."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.formats import as_format
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.exact.arithmetic import rn32
from mor_ref.golden.inputs.edges import bell, edges_of, narrowed, values_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_array, f32_bits, numbers_of
from mor_ref.operations.random_words import random_words


def scales_of_powers_of_two(size: Size) -> Iterator[Tensor]:
    """Yield tiles whose numbers, scaled exactly, are values and ties of e2m1."""
    points = numbers_of(edges_of(as_format("e2m1")), "f32")
    points = [x for x in points if abs(x) <= 6]
    picks = random_words(24 * 16, size.seed, 92).tolist()
    for aim in (2688.0, 1536.0):
        rows = []
        for k in range(24):
            chosen = [points[word % len(points)] for word in picks[16 * k : 16 * k + 15]]
            rows.append([math.ldexp(x, k - 12) for x in (6.0, *chosen)])
        rows[0][0] = aim
        bits = f32_array(x for row in rows for x in row).reshape(-1, 16)
        yield Tensor(f"exact_{aim:.0f}.f32", "f32", bits)


def scales_near_ties(size: Size) -> Iterator[Tensor]:
    """Yield tiles whose scales are next to a tie of e4m3: the order of operations decides."""
    scales = values_of(as_format("e4m3"))
    ties = [(a + b) / 2 for a, b in itertools.pairwise(scales[8:])][::5]
    for n, amax in enumerate((0x3F9E3779, 0x40490FDB)):
        whole = Fraction(numbers_of(np.array([amax], np.uint32), "f32")[0])
        rows = bell(4 * len(ties) * 16, size.seed, 93 + n).reshape(-1, 16).copy()
        for k, tie in enumerate(ties):
            at = f32_bits(rn32(tie * 6 * whole / 2688))
            for step in range(4):
                row = rows[4 * k + step]
                row[:] = np.where(row & 0x7FFFFFFF > at, row & 0x80000000 | at >> 1, row)
                row[3] = at + step - 1
        rows[0, 0] = amax
        yield Tensor(f"boundaries_{n}.f32", "f32", rows)


def tied_by_one_scale() -> Tensor:
    """Return numbers that are ties of e2m1 for some ways to combine two scales, but not for all."""
    x = np.zeros((8, 16), np.uint32)
    x[0, 0], x[1, 0] = 0x3F9E3779, 0x3E000000
    x[1, 1:] = 0x3C78A04F
    return Tensor("tie_of_a_tile.f32", "f32", x)


def infinite_amax(size: Size) -> Tensor:
    """Return rows with infinities: the global scale becomes 1, and scales of tiles overflow."""
    rows = bell(128, size.seed, 174).reshape(2, 64).copy()
    for column, bits in ((3, 0x7F800000), (20, 0x45340000), (40, 0x7149F2CA), (50, 0xFF800000)):
        rows[int(column == 50), column] = bits
    return Tensor("infinite_amax.f32", "f32", rows)


def largest_in_corners(size: Size) -> Iterator[Tensor]:
    """Yield tensors of tiles whose largest number is at a corner or inside.

    The last tile of the second tensor has one column.
    """
    x = bell(16 * 64, size.seed, 176).reshape(16, 64) & np.uint32(0xBFFFFFFF)
    for source, columns, places in (
        ("bf16", 64, ((15, 15), (0, 15), (15, 0), (7, 8))),
        ("f16", 33, ((15, 15), (7, 8), (15, 0))),
    ):
        own = x[:, :columns].copy()
        for tile, (row, column) in enumerate(places):
            own[row, 16 * tile + column] = 0x40200000 + (tile << 21)
        yield Tensor(f"corners.{source}", source, narrowed(own, source))


def subnormal_row() -> Tensor:
    """Return a row of subnormal numbers in a tensor so small that the row has a scale."""
    rows = np.repeat(np.array([[0x05800000], [0x007FFFFF]], np.uint32), 16, axis=1)
    return Tensor("subnormal_row.f32", "f32", rows)


# The numbers of a tile, as one column or as one row. If the errors are added in another order than
# NVF-006 says, another candidate is taken.
_TIED = {(16, 16): "-h-q--6-L---s-s-", (1, 16): "6Lss---q-------h"}


def tied_candidates(profile: Nvfp4Profile, tile: tuple[int, int]) -> Tensor:
    """Return a tile whose two candidates have equal errors, if these are added exactly.

    A number in the next tile makes the global scale 1: the scales of the candidates are 1 and 1.5.
    The error of L is 1/4 with scale 1 and 3/4 with scale 1.5. The errors of h and q are 1/2 and 0.
    The error of s is s. With scale 1.5 each s is lost when it is added to the large error of L.
    With scale 1 the errors of s are added to each other first. So the order of NVF-006 takes 1.5.
    """
    by_squares = profile.scales.error == "mse"
    numbers = {
        "-": 0.0,
        "6": 6.0,
        "L": 3.75,
        "h": 4.5,
        "q": 4.5 if by_squares else 0.0,
        "s": 1.25 * 2.0**-13 if by_squares else 2.0**-25,
    }
    bits = f32_array([*(numbers[place] for place in _TIED[tile]), profile.range])
    return Tensor("tied.f32", "f32", bits.reshape((1, -1) if tile[0] == 1 else (-1, 1)))
