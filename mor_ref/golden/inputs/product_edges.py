"""Rows of A and columns of B at the ends of binary32, and cut sums of subnormal elements."""

import math

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.encoding import encode
from mor_ref.golden.inputs.products import Kind
from mor_ref.operations.bits import Unsigned, bits32
from mor_ref.operations.operation import Arrays
from mor_ref.operations.random_products import CHOICES, WIDEST, Blocks, operand

Pairs = list[tuple[float, float]]
_NONE: Pairs = []
# Numbers of a and b in two blocks, and the exponents of the factors of both rows: entries of -0,
# subnormal and infinite ones, a piece of -2^128, products of factors that are 0 or infinite, and a
# subnormal sum in bfloat16.
_ENDS: tuple[tuple[Pairs, Pairs, int, int], ...] = (
    (_NONE, [(-0.5, 0.5)], -127, -22),
    (_NONE, [(1.5, 2.0)], -127, -22),
    (_NONE, [(1.5, 1.0)], -127, -22),
    (_NONE, [(-2.0, 1.0)], 127, 0),
    ([(2.0, 1.0)], [(-2.0, 1.0)], 0, 127),
    (_NONE, [(1.0, 1.0)], 127, 127),
    ([(-1.0, 1.0)], [(-1.0, 1.0)], -127, -127),
    ([(math.nan, 1.0)], _NONE, -127, -127),
    ([(math.nan, 1.0)], _NONE, 0, 0),
    (_NONE, [(2.0**-70, 2.0**-70)], 0, 0),
)


def edges(kind: Kind) -> Arrays:
    """Return rows at the ends of binary32, and one for each operand with a subnormal number."""
    a, b = (formats[name] for name in kind.formats)
    bits = DOT_PROFILES[kind.parameters["dot_profile"]].fraction_bits
    of_b = [(y, x) for x, y in _behind_a_subnormal(b, a, bits)]
    rows = [(_behind_a_subnormal(a, b, bits), _NONE, 0, 0), (of_b, _NONE, 0, 0), *_ENDS]
    found: dict[str, Unsigned] = {}
    for n, (name, fmt) in enumerate(zip("ab", (a, b), strict=True)):
        codes = np.zeros((len(rows), kind.width), np.uint32)
        for row, blocks in zip(codes, rows, strict=True):
            for k, pairs in enumerate(blocks[:2]):
                start = k * kind.parameters["scale_block"]
                row[start : start + len(pairs)] = [_code(pair[n], fmt) for pair in pairs]
        found |= operand(name, codes, _blocks(kind, fmt, [row[2:][n] for row in rows]))
        if fmt.name == CHOICES[WIDEST]:  # y, which no scale multiplies
            found |= {name: codes, f"y_{name}": codes.astype(np.uint16)}
    return found


def smallest_nans(kind: Kind) -> Arrays:
    """Return rows of ones in which one number is the smallest NaN: first of A, then of B."""
    found: dict[str, Unsigned] = {}
    for n, (name, of) in enumerate(zip("ab", kind.formats, strict=True)):
        fmt = formats[of]
        codes = np.full((2, kind.width), encode(1.0, fmt), np.uint32)
        codes[n, 0] = fmt.nan_codes[0][0]
        found |= operand(name, codes, _blocks(kind, fmt, [0, 0]))
    return found


def _code(number: float, fmt: Format) -> int:
    """Return the code of a number; FP4 has 0 for NaN."""
    return 0 if math.isnan(number) and not fmt.nan_codes else encode(number, fmt)


def _behind_a_subnormal(one: Format, other: Format, bits: int) -> Pairs:
    """Return a product with the smallest number of a format, and one that is cut next to it.

    It would not be cut if a subnormal number had the exponent of its leading one.
    """
    top = other.value(encode(other.largest, other) & ~((1 << other.mantissa_bits) - 1))
    smallest = one.smallest_exponent + other.smallest_exponent
    cut = max(one.smallest_exponent + int(np.log2(top)) - bits - 1, smallest)
    small = 2.0**one.smallest_exponent, 2.0 ** (cut - one.smallest_exponent)
    return [(one.value(1), top), small]


def _blocks(kind: Kind, fmt: Format, exponents: list[int]) -> Blocks:
    """Return two blocks for each row, whose factors are powers of two."""
    record, block = kind.record, kind.parameters["scale_block"]
    factor = np.ldexp(np.float32(1), np.array(exponents)).astype(np.float32)
    ones = np.ones(len(exponents), np.float32)
    scale, overall = (ones, factor) if record.has_overall else (factor, ones)
    of_row = (1 / scale if record.divides else scale)[:, np.newaxis]
    scale = np.repeat(of_row, kind.width // block, axis=1)
    choice = np.full(scale.shape, CHOICES.index(fmt.name), np.uint8)
    return Blocks(choice, bits32(scale), bits32(overall), block, record)
