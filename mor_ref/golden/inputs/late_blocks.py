"""Blocks of three numbers in large tensors, at which quantizers to integers and levels differ."""

import math
from collections.abc import Iterator, Sequence

from mor_ref.golden.inputs.edges import in_source
from mor_ref.golden.inputs.placed import Entry

Block = tuple[float, float, float]
_SUBNORMAL = 2.0**-130  # also in bfloat16
_UNIT = {"f32": 2.0**-149, "f16": 2.0**-24}
_HUGE = {"f32": 3e38, "f16": 60000.0}
_BELOW_HALF = {"f32": 0.5 - 2.0**-25, "f16": 0.5 - 2.0**-12}
# Ranges whose zero points are next to a tie. Added to the lowest integer of int8 in binary32, or of
# int16 in binary16, they are at it. In the second range of binary32, the sum of a number and the
# zero point is so near the middle of two binary32 numbers that binary64 rounds it to the middle.
# In that of binary16, the largest code is none of its numbers.
_NEAR_HALVES = {
    "f32": ((-3.0, -7.0, 63.0), (-0.01264590211212635, -5.0, 39.140625)),
    "f16": ((4.5, -0.240966796875, 53.0), (3.0, -0.207763671875, 51.0)),
}
_TOPS = {"lsq4": 7.0, "lsq3": 3.0}  # whose alpha is 1
# Ranges of zeros, of one sign, and tiny ones; a NaN and an infinity.
_ZEROS, _NAN, _INFINITY = (-0.0, 0.0, 0.0), (0.5, -3.0, math.nan), (1.0, -2.0, math.inf)
_POSITIVE, _NEGATIVE, _TINY = (5.0, 7.0, 6.0), (-20.0, -27.125, -55.625), (3e-10, -1e-9, 1e-9)


def with_zero_points(source: str) -> tuple[Block, ...]:
    """Return blocks for a grid that is not symmetric: int8 in binary32, int16 in binary16."""
    unit, huge, near = _UNIT[source], _HUGE[source], _BELOW_HALF[source]
    ties = (near, -126.5, 128.5), (2.5, -125.0, 130.0), (-unit, -127.5, 127.5)
    tiny = (-100 * unit, -382 * unit, 0.0), (0.0, 0.0, unit)
    more = _ZEROS, _NAN, _INFINITY, _POSITIVE, _NEGATIVE, (huge / 3, -huge, huge)
    return (*_NEAR_HALVES[source], *ties, *tiny, *more)


def of_amaxes() -> tuple[Block, ...]:
    """Return blocks of binary32 for profiles that store an amax."""
    unit, near = _UNIT["f32"], _BELOW_HALF["f32"]
    return (
        (near, 2.5, -127.0), (-(2.0**-129), -(2.0**-127), 0.0), (-unit, 0.0, unit),
        (1e38, 2e38, -3e38), _ZEROS, _NAN, _INFINITY, _NEGATIVE,
    )  # fmt: skip


def rows_of_weights(kind: str, arithmetic: str) -> tuple[tuple[float, ...], ...]:
    """Return rows of weights with special numbers, tiny ones and ties; those of one bit have 5."""
    top = 9e-6 if arithmetic == "bf16" else 5e-6  # below the smallest alpha
    rare = (top, -3e-6, 1e-6), _ZEROS, (0.5, -math.inf, math.nan), _INFINITY
    if kind != "elastic1":
        tie = (_TOPS[kind], 2.5, -1e-9) if kind in _TOPS else (1.0, 1 / 3, -1e-9)
        return (tie, (-_SUBNORMAL, 0.0, 0.75), *rare)
    # The mean is next to a tie of binary32, which is next to one of bfloat16; another one is 3/4.
    mean = (20.0, -5 * 2.0**-6, 5 * 2.0**-22, 2.0**-60, 0.0)
    return (mean, *((*row, 0.0, 0.0) for row in ((3.0, 0.75, -_SUBNORMAL), *rare)))


def in_rows(blocks: Sequence[Sequence[float]], first: int, source: str) -> Iterator[Entry]:
    """Yield entries that put blocks into rows, one in each from the first one on."""
    for row, block in enumerate(blocks, first):
        for column, bits in enumerate(in_source(block, source).tolist()):
            yield [row, column, bits]


def down_a_column(blocks: Sequence[Block], column: int, source: str) -> Iterator[Entry]:
    """Yield entries that put blocks below one another in a column."""
    numbers = [number for block in blocks for number in block]
    for row, bits in enumerate(in_source(numbers, source).tolist()):
        yield [row, column, bits]
