"""Error sums of the blocks of a tensor, and its numbers in bfloat16, many at a time."""

import math
import sys
from array import array
from bisect import bisect_right
from itertools import accumulate

from mor_ref.exact.block_formats import InBlocks
from mor_ref.exact.columns import (
    AT_ONCE,
    Column,
    are_finite,
    differences,
    halves_of,
    quotients,
    rounded,
)
from mor_ref.exact.errors import LEAST_LOST, ErrorSum
from mor_ref.exact.quantization import to_bf16

_UNITS = 1 << 23  # of a relative error of 1
_TIE = 1 << 15  # lower bits of a number halfway between two of bfloat16


def error_sums(x: Column, y: Column, order: InBlocks) -> list[ErrorSum]:
    """Return the error sums of each block (ERR-001 to ERR-004)."""
    zeros, infinite, lost = list[int](), list[int](), list[int]()
    if not all(x):
        zeros = [place for place, v in enumerate(x) if not v]
    if not are_finite(x):
        infinite = [place for place, v in enumerate(x) if not math.isfinite(v)]
    if not (are_finite(y) and max(map(abs, y), default=0.0) < LEAST_LOST):
        lost = [place for place, v in enumerate(y) if not abs(v) < LEAST_LOST]
    uncounted, losses = ([0] * len(order.lengths) for _ in range(2))
    left_out = zeros + infinite
    if left_out or lost:
        ends = list(accumulate(order.lengths))
        for place in left_out:
            uncounted[bisect_right(ends, place)] += 1
        for place in {*lost, *infinite}:
            losses[bisect_right(ends, place)] += 1
    if left_out:  # a number that does not count has no error
        x, y = list(x), list(y)
        for place in left_out:
            x[place] = y[place] = 1.0
    measured = zip(_units(x, y, order), order.lengths, uncounted, losses, strict=True)
    return [ErrorSum(units, length - less, loss) for units, length, less, loss in measured]


def _units(x: Column, y: Column, order: InBlocks) -> list[int]:
    """Return the sums of the errors of each block, in units of 2^-23, of numbers that count."""
    ends = list[float]()
    for start in range(0, len(x), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        errors = quotients(differences(x[part], y[part]), x[part])
        magnitudes = map(abs, errors)
        ends += rounded([1.0 + error if error < 1.0 else 2.0 for error in magnitudes])
    # Each end is 1 + u * 2^-23, and sums of 2^29 of them are numbers of binary64.
    return [int((sum(block) - len(block)) * _UNITS) for block in order.blocks(ends)]


def bf16_codes(numbers: Column) -> list[int]:
    """Return the bfloat16 codes of binary32 numbers, as fake quantization stores them (QNT-003).

    The bits of all numbers are one large integer, to which one addition adds 2^15 - 1 for each
    number, and 1 more if its upper half is odd: what carries into the upper half rounds it up.
    """
    nans = [] if are_finite(numbers) else [k for k, v in enumerate(numbers) if math.isnan(v)]
    bits = rounded(numbers)
    for place in nans:  # the bits of a NaN could carry into the next number
        bits[place] = 0.0
    words = int.from_bytes(bits.tobytes(), sys.byteorder)
    ones = int.from_bytes(array("I", [1]).tobytes() * len(bits), sys.byteorder)
    words += (_TIE - 1) * ones + (words >> 16 & ones)
    codes, _ = halves_of(array("f", words.to_bytes(4 * len(bits), sys.byteorder)))
    for place in nans:
        codes[place] = to_bf16(numbers[place])
    return codes.tolist()
