"""Blocks of few numbers in large tensors, at which quantizers differ."""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.encoding import floor_log2
from mor_ref.golden.inputs.edges import in_source, values_of
from mor_ref.golden.inputs.mx_blocks import divides
from mor_ref.golden.inputs.placed import Entry
from mor_ref.operations.bits import f32_bits

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


# ---------------------------------------------------------------------- blocks of MX

# Codes of scales: numbers of bfloat16 show wrong entries of a table at three of them.
_CODES_OF_POWERS, _CODE_OF_TURN = (36, 78, 110), 203
# Steps of binary32 from a change of the scale to the amax that a rounded logarithm moves beyond it;
# none with another rule.
_FROM_TURN = {"floor": -1, "ceil": 1, "rceil": 1}
_RAW_BITS = 0x7F0000  # half a step of even, added to these bits, makes an exponent
# The last two numbers of rows of 34: an infinity and a NaN with a sign and without the quiet bit,
# and an infinity below zero before the one above zero that the row ends in.
INFINITIES = ([2097, 32, 0x7F800000], [2097, 33, 0xFF800001], [2098, 32, 0xFF800000])


def numbers_of_mx(fmt: Format, rule: str, source: str) -> list[int]:
    """Return bits of numbers that are blocks of their own; binary16 has none so rare.

    Those of binary32 are the amax of a turn, the smallest element under the smallest scale, -0, and
    numbers at which this rule has a subnormal quotient or looks at the bits of a subnormal number.
    """
    last = floor_log2(fmt.largest)
    if source != "f32":
        powers = [2.0 ** (code - 127 + last) for code in _CODES_OF_POWERS]
        return in_source([*powers, -math.inf], source).tolist() if source == "bf16" else []
    is_quotient = divides(rule)
    exponent = _CODE_OF_TURN - 128 + (0 if is_quotient else last) + (2 if rule == "floor" else 0)
    turn = SCALE_RULES[rule].turn_of(fmt) * Fraction(2) ** exponent
    found = [_bits(turn) + _FROM_TURN.get(rule, 0), _bits(values_of(fmt)[1] / 2**127), 0x80000000]
    if is_quotient:  # a quotient just above 2^-127, and one between 2^-127 and 2^-126
        largest = Fraction(fmt.largest) / 2**127
        found += [_bits(largest) + 1, _bits(largest * 3 / 2)]
    return [*found, _RAW_BITS] if rule == "even" and last == 0 else found


def _bits(number: Fraction) -> int:
    """Return the bits of the nearest binary32 number."""
    return f32_bits(rn32(number))


def at_ends_of_rows(numbers: Iterable[int], column: int) -> Iterator[Entry]:
    """Yield entries that put a number into each row from the first one on, in a column."""
    for row, bits in enumerate(numbers):
        yield [row, column, bits]
