"""Steps before the blocks of a block format, and the way back behind them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress

from mor_ref.definitions.before_blocks import Hadamard, KeptColumns, Step
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.columns import Column, differences, products, totals
from mor_ref.exact.encoding import encode
from mor_ref.exact.outliers import by_column, is_outlier, rounded_limit
from mor_ref.exact.quantization import to_bf16

_IEEE = SpecialCases(overflow="ieee")


@dataclass(frozen=True)
class Stepped:
    """What the steps make of a tensor, row by row: the numbers that blocks are made of.

    `selected` says of each number whether its column is kept, and `kept` has the codes of those
    that are, and 0 for all others. Both are empty without a step that keeps columns.
    """

    z: Column
    selected: list[bool] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


def stepped(x: Column, columns: int, before: Sequence[Step]) -> Stepped:
    """Apply steps to a tensor with so many columns, one after the other (BLF-011)."""
    found = Stepped(x)
    for step in before:
        if isinstance(step, Hadamard):
            z = transformed(found.z, columns, step)
            found = Stepped(z, found.selected, found.kept)
        else:
            found = kept_aside(found.z, columns, step)
    return found


def undone(y: Column, columns: int, before: Sequence[Step], aside: Stepped) -> Column:
    """Return y of a tensor, given that of its blocks: back from the last step (BLF-011)."""
    for step in reversed(before):
        if isinstance(step, Hadamard):
            y = transformed_back(y, columns, step)
        else:
            y = put_back(y, step, aside)
    return y


# ---------------------------------------------------------------------- Hadamard


def transformed(x: Column, columns: int, step: Hadamard) -> Column:
    """Multiply runs along the rows by a Hadamard matrix, and round as the step says (BLF-012)."""
    return _in_runs(x, columns, step, step.signs, 0, step.fmt)


def transformed_back(y: Column, columns: int, step: Hadamard) -> Column:
    """Multiply runs by the transpose of that matrix (BLF-012)."""
    return _in_runs(y, columns, step, 0, step.signs, formats["f32"])


def _in_runs(
    x: Column, columns: int, step: Hadamard, before: int, after: int, fmt: Format
) -> Column:
    """Transform whole runs of each row; what is left of a row stays as it is (BLF-012)."""
    z, size = list(x), step.size
    starts = [
        row + start
        for row in range(0, len(x), columns or 1)
        for start in range(0, columns - size + 1, size)
    ]
    places: list[Column] = [[x[start + i] for start in starts] for i in range(size)]
    turned = scaled_sums(negated(places, before))
    for i, column in enumerate(negated(turned, after)):
        rounded = column if fmt == formats["f32"] else in_bf16(column)
        for start, number in zip(starts, rounded, strict=True):
            z[start + i] = number
    return z


def in_bf16(numbers: Column) -> Column:
    """Return numbers rounded to bfloat16 (BLF-012, QNT-003)."""
    return [formats["bf16"].value(to_bf16(number)) for number in numbers]


def negated(places: Sequence[Column], signs: int) -> list[Column]:
    """Negate the numbers at the places whose bit is 1 (BLF-012)."""
    return [
        [-number for number in column] if signs >> i & 1 else column
        for i, column in enumerate(places)
    ]


def scaled_sums(places: Sequence[Column]) -> list[Column]:
    """Return the sums and differences of runs, times RN32(1 / sqrt(n)) (BLF-012, TRN-009).

    Place i has number i of each run.
    """
    sums, size = list(places), len(places)
    distance = 1
    while distance < size:
        for i in range(size):
            if not i & distance:
                a, b = sums[i], sums[i + distance]
                sums[i], sums[i + distance] = totals(a, b), differences(a, b)
        distance *= 2
    factor = factor_of(size)
    return [products(column, [factor] * len(column)) for column in sums]


@lru_cache
def factor_of(size: int) -> float:
    """Return RN32(1 / sqrt(n)) of a power of two: no square root is halfway between numbers."""
    exponent = size.bit_length() - 1
    half = math.ldexp(1.0, -(exponent // 2))
    return half if exponent % 2 == 0 else rn32_of_binary64(half * math.sqrt(0.5))


# ---------------------------------------------------------------------- kept columns


def kept_aside(x: Column, columns: int, step: KeptColumns) -> Stepped:
    """Keep the columns with a large magnitude, and leave zeros in their place (BLF-013)."""
    least = rounded_limit(step.limit)
    rows = [
        [is_outlier(number, least) for number in x[start : start + columns]]
        for start in range(0, len(x), columns or 1)
    ]
    selected = [is_kept for row in by_column(rows) for is_kept in row]
    codes = iter(codes_of_kept(step.fmt, list(compress(x, selected))))
    return Stepped(
        [0.0 if is_kept else number for number, is_kept in zip(x, selected, strict=True)],
        selected,
        [next(codes) if is_kept else 0 for is_kept in selected],
    )


def put_back(y: Column, step: KeptColumns, aside: Stepped) -> Column:
    """Return y with the numbers of the kept columns (BLF-013)."""
    numbers = numbers_of_kept(step.fmt, aside.kept)
    chosen = zip(y, numbers, aside.selected, strict=True)
    return [number if is_kept else own for own, number, is_kept in chosen]


def codes_of_kept(fmt: Format, numbers: Column) -> list[int]:
    """Return the codes of numbers in the format that they are kept in (BLF-013)."""
    return [encode(number, fmt, "rne", _IEEE) for number in numbers]


def numbers_of_kept(fmt: Format, codes: Sequence[int]) -> Column:
    """Return the numbers of kept codes (BLF-013)."""
    return list(map(fmt.value, codes))
