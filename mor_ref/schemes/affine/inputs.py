"""Numbers at which quantizers to integers differ: ties, ends of grids, zero points, and ranges."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.golden.inputs.edges import SPECIALS, Bits, bell, narrowed
from mor_ref.golden.inputs.integer_ties import ROUNDED_TWICE
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_array
from mor_ref.operations.call import Arrays
from mor_ref.operations.random_numbers import Draws
from mor_ref.operations.random_words import random_words
from mor_ref.schemes.affine.definition import affine_profile
from mor_ref.schemes.affine.operation import random_element, random_float_zero

_SCALES = (1.0, 0.0129999, 1 / 3, 2.0**-126, 1.7e38)
_STEPS = (0, 1, -1)
# Numbers at and next to the ends of integers of 32 and 64 bits.
_WIDE = (0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x5EFFFFFF, 0x5F000000, 0xDF000000)
_WIDE_ZEROS = (0, 3, -3)
_TOPS = (1.0, 3.0, 0.1, 7.7, 127.5, 2.0**-30, 1e-7, 2e-6, 2.0**-140, 3e38, 1e20, 6e-5)
_COLUMNS = 21


def elements(parameters: dict[str, Any], size: Size, count: int) -> dict[str, Bits]:
    """Return numbers with scales and zero points: ties, ends, special numbers, and random ones."""
    grid, profile = integer_grid(parameters["grid"]), affine_profile(parameters["profile"])
    middle = (grid.lowest + grid.highest + 1) // 2
    ends = sorted({0, grid.lowest, grid.highest, min(3, grid.highest), middle - 1, middle + 4})
    zeros = [0] if profile.stores_amax else [z for z in ends if grid.lowest <= z <= grid.highest]
    wide = [z for z in _WIDE_ZEROS if z in zeros or (z > grid.lowest and len(zeros) > 1)]
    triples = [(bits, 1.0, z) for bits, z in itertools.product((*SPECIALS, *_WIDE), wide)]
    for scale, zero in itertools.product(_SCALES, zeros):
        unit = float(np.float32(scale)) / (127 if profile.stores_amax else 1)
        for code in (grid.lowest, grid.highest, zero, zero - 2, zero + 3, middle + 1):
            for half in (-0.5, 0.5):
                at = rn32_of_binary64((code - zero + half) * unit)
                near = int(f32_array([at])[0])
                triples += [(max(near + step, 0), scale, zero) for step in _STEPS]
    if profile.application == "fuse":
        triples += _rounded_twice(grid.name)
    own = [np.array(part) for part in zip(*triples, strict=True)]
    drawn = random_element(parameters, Draws(0, count * size.factor, size.seed))
    parts = {
        "x": own[0].astype(np.uint32),
        "scale": own[1].astype(np.float32).view(np.uint32),
        "zero_point": own[2].astype(np.int32).view(np.uint32),
    }
    return _with_drawn(parts, drawn)


def float_zeros(parameters: dict[str, Any], size: Size, count: int) -> dict[str, Bits]:
    """Return numbers with scales and zero points of binary32: ties, special and random ones."""
    grid = integer_grid(parameters["grid"])
    middle = (grid.lowest + grid.highest + 1) // 2
    zeros = (0.5, middle + 0.25, grid.lowest - 0.7, grid.highest + 1 / 3, -1e-7, 1e9, -0.0)
    triples = [(bits, 1.0, z) for bits, z in itertools.product((*SPECIALS, *_WIDE), zeros[:2])]
    for scale, zero in itertools.product(_SCALES, zeros):
        unit, stored = float(np.float32(scale)), float(np.float32(zero))
        for code in (grid.lowest, grid.highest, middle, middle + 1, 0):
            at = rn32_of_binary64((code - stored + 0.5) * unit)
            near = int(f32_array([at])[0])
            triples += [(max(near + step, 0), scale, zero) for step in _STEPS]
    triples += itertools.chain.from_iterable(map(_rounded_twice, ROUNDED_TWICE))
    own = [np.array(part) for part in zip(*triples, strict=True)]
    drawn = random_float_zero(parameters, Draws(0, count * size.factor, size.seed))
    parts = {
        "x": own[0].astype(np.uint32),
        "scale": own[1].astype(np.float32).view(np.uint32),
        "zero_point": own[2].astype(np.float32).view(np.uint32),
    }
    return _with_drawn(parts, drawn)


def _rounded_twice(grid: str) -> list[tuple[int, float, int]]:
    """Return numbers, scales and zero points whose sums binary64 rounds to a tie of binary32."""
    rows = ROUNDED_TWICE[grid]
    return [(x, float(np.uint32(scale).view(np.float32)), zero) for x, scale, zero in rows]


def _with_drawn(parts: dict[str, Bits], drawn: Arrays) -> dict[str, Bits]:
    return {n: np.concatenate([part, drawn[n].astype(np.uint32)]) for n, part in parts.items()}


def rows_at_ties(highest: int, size: Size) -> Iterator[Tensor]:
    """Yield rows of many ranges with numbers at ties of their scales, in each source.

    Some rows have no negative number, or no positive one. `highest` is the count of steps in a
    range, or in twice its amax.
    """
    words = random_words(len(_TOPS) * _COLUMNS, size.seed, 410 + highest % 50)
    words = words.reshape(len(_TOPS), _COLUMNS)
    rows = []
    for n, (top, own) in enumerate(zip(_TOPS, words.tolist(), strict=True)):
        unit = float(np.float32(top)) / (highest / 2)
        row = []
        for word in own:
            code, half = word % (highest + 3) - highest / 2 - 1, (word >> 20) % 4 != 0
            at = (math.floor(code) + 0.5 * half) * unit * (0.5 if n % 3 == 1 else 1)
            bits = int(f32_array([rn32_of_binary64(max(min(at, top), -top))])[0])
            row.append(max(bits + (word >> 24) % 5 - 2, 0))
        row[(7 * n) % _COLUMNS] = int(f32_array([float(np.float32(top))])[0]) | (n & 1) << 31
        row[(7 * n + 3) % _COLUMNS] = 0x80000000
        sign = {1: 0x00000000, 2: 0x80000000}.get(n % 4)
        if sign is not None:
            row = [bits & 0x7FFFFFFF | sign for bits in row]
        rows.append(row)
    x = np.array(rows, np.uint32)
    for source in ("f32", "bf16", "f16"):
        with np.errstate(invalid="ignore"):
            yield Tensor(f"ties.{source}", source, narrowed(x, source))


def rows_of_ranges(source: str = "f32") -> Tensor:
    """Return rows with zero points next to ties, and zero, tiny and too large ranges."""
    rows = [
        [-127.5, 127.5, 1.0, 0.0], [-126.5, 128.5, 0.5, 1.5], [-0.5, 254.5, 0.5, 2.5],
        [3e38, -3e38, 1e38, -2.5e38], [3.4e38, -1e37, 0.0, 5.0], [0.0, -0.0, 0.0, 0.0],
        [-0.0, -0.0, -0.0, -0.0], [5.0, 6.0, 7.0, 5.5], [-5.0, -6.0, -7.0, -5.5],
        [1e-9, -1e-9, 3e-10, 0.0], [-1e-9, -3e-10, -5e-10, -1e-10], [1e-41, -2e-42, 0.0, 4e-45],
        [2e-40, 1e-40, 1.9e-40, 1e-43], [1e-8, -0.0, 5e-9, 2e-9], [1e-6, -2e-6, 0.0, 1.1e-6],
        [math.inf, 1.0, -1.0, 0.5], [-math.inf, 1.0, -1.0, 0.5], [math.nan, 1.0, -1.0, 0.5],
        [math.inf, -math.inf, 1.0, -1.0], [-7.5, 7.5, 1.0, 0.5], [-6.5, 8.5, 0.5, 2.5],
        [-1.0, 2.0, 0.25, 0.1], [-3.0, 1.0, 0.3, 0.7], [-1e-8, 1e-8, 1e-9, 0.0],
    ]  # fmt: skip
    with np.errstate(invalid="ignore"):
        x = narrowed(np.array(rows, np.float32).view(np.uint32), source)
    return Tensor(f"ranges.{source}", source, x)


def rows_below_normal() -> Tensor:
    """Return rows in units of 2^-149: their scales are so coarse that 0 is far beyond the grid."""
    units = [[-382, 0, -100, -1], [-382, 0, -381, -255], [-1, 0, -1, 0], [382, -1, 0, 100]]
    x = np.where(np.array(units) < 0, np.uint32(0x80000000), np.uint32(0)) | np.abs(units)
    return Tensor("below_normal.f32", "f32", x.astype(np.uint32))


def positive(tensor: Tensor) -> Tensor:
    """Return the magnitudes of a tensor."""
    sign = tensor.x.dtype.type(1 << 8 * tensor.x.itemsize - 1)
    return Tensor(f"positive_{tensor.name}", tensor.source, tensor.x & ~sign)


def dimensions(size: Size) -> Iterator[Tensor]:
    """Yield tokens whose dimensions have many ranges, some equal, some NaN or infinite."""
    of_ranges = rows_of_ranges()
    yield Tensor("ranges.f32", "f32", np.ascontiguousarray(of_ranges.x.T))
    spread = random_words(36, size.seed, 460)
    shifts = (spread % np.uint64(12)).astype(np.uint32)
    base = bell(7 * 36, size.seed, 461).reshape(7, 36)
    base = np.where(base & 0x7FFFFFFF, base - (np.uint32(6) << 23), base) + (shifts << 23)
    base[:, 9], base[:, 22] = base[:, 4], base[:, 4]  # columns of equal range
    base[:, 17] = base[:, 4] ^ np.uint32(0x80000000)
    base[:, 30] = 0x3F800000  # a constant column
    for source in ("f32", "bf16", "f16"):
        with np.errstate(invalid="ignore"):
            yield Tensor(f"tokens.{source}", source, narrowed(base, source))
    yield positive(Tensor("tokens.f32", "f32", base))
    yield Tensor("tiny.f32", "f32", np.where(base & 0x7FFFFFFF, base - (np.uint32(27) << 23), base))
    special = base.copy()
    special[3, 5], special[1, 20], special[6, 21] = 0x7F800000, 0xFF800000, 0x7FC00000
    special[0, 33], special[2, 33] = 0x7F800000, 0xFF800000
    for source in ("f32", "bf16", "f16"):
        with np.errstate(invalid="ignore"):
            yield Tensor(f"special.{source}", source, narrowed(special, source))
    yield Tensor("one.f32", "f32", base[:1])
    yield Tensor("subnormal.f32", "f32", base & np.uint32(0x807FFFFF))
    zeros = base & np.uint32(0x80000000)
    yield Tensor("zeros.f32", "f32", zeros)


def many_dimensions(size: Size) -> Tensor:
    """Return tokens of more dimensions than a block of threads has threads."""
    spread = (random_words(1152, size.seed, 470) % np.uint64(9)).astype(np.uint32)
    x = bell(3 * 1152, size.seed, 471).reshape(3, 1152) + (spread << 23)
    x[1, 77] = 0x7E123456  # every other number of its group becomes 0
    return Tensor("many.bf16", "bf16", narrowed(x, "bf16"))


def random_dimensions(size: Size) -> Iterator[Tensor]:
    """Yield random tokens: about as many numbers as in the others, for each factor above 1."""
    for n in range(4 * (size.factor - 1)):
        spread = (random_words(72, size.seed, 480 + n) % np.uint64(9)).astype(np.uint32)
        x = bell(60 * 72, size.seed, 1480 + n).reshape(60, 72) + (spread << 23)
        yield Tensor(f"random_{n}.f32", "f32", x)
