"""Block formats, interpreted: formulas, evaluated for all blocks of a tensor at once."""

import functools
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, filterfalse, islice, product, repeat, starmap
from operator import gt, lt, mul
from typing import NamedTuple, TypeVar

from mor_ref.definitions.block_formats import (
    BlockFormat,
    BlockScale,
    Counted,
    check_functions,
    check_rows,
    negative_factor,
    percentiles_of,
)
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.encoding import ElementRounding, Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formula_functions import formula_functions
from mor_ref.definitions.formulas import (
    Apply,
    Computed,
    Formula,
    Name,
    Number,
    Percentile,
    is_own_word,
    names_in,
    parsed,
)
from mor_ref.definitions.scales import NO_SCALES_GIVEN, NOTHING_GIVEN, GivenScales
from mor_ref.definitions.table_format import ElementFormat
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.before_blocks import Stepped, stepped, undone
from mor_ref.exact.blocks import Rows
from mor_ref.exact.columns import (
    AT_ONCE,
    Column,
    are_finite,
    decoded,
    differences,
    encoded,
    products,
    quotients,
    rounded,
    totals,
)
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.quantization import Element
from mor_ref.exact.step import step

_Entry = TypeVar("_Entry")
Columns = Mapping[str, Column]


@dataclass(frozen=True)
class Scales:
    """A scale of each of its parts, row by row.

    `numbers` has what the formulas name: the scale, the amax and those of the scales above; in the
    last, the factors `decode` and `encode` as well. Without a format, `codes` are empty.
    """

    parts: Partition
    codes: list[int]
    numbers: Columns


@dataclass(frozen=True)
class Blocks:
    """The elements of a tensor, row by row, and each scale by its name.

    `codes` and scales are of the numbers that the steps before the blocks return: `after_steps`.
    """

    codes: Sequence[int]
    y: Column
    scales: dict[str, Scales]
    after_steps: Stepped


@step
def quantize(
    x: Sequence[float],
    shape: tuple[int, int],
    formulas: BlockFormat,
    given: GivenScales = NO_SCALES_GIVEN,
) -> Blocks:
    """Quantize a tensor, whose numbers are given row by row.

    A given amax or scale is one number, or has one for each part, row by row (BLF-008).
    """
    columns, before = shape[1], formulas.before
    after_steps = stepped(x, columns, before)
    x = after_steps.z
    scales: dict[str, Scales] = {}
    above: Scales | None = None
    elements: Elements | None = None
    check_rows(formulas, partition(shape, formulas.block).block[0])
    check_functions(formulas)
    for scale in formulas.scales:
        order, own = InBlocks(partition(shape, scale.over)), given.get(scale.name, NOTHING_GIVEN)
        in_order, count = order.taken(x), len(order.lengths)
        numbers = measured(formulas, scale, in_order, order, above)
        if own.amax is not None:
            amaxes_given = _for_each_part(own.amax, count)
            numbers = {**numbers, "amax": amaxes_given, f"amax_{scale.name}": amaxes_given}
        if own.scale is not None:
            t: Column = _for_each_part(own.scale, count)
            above = _stored(formulas, scale, order, numbers, t)
        elif scale is formulas.scales[-1]:
            above, elements = _least_error(formulas, in_order, order, numbers)
        else:
            t = evaluated(scale.number, numbers, count)
            above = _stored(formulas, scale, order, numbers, t)
        scales[scale.name] = above
    if elements is None:  # the scale of the elements is given
        elements = elements_of(formulas, in_order, order, scales[scale.name].numbers)
    y = undone(order.put_back(elements.y), columns, before, after_steps)
    return Blocks(order.put_back(elements.codes), y, scales, after_steps)


def _for_each_part(given: float | Sequence[float], count: int) -> list[float]:
    return list(given) if isinstance(given, Sequence) else [given] * count


def elements(x: Rows, formulas: BlockFormat) -> list[list[Element]]:
    """Return the elements of a tensor, which is given in rows."""
    columns, numbers = len(x[0]) if x else 0, list(chain.from_iterable(x))
    blocks = quantize(numbers, (len(x), columns), formulas)
    elements = map(Element, scaled_numbers(blocks, formulas), blocks.codes, blocks.y)
    return [list(islice(elements, columns)) for _ in x]


def scaled_numbers(blocks: Blocks, formulas: BlockFormat) -> Column:
    """Return the numbers that the codes of a tensor were rounded from, row by row (BLF-004)."""
    scale = blocks.scales[formulas.scales[-1].name]
    order = InBlocks(scale.parts)
    return order.put_back(_scaled(order.taken(blocks.after_steps.z), order, scale.numbers))


def _scaled(x: Column, order: "InBlocks", factors: Columns) -> "array[float]":
    """Return numbers, scaled with the factors of their blocks (BLF-004)."""
    if "encode" in factors:
        return products(x, order.spread(factors["encode"]))
    return quotients(x, order.spread(factors["decode"]))


@step
def measured(
    formulas: BlockFormat, scale: BlockScale, x: Column, order: "InBlocks", above: Scales | None
) -> Columns:
    """Return the amaxes and percentiles of a scale, given its numbers, and the scales above."""
    amax = amaxes(x, order, formulas.counted)
    numbers = {**_parent_numbers(above, order.parts), "amax": amax, f"amax_{scale.name}": amax}
    for percentile in percentiles_of(formulas, scale):
        numbers[percentile.name] = [
            percentile_of(block, percentile.percent, formulas.counted) for block in order.blocks(x)
        ]
    return numbers


# ---------------------------------------------------------------------- places


class InBlocks:
    """The numbers of a tensor in the order of its blocks, each row by row."""

    def __init__(self, parts: Partition) -> None:
        self.parts = parts
        (rows, columns), (height, width) = (parts.rows, parts.columns), parts.block
        heights = [min(height, rows - i) for i in range(0, rows, height)]
        widths = [min(width, columns - j) for j in range(0, columns, width)]
        self.sides = list(product(heights, widths))
        self.lengths = list(starmap(mul, self.sides))
        self._strips: list[slice] = []
        if height > 1 and width < columns:
            self._strips = [
                slice(row * columns + j, row * columns + j + own_width)
                for i, own_height in zip(range(0, rows, height), heights, strict=True)
                for j, own_width in zip(range(0, columns, width), widths, strict=True)
                for row in range(i, i + own_height)
            ]

    def taken(self, numbers: Sequence[_Entry]) -> Sequence[_Entry]:
        """Return numbers, given row by row, in the order of blocks."""
        if not self._strips:
            return numbers
        return list(chain.from_iterable(map(numbers.__getitem__, self._strips)))

    def put_back(self, numbers: MutableSequence[_Entry]) -> MutableSequence[_Entry]:
        """Return numbers, given in the order of blocks, row by row."""
        if not self._strips:
            return numbers
        rows, start = numbers[:], 0
        for strip in self._strips:
            end = start + strip.stop - strip.start
            rows[strip] = numbers[start:end]
            start = end
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
    """Return the numbers of the scale above, for each place of a scale."""
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


def amaxes(numbers: Sequence[float], order: InBlocks, counted: Counted) -> list[float]:
    """Return the largest magnitude of each block among the numbers that count (BLF-003)."""
    if are_finite(numbers):
        return [max(map(abs, block)) for block in order.blocks(numbers)]
    return [
        max(map(abs, block)) if are_finite(block) else amax_of(block, counted)
        for block in order.blocks(numbers)
    ]


def amax_of(numbers: Sequence[float], counted: Counted) -> float:
    """Return the largest magnitude among the numbers that count; 0 if none does (BLF-003)."""
    if counted == "all" and any(map(math.isnan, numbers)):
        return math.nan
    if counted == "finite":
        return max(map(abs, filter(math.isfinite, numbers)), default=0.0)
    return max(map(abs, filterfalse(math.isnan, numbers)), default=0.0)


def percentile_of(numbers: Sequence[float], percent: Fraction, counted: Counted) -> float:
    """Return the smallest magnitude that so many percent of those that count are at most (BLF-007).

    >>> percentile_of([1.0, -2.0, 3.0, -4.0], Fraction(50), "not nan")
    2.0
    """
    if counted == "all" and any(map(math.isnan, numbers)):
        return math.nan
    counts = math.isfinite if counted == "finite" else lambda number: not math.isnan(number)
    magnitudes = sorted(map(abs, filter(counts, numbers)))
    rank = math.ceil(percent * len(magnitudes) / 100)
    return magnitudes[rank - 1] if magnitudes else 0.0


# ---------------------------------------------------------------------- scales


def _stored(
    formulas: BlockFormat, scale: BlockScale, order: InBlocks, numbers: Columns, t: Column
) -> Scales:
    """Return the numbers of a scale, stored, with the factors of the last one (BLF-003)."""
    codes, column = stored(t, scale.fmt, scale.rounding)
    named: dict[str, Column] = {**numbers, scale.name: column}
    if scale is formulas.scales[-1]:
        for name, formula in (("decode", formulas.decode), ("encode", formulas.encode)):
            if formula is not None:
                named[name] = evaluated(formula, named, len(t))
                _refuse_negative(formulas, name, named[name])
    return Scales(order.parts, codes, named)


def _refuse_negative(formulas: BlockFormat, name: str, factors: Column) -> None:
    if -1.0 in map(math.copysign, repeat(1.0), filterfalse(math.isnan, factors)):
        raise ValueError(negative_factor(formulas, name))


@step
def stored(numbers: Column, fmt: Format, rounding: Rounding | None) -> tuple[list[int], Column]:
    """Return numbers in a format, as codes and numbers; binary32 has them as they are."""
    if fmt == formats["f32"]:
        return [], numbers
    codes = encoded(numbers, fmt, rounding_for(fmt, rounding, SpecialCases()))
    return codes, decoded(codes, fmt)


def _least_error(
    formulas: BlockFormat, x: Column, order: InBlocks, numbers: Columns
) -> tuple[Scales, "Elements"]:
    """Try each formula of a scale, and return for each block the scale with the least error.

    The elements are those with these scales.
    """
    scale = formulas.scales[-1]
    t = evaluated(scale.number, numbers, len(order.lengths))
    candidates = [
        _stored(formulas, scale, order, numbers, evaluated(formula, {**numbers, "t": t}, len(t)))
        for formula in formulas.tries
    ]
    best = candidates[0]
    elements = elements_of(formulas, x, order, best.numbers)
    if len(candidates) == 1:
        return best, elements
    least = block_errors(formulas, x, order, best.numbers, elements)
    for candidate in candidates[1:]:
        tried = elements_of(formulas, x, order, candidate.numbers)
        errors = block_errors(formulas, x, order, candidate.numbers, tried)
        is_less = less_errors(errors, least)
        is_taken = order.spread(is_less)
        elements = Elements(
            _chosen(is_taken, tried.codes, elements.codes),
            _chosen(is_taken, tried.v, elements.v),
            _chosen(is_taken, tried.y, elements.y),
        )
        least = _chosen(is_less, errors, least)
        codes = _chosen(is_less, candidate.codes, best.codes) if best.codes else []
        columns = best.numbers.items()
        named = {
            name: _chosen(is_less, candidate.numbers[name], column) for name, column in columns
        }
        best = Scales(order.parts, codes, named)
    return best, elements


@step
def less_errors(errors: Column, least: Column) -> list[bool]:
    """Return which errors are less than the least before; none is less than a NaN (BLF-005)."""
    return list(map(lt, errors, least))


def _chosen(tests: Iterable[object], a: Iterable[_Entry], b: Iterable[_Entry]) -> list[_Entry]:
    """Return the entries of a where a test holds, else those of b."""
    return [first if test else second for test, first, second in zip(tests, a, b, strict=True)]


def block_errors(
    formulas: BlockFormat, x: Column, order: InBlocks, scales: Columns, elements: "Elements"
) -> list[float]:
    """Return the error of each block: along rows from the left, then in halves (BLF-005)."""
    needed = set(names_in(parsed(formulas.error)))
    named: dict[str, Column] = {name: order.spread(scales[name]) for name in needed & set(scales)}
    named |= {"x": x, "v": elements.v, "y": elements.y}
    terms = list(order.blocks(evaluated(formulas.error, named, len(x))))
    blocks_by_sides: dict[tuple[int, int], list[int]] = {}
    for block, sides in enumerate(order.sides):
        blocks_by_sides.setdefault(sides, []).append(block)
    errors = [0.0] * len(terms)
    for (height, width), blocks in blocks_by_sides.items():
        sums: list[Column] = [[0.0] * len(blocks) for _ in range(1 << (height - 1).bit_length())]
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


class Elements(NamedTuple):
    """Elements block by block: codes, their numbers, and these numbers with the scales."""

    codes: list[int]
    v: list[float]
    y: MutableSequence[float]


def elements_of(formulas: BlockFormat, x: Column, order: InBlocks, scales: Columns) -> Elements:
    """Quantize numbers with the factors of their blocks (BLF-004)."""
    factors = {name: order.spread(scales[name]) for name in ("decode", "encode") if name in scales}
    decode, encode = factors.get("decode"), factors.get("encode")
    all_codes, all_v, all_y = list[int](), list[float](), array("f")
    for start in range(0, len(x), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        by, back = encode and encode[part], decode and decode[part]
        xs: Column = quotients(x[part], back or ()) if by is None else products(x[part], by)
        if isinstance(formulas.fmt, Format) and formulas.fmt.sign == "none":
            xs = [0.0 if number < 0 else number for number in xs]
        codes = element_codes(xs, formulas.fmt, formulas.rounding)
        if not formulas.has_negative_zero:
            codes = [
                code if v else 0
                for code, v in zip(codes, decoded(codes, formulas.fmt), strict=True)
            ]
        if formulas.drops_sign_of_zero:
            codes = [code if number else 0 for code, number in zip(codes, xs, strict=True)]
        v = decoded(codes, formulas.fmt)
        y = quotients(v, by or ()) if back is None else products(v, back)
        all_codes += codes
        all_v += v
        all_y += y
    return Elements(all_codes, all_v, all_y)


@step
def element_codes(xs: Column, fmt: ElementFormat, rounding: ElementRounding) -> list[int]:
    """Return the codes of scaled numbers (BLF-004, BLF-014)."""
    return encoded(xs, fmt, rounding)


# ---------------------------------------------------------------------- formulas


def evaluated(formula: str | Formula, numbers: Columns, count: int) -> Column:
    """Return the values of a formula, given `count` values of each name (BLF-002)."""
    tree = parsed(formula)
    match tree:
        case Number(value):
            return [_nearest(value)] * count
        case Name(text):
            return numbers[text]
        case Percentile() as percentile:
            return numbers[percentile.name]
        case Apply(operator, arguments):
            columns = [evaluated(argument, numbers, count) for argument in arguments]
            if isinstance(tree, Computed):
                return tree.function(*columns)
            if operator in formats:
                return stored(columns[0], formats[operator], None)[1]
            if is_own_word(operator):
                return rounded(map(formula_functions[operator].number, *columns))
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


_FUNCTIONS: Mapping[str, Callable[..., Column]] = {
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
