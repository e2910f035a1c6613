"""Formulas of blocks, interpreted: evaluated for all blocks of a tensor at once."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, filterfalse, repeat
from operator import gt, lt
from typing import Literal, NamedTuple, TypeVar

from mor_ref.definitions.block_formulas import BlockFormulas, Level
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.encoding import Rounding
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import Apply, Formula, Name, Number, names_in, parsed
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.columns import (
    Column,
    decoded,
    differences,
    encoded,
    products,
    quotients,
    rounded,
    totals,
)
from mor_ref.exact.encoding import floor_log2

_Entry = TypeVar("_Entry")
Columns = Mapping[str, Column]


@dataclass(frozen=True)
class Scales:
    """The scales of a level, row by row.

    `numbers` has what the formulas name: the scale, the amax and those of the levels above; at the
    last level, the factors `decode` and `encode` as well. Without a format, `codes` are empty.
    """

    parts: Partition
    codes: list[int]
    numbers: Columns


@dataclass(frozen=True)
class Blocks:
    """The elements of a tensor, row by row, and the scales of each level by its name."""

    codes: list[int]
    y: list[float]
    scales: dict[str, Scales]


def quantize(x: Sequence[float], shape: tuple[int, int], formulas: BlockFormulas) -> Blocks:
    """Quantize a tensor, whose numbers are given row by row."""
    scales: dict[str, Scales] = {}
    above: Scales | None = None
    for level in formulas.levels[:-1]:
        order = InBlocks(partition(shape, level.over))
        numbers = _measured(level, order.taken(x), order, above)
        t = evaluated(level.number, numbers, len(order.lengths))
        above = scales[level.name] = _stored(formulas, level, order, numbers, t)
    level = formulas.levels[-1]
    order = InBlocks(partition(shape, level.over))
    in_order = order.taken(x)
    numbers = _measured(level, in_order, order, above)
    blocks = scales[level.name] = _least_error(formulas, in_order, order, numbers)
    elements = _elements(formulas, in_order, order, blocks.numbers)
    return Blocks(order.put_back(elements.codes), order.put_back(elements.y), scales)


def _measured(level: Level, x: Column, order: "InBlocks", above: Scales | None) -> Columns:
    """Return the amaxes of a level, given its numbers block by block, and the levels above."""
    amax = amaxes(x, order, level.counted)
    return {**_parent_numbers(above, order.parts), "amax": amax, f"amax_{level.name}": amax}


# ---------------------------------------------------------------------- places


class InBlocks:
    """The numbers of a tensor in the order of its blocks, each row by row."""

    def __init__(self, parts: Partition) -> None:
        self.parts = parts
        (rows, columns), (height, width) = (parts.rows, parts.columns), parts.block
        self.sides = [
            (min(height, rows - i), min(width, columns - j))
            for i in range(0, rows, height)
            for j in range(0, columns, width)
        ]
        self.lengths = [sides[0] * sides[1] for sides in self.sides]
        self._places: list[int] | None = None
        if height > 1 and width < columns:
            self._places = [
                place
                for i in range(0, rows, height)
                for j in range(0, columns, width)
                for row in range(i, min(i + height, rows))
                for place in range(row * columns + j, row * columns + min(j + width, columns))
            ]

    def taken(self, numbers: Sequence[_Entry]) -> Sequence[_Entry]:
        """Return numbers, given row by row, in the order of blocks."""
        if self._places is None:
            return numbers
        return list(map(numbers.__getitem__, self._places))

    def put_back(self, numbers: Sequence[_Entry]) -> list[_Entry]:
        """Return numbers, given in the order of blocks, row by row."""
        if self._places is None:
            return list(numbers)
        rows = list(numbers)
        for place, number in zip(self._places, numbers, strict=True):
            rows[place] = number
        return rows

    def blocks(self, numbers: Sequence[_Entry]) -> Iterator[Sequence[_Entry]]:
        """Yield the numbers of each block."""
        start = 0
        for length in self.lengths:
            yield numbers[start : start + length]
            start += length

    def spread(self, column: Iterable[_Entry]) -> list[_Entry]:
        """Return, for each number, the entry of its block."""
        return list(chain.from_iterable(map(repeat, column, self.lengths)))


def _parent_numbers(above: Scales | None, parts: Partition) -> Columns:
    """Return the numbers of the level above, for each place of a level."""
    if above is None:
        return {}
    (rows, columns), (_, parent_columns) = parts.grid, above.parts.grid
    (height, width), (parent_height, parent_width) = parts.block, above.parts.block
    parents = [
        i * height // parent_height * parent_columns + j * width // parent_width
        for i in range(rows)
        for j in range(columns)
    ]
    return {name: list(map(column.__getitem__, parents)) for name, column in above.numbers.items()}


def amaxes(
    numbers: Sequence[float], order: InBlocks, counted: Literal["finite", "not nan", "all"]
) -> list[float]:
    """Return the largest magnitude of each block among the numbers that count."""
    if all(map(math.isfinite, numbers)):
        return [max(map(abs, block)) for block in order.blocks(numbers)]
    return [_amax(block, counted) for block in order.blocks(numbers)]


def _amax(numbers: Sequence[float], counted: Literal["finite", "not nan", "all"]) -> float:
    if counted == "all" and any(map(math.isnan, numbers)):
        return math.nan
    if counted == "finite":
        return max(map(abs, filter(math.isfinite, numbers)), default=0.0)
    return max(map(abs, filterfalse(math.isnan, numbers)), default=0.0)


# ---------------------------------------------------------------------- scales


def _stored(
    formulas: BlockFormulas, level: Level, order: InBlocks, numbers: Columns, t: Column
) -> Scales:
    """Return the scales of a level, stored, with the factors of the last level."""
    codes, scale = stored(t, level.stored, level.rounding)
    named: dict[str, Column] = {**numbers, level.name: scale}
    if level is formulas.levels[-1]:
        for name, formula in (("decode", formulas.decode), ("encode", formulas.encode)):
            if formula is not None:
                named[name] = evaluated(formula, named, len(t))
    return Scales(order.parts, codes, named)


def stored(numbers: Column, fmt: Format, rounding: Rounding) -> tuple[list[int], Column]:
    """Return numbers in a format, as codes and numbers; binary32 has them as they are."""
    if fmt == formats["f32"]:
        return [], numbers
    codes = encoded(numbers, fmt, rounding)
    return codes, decoded(codes, fmt)


def _least_error(formulas: BlockFormulas, x: Column, order: InBlocks, numbers: Columns) -> Scales:
    """Try each formula of a scale, and return for each block the scale with the least error."""
    level = formulas.levels[-1]
    t = evaluated(level.number, numbers, len(order.lengths))
    candidates = [
        _stored(formulas, level, order, numbers, evaluated(formula, {**numbers, "t": t}, len(t)))
        for formula in formulas.tries
    ]
    best = candidates[0]
    if len(candidates) == 1:
        return best
    least = _errors(formulas, x, order, best.numbers)
    for candidate in candidates[1:]:
        errors = _errors(formulas, x, order, candidate.numbers)
        is_less = list(map(lt, errors, least))  # false with NaN
        least = _chosen(is_less, errors, least)
        codes = _chosen(is_less, candidate.codes, best.codes) if best.codes else []
        columns = best.numbers.items()
        named = {
            name: _chosen(is_less, candidate.numbers[name], column) for name, column in columns
        }
        best = Scales(order.parts, codes, named)
    return best


def _chosen(tests: Iterable[object], a: Iterable[_Entry], b: Iterable[_Entry]) -> list[_Entry]:
    """Return the entries of a where a test holds, else those of b."""
    return [first if test else second for test, first, second in zip(tests, a, b, strict=True)]


def _errors(formulas: BlockFormulas, x: Column, order: InBlocks, scales: Columns) -> list[float]:
    """Return the error of each block: along rows from the left, then the rows in halves."""
    elements = _elements(formulas, x, order, scales)
    needed = set(names_in(parsed(formulas.error)))
    named: dict[str, Column] = {name: order.spread(scales[name]) for name in needed & set(scales)}
    named |= {"x": x, "v": elements.v, "y": elements.y}
    terms = list(order.blocks(evaluated(formulas.error, named, len(x))))
    blocks_by_sides: dict[tuple[int, int], list[int]] = {}
    for block, sides in enumerate(order.sides):
        blocks_by_sides.setdefault(sides, []).append(block)
    errors = [0.0] * len(terms)
    for (height, width), blocks in blocks_by_sides.items():
        sums = [[0.0] * len(blocks) for _ in range(1 << (height - 1).bit_length())]
        columns = list(zip(*map(terms.__getitem__, blocks), strict=True))
        for place, column in enumerate(columns):
            sums[place // width] = totals(sums[place // width], column)
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [totals(sums[i], sums[i + half]) for i in range(half)]
        for block, total in zip(blocks, sums[0], strict=True):
            errors[block] = total
    return errors


# ---------------------------------------------------------------------- elements


class _Elements(NamedTuple):
    """Elements block by block: codes, their numbers, and these numbers with the scales."""

    codes: list[int]
    v: list[float]
    y: list[float]


def _elements(formulas: BlockFormulas, x: Column, order: InBlocks, scales: Columns) -> _Elements:
    """Quantize numbers with the factors of their blocks."""
    factors = {name: order.spread(scales[name]) for name in ("decode", "encode") if name in scales}
    decode, encode = factors.get("decode"), factors.get("encode")
    xs = quotients(x, decode or ()) if encode is None else products(x, encode)
    codes = encoded(xs, formulas.element)
    if formulas.drops_sign_of_zero:
        codes = [code if number else 0 for code, number in zip(codes, xs, strict=True)]
    v = decoded(codes, formulas.element)
    y = quotients(v, encode or ()) if decode is None else products(v, decode)
    return _Elements(codes, v, y)


# ---------------------------------------------------------------------- formulas


def evaluated(formula: str | Formula, numbers: Columns, count: int) -> Column:
    """Return the values of a formula, given `count` values of each name."""
    match parsed(formula) if isinstance(formula, str) else formula:
        case Number(value):
            return [_nearest(value)] * count
        case Name(text):
            return numbers[text]
        case Apply(operator, arguments):
            columns = [evaluated(argument, numbers, count) for argument in arguments]
            if operator in formats:
                return stored(columns[0], formats[operator], "rne")[1]
            return _FUNCTIONS[operator](*columns)


@functools.lru_cache
def _nearest(number: Fraction) -> float:
    return rn32(number)


def pow2(x: float, turn: float) -> float:
    """Return the power of two of a binade, or the next one if the significand is >= turn."""
    if x == 0 or not math.isfinite(x):
        return x
    exponent = floor_log2(abs(x))
    goes_up = math.ldexp(abs(x), -exponent) >= turn
    return math.copysign(math.ldexp(1.0, exponent + goes_up), x)


_FUNCTIONS: Mapping[str, Callable[..., list[float]]] = {
    "+": totals,
    "-": differences,
    "*": products,
    "/": quotients,
    "<": lambda a, b: list(map(float, map(lt, a, b))),
    ">": lambda a, b: list(map(float, map(gt, a, b))),
    "or": lambda a, b: _chosen(a, a, b),
    "if": _chosen,
    "abs": lambda a: list(map(abs, a)),
    "square": lambda a: products(a, a),
    "min": lambda a, b: _chosen(map(gt, a, b), b, a),
    "max": lambda a, b: _chosen(map(lt, a, b), b, a),
    "pow2": lambda a, turn: rounded(map(pow2, a, turn)),
}
