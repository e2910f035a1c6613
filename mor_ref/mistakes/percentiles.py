"""Mistakes of a percentile: another rank, another way between two ranks, or other numbers."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from mor_ref.definitions.block_formats import BlockFormat, BlockScale, Counted
from mor_ref.definitions.formulas import Percentile
from mor_ref.exact import block_formats as exact
from mor_ref.exact.arithmetic import rn32

_Block = Sequence[float]
_Rank = Callable[[Fraction, int], Fraction | int]  # of a share and a count; of the smallest, 1
_Seen = Callable[[list[_Block], exact.InBlocks], list[_Block]]  # what each part of a tensor sees
_Wrong = Callable[..., Any]  # what a scale measures

_HALF = Fraction(1, 2)
_ABOVE_OTHERS = 1 << 12  # numbers of a part whose size depends on the tensor
_FIRST = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def wrong_percentiles(
    record: BlockFormat, scale: BlockScale, percentile: Percentile
) -> Iterator[tuple[str, str, _Wrong]]:
    """Yield mistakes of a percentile of a scale: a name, words, and what is measured."""
    most = math.prod(scale.over) if isinstance(scale.over, tuple) else _ABOVE_OTHERS
    own, counted = percentile.percent, record.counted

    def measured(seen: _Seen, of_part: Callable[[_Block], float]) -> _Wrong:
        return functools.partial(_measured, scale.name, percentile.name, seen, of_part)

    for name, words, rank in _other_ranks(own / 100, most):
        of_part = functools.partial(_at_rank, own / 100, counted, rank)
        yield name, words, measured(_own_part, of_part)
    for name, words, other_numbers in _other_numbers(scale, counted):
        yield name, words, measured(_own_part, _percentile_of(other_numbers, own, counted))
    right = functools.partial(exact.percentile_of, percent=own, counted=counted)
    for name, words, seen in _other_parts(scale, most):
        yield name, words, measured(seen, right)


def _measured(
    own: str,
    percentile: str,
    seen: _Seen,
    of_part: Callable[[_Block], float],
    reference: _Wrong,
    formulas: BlockFormat,
    scale: BlockScale,
    x: Any,
    order: exact.InBlocks,
    above: Any,
) -> Any:
    """Return what a scale measures if one of its percentiles is another number."""
    numbers = reference(formulas, scale, x, order, above)
    if scale.name != own or percentile not in numbers:
        return numbers
    blocks = seen(list(order.blocks(x)), order)
    return {**numbers, percentile: of_each_part(blocks, of_part)}


def of_each_part(blocks: Sequence[_Block], of_part: Callable[[_Block], float]) -> list[float]:
    """Return what is measured of each part; of parts that see the same, it is computed once."""
    different = {id(block): block for block in blocks}
    found = {key: of_part(block) for key, block in different.items()}
    return [found[id(block)] for block in blocks]


# ---------------------------------------------------------------------- ranks


def _right(share: Fraction, count: int) -> int:
    return math.ceil(share * count)


# A rank between two whole ones is the number between theirs, on a line.
_RANKS: tuple[tuple[str, str, _Rank], ...] = (
    ("rank-below", "is the next smaller number", lambda p, n: _right(p, n) - 1),
    ("rank-above", "is the next larger number", lambda p, n: _right(p, n) + 1),
    ("rank-rounded-down", "has a rank that is rounded down", lambda p, n: math.floor(p * n)),
    (
        "rank-to-nearest",
        "has a rank that is rounded to nearest, ties to even",
        lambda p, n: round(p * n),
    ),
    (
        "index-rounded-down",
        "has an index, which counts from 0, of share * count, rounded down",
        lambda p, n: math.floor(p * n) + 1,
    ),
    (
        "interpolated",
        "is interpolated between the numbers around the index share * (count - 1)",
        lambda p, n: 1 + p * (n - 1),
    ),
    (
        "lower",
        "is the lower of the numbers around the index share * (count - 1)",
        lambda p, n: 1 + math.floor(p * (n - 1)),
    ),
    (
        "higher",
        "is the higher of the numbers around the index share * (count - 1)",
        lambda p, n: 1 + math.ceil(p * (n - 1)),
    ),
    (
        "nearest",
        "is the number nearest to the index share * (count - 1), ties to even",
        lambda p, n: 1 + round(p * (n - 1)),
    ),
    (
        "midpoint",
        "is the middle of the numbers around the index share * (count - 1)",
        lambda p, n: 1 + (math.floor(p * (n - 1)) + math.ceil(p * (n - 1))) * _HALF,
    ),
    (
        "averaged",
        "is the middle of two numbers where share * count is whole",
        lambda p, n: p * n + _HALF if (p * n).denominator == 1 else _right(p, n),
    ),
    ("largest", "is the largest magnitude", lambda _, n: n),
)


def _other_ranks(share: Fraction, most: int) -> Iterator[tuple[str, str, _Rank]]:
    """Yield the ranks that differ for a count of numbers, each once."""
    counts = range(1, most + 1)
    known = {tuple(Fraction(_right(share, count)) for count in counts)}
    for name, words, rank in _RANKS:
        ranks = tuple(_within(rank(share, count), count) for count in counts)
        if ranks not in known:
            known.add(ranks)
            yield name, words, rank


def _within(rank: Fraction | int, count: int) -> Fraction:
    return min(max(Fraction(rank), Fraction(1)), Fraction(count))


def _at_rank(share: Fraction, counted: Counted, rank: _Rank, block: _Block) -> float:
    magnitudes = _magnitudes(block, counted)
    if not magnitudes or math.isnan(magnitudes[-1]):
        return magnitudes[-1] if magnitudes else 0.0
    place = _within(rank(share, len(magnitudes)), len(magnitudes)) - 1
    low, high = magnitudes[math.floor(place)], magnitudes[math.ceil(place)]
    if low == high or math.isinf(high):
        return high
    return rn32(Fraction(low) + (Fraction(high) - Fraction(low)) * (place % 1))


def _magnitudes(block: _Block, counted: Counted) -> list[float]:
    """Return the magnitudes that count, in order; one NaN alone if it wins."""
    if counted == "all" and any(map(math.isnan, block)):
        return [math.nan]
    counts = math.isfinite if counted == "finite" else lambda number: not math.isnan(number)
    return sorted(map(abs, filter(counts, block)))


# ---------------------------------------------------------------------- numbers

_Numbers = Callable[[_Block], _Block]


def _percentile_of(
    numbers: _Numbers, percent: Fraction, counted: Counted
) -> Callable[[_Block], float]:
    return lambda block: exact.percentile_of(numbers(block), percent, counted)


def _other_numbers(scale: BlockScale, counted: Counted) -> Iterator[tuple[str, str, _Numbers]]:
    """Yield what else a percentile is of: a name, words, and the numbers in place of a block's."""
    yield (
        "signed",
        "is that of numbers with their signs, negative ones as 0",
        lambda block: [x if x > 0 or math.isnan(x) else 0.0 for x in block],
    )
    yield (
        "zeros-left-out",
        "is that of the numbers that are not 0",
        lambda block: [x for x in block if x],
    )
    if counted == "not nan":
        yield (
            "nan-largest",
            "counts a NaN as infinity",
            lambda block: [math.inf if math.isnan(x) else x for x in block],
        )
    yield (
        "nan-zero",
        "counts a NaN as 0",
        lambda block: [0.0 if math.isnan(x) else x for x in block],
    )
    if isinstance(scale.over, tuple) and math.prod(scale.over) > 1:
        most = math.prod(scale.over)
        yield (
            "padded",
            "counts the zeros that fill a block at a border",
            lambda block: [*block, *[0.0] * (most - len(block))],
        )


# ---------------------------------------------------------------------- parts


def _own_part(blocks: list[_Block], _: exact.InBlocks) -> list[_Block]:
    return blocks


def _other_parts(scale: BlockScale, most: int) -> Iterator[tuple[str, str, _Seen]]:
    """Yield which numbers a percentile sees, in place of those of its part."""

    def first(count: int) -> _Seen:
        return lambda blocks, _: [block[:count] for block in blocks]

    for count in _FIRST:
        if count < most:
            yield f"first-{count}", f"sees the first {count} numbers of a part alone", first(count)
    words = "does not see the last number of a part"
    yield "without-last", words, lambda blocks, _: [block[:-1] for block in blocks]
    if scale.over == "tensor":
        return
    words = "is that of the next part"
    yield "of-next", words, lambda blocks, _: [*blocks[1:], *blocks[:1]]
    words = "is that of the part before"
    yield "of-previous", words, lambda blocks, _: [*blocks[-1:], *blocks[:-1]]
    if isinstance(scale.over, tuple):
        yield "of-row", "is that of all parts in the same rows", _rows_for_each
        yield "of-column", "is that of all parts in the same columns", _columns_for_each
    yield "of-all", "is that of the whole tensor", _tensor_for_each


def _rows_for_each(blocks: list[_Block], order: exact.InBlocks) -> list[_Block]:
    _, columns = order.parts.grid
    rows = [_joined(blocks[k : k + columns]) for k in range(0, len(blocks), columns)]
    return [rows[k // columns] for k in range(len(blocks))]


def _columns_for_each(blocks: list[_Block], order: exact.InBlocks) -> list[_Block]:
    _, columns = order.parts.grid
    joined = [_joined(blocks[k::columns]) for k in range(columns)]
    return [joined[k % columns] for k in range(len(blocks))]


def _tensor_for_each(blocks: list[_Block], _: exact.InBlocks) -> list[_Block]:
    return [_joined(blocks)] * len(blocks)


def _joined(blocks: list[_Block]) -> _Block:
    return [x for block in blocks for x in block]
