"""Error sums of the blocks of a tensor, and its numbers in bfloat16, many at a time."""

import math
from array import array
from itertools import repeat
from operator import and_, lt, not_

from mor_ref.exact.block_formulas import InBlocks
from mor_ref.exact.columns import Column, differences, quotients, totals
from mor_ref.exact.errors import LEAST_LOST, ErrorSum
from mor_ref.exact.quantization import to_bf16

_UNITS = 1 << 23  # of a relative error of 1


def error_sums(x: Column, y: Column, order: InBlocks) -> list[ErrorSum]:
    """Return the error sums of each block (ERR-001 to ERR-004)."""
    is_finite = list(map(math.isfinite, x))
    counts = list(map(and_, is_finite, map(bool, x)))
    keeps = map(and_, is_finite, map(lt, map(abs, y), repeat(LEAST_LOST)))
    lost = list(map(not_, keeps))
    if not all(counts):  # a number that does not count has no error
        x, y = (
            [v if is_counted else 1.0 for v, is_counted in zip(c, counts, strict=True)]
            for c in (x, y)
        )
    errors = quotients(list(map(abs, differences(x, y))), list(map(abs, x)))
    ends = totals(list(repeat(1.0, len(x))), list(map(min, repeat(1.0), errors)))
    # Each end is 1 + u * 2^-23, and sums of 2^29 of them are numbers of binary64.
    blocks = zip(order.blocks(ends), order.blocks(counts), order.blocks(lost), strict=True)
    return [
        ErrorSum(int((math.fsum(end) - len(end)) * _UNITS), sum(count), sum(loss))
        for end, count, loss in blocks
    ]


def bf16_codes(numbers: Column) -> list[int]:
    """Return the bfloat16 codes of binary32 numbers, as fake quantization stores them (QNT-003)."""
    if not all(map(math.isfinite, numbers)):
        return list(map(to_bf16, numbers))
    words = array("I", array("f", numbers).tobytes()).tolist()
    return [(word + 0x7FFF + (word >> 16 & 1)) >> 16 for word in words]
