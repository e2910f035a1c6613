"""Blocks of a block format, made from its formulas: next to turns of scales, ties, and choices.

A tensor consists of parts, which share the scales above those of the blocks. The first block of a
part has its largest number, and the others have amaxes next to which their scales turn.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.block_formats import BlockFormat, percentiles_of
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.formats import formats
from mor_ref.definitions.table_format import TableFormat
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.block_formats import quantize
from mor_ref.exact.columns import Column, products, quotients
from mor_ref.golden.inputs.amaxes_of_formulas import (
    LARGEST,
    Amaxes,
    numbers_of_scales,
    spread,
    turns,
)
from mor_ref.golden.inputs.edges import Bits, amaxes, values_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import Unsigned, f32_array, numbers_of
from mor_ref.operations.random_words import random_words

_SIGN = np.uint32(0x80000000)
_NAMED_SIDE = 40  # numbers of a block along a side that the tensor gives it
_LARGEST_BLOCK = 1 << 12  # numbers; of a larger one, a tensor has the corner
_ROOM = 1 << 15  # numbers of the tensors of one kind
_FEWEST_BLOCKS, _MOST_BLOCKS = 4, 256
_MOST_IN_PART, _WIDE = 64, 4  # blocks of a part, and blocks next to each other
_SMALL_TENSORS = 12
_PLACES = 48  # blocks next to another choice among tries
_ATTEMPTS = 4
# Largest numbers of parts: with significands at which quotients round, and at both ends.
_TOPS = (0x3F9E3779, 0x7F7FFFFF, 0x447A0000, 0x0D7FFFFF, 0x2EAAAAAB, 0x00800001, 0x00000123)
_MIDDLES, _LOWER = 5, 0x53779B  # of the scales between the outermost and the last
_RANKED = 160  # exponents of blocks that have each rank
_NAN = np.uint32(0x7FC00000)
_NEAR = np.arange(-2, 3, dtype=np.int64)  # steps from a number


Words = NDArray[np.uint64]


class Plan(NamedTuple):
    """How blocks make a tensor: the sides of a block, and the blocks of a part along each side.

    Without `part`, a tensor has one part, of as many blocks as there are, `wide` of them next to
    each other; all, if `wide` is 0. If `is_single`, it has one block. If `is_alone`, a block shares
    no scale with another one.
    """

    sides: tuple[int, int]
    part: tuple[int, int] | None
    wide: int = _WIDE
    is_single: bool = False
    is_alone: bool = False

    @property
    def numbers(self) -> int:
        """How many numbers a block has."""
        return self.sides[0] * self.sides[1]

    @property
    def others(self) -> int:
        """How many blocks of a part do not have its largest number."""
        return self.part[0] * self.part[1] - 1 if self.part else 1 << 30

    def room(self, size: Size) -> int:
        """Return how many blocks the tensors of one kind have."""
        most = min(max(_ROOM // self.numbers, _FEWEST_BLOCKS), _MOST_BLOCKS)
        return most * size.factor

    def in_parts(self, largest: Bits, blocks: Bits) -> Bits:
        """Return blocks in parts, of which each begins with the largest block."""
        if self.is_alone:
            return blocks
        others = self.others
        firsts = range(0, len(blocks), others)
        pieces = [piece for k in firsts for piece in (largest, blocks[k : k + others])]
        return np.concatenate(pieces)

    def joined(self, blocks: Unsigned) -> Unsigned:
        """Return blocks in the order of their parts as a tensor; the last is repeated to fill it.

        Parts of columns lie next to each other, and other parts below each other.
        """
        height, width = self.sides
        wide = self.wide or len(blocks)
        rows, columns = self.part or (-(-len(blocks) // wide), wide)
        left = -len(blocks) % (rows * columns)
        whole = np.concatenate([blocks, np.repeat(blocks[-1:], left, axis=0)])
        parts = whole.reshape(-1, rows, columns, height, width).transpose(0, 1, 3, 2, 4)
        parts = parts.reshape(-1, rows * height, columns * width)
        is_of_columns = self.part is not None and width == columns == 1
        return np.ascontiguousarray(np.concatenate(parts, axis=1 if is_of_columns else 0))

    def tensors(self, name: str, blocks: Bits) -> Iterator[Tensor]:
        """Yield a tensor of blocks, or one of each block, if it has to be alone."""
        if not self.is_single:
            yield Tensor(f"{name}.f32", "f32", self.joined(blocks))
            return
        for n, block in enumerate(spread(blocks, 2 * _SMALL_TENSORS)):
            yield Tensor(f"{name}_{n}.f32", "f32", self.joined(block[np.newaxis]))


def plan_for(block_format: BlockFormat) -> Plan:
    """Return how tensors of a block format consist of blocks."""
    block, side = block_format.block, _NAMED_SIDE
    height, width = _sides(block, {"row": (1, side), "column": (side, 1), "tensor": (4, 16)})
    if block == "tensor" or height * width > _LARGEST_BLOCK:
        return Plan((min(height, 8), min(width, 64)), (1, 1), is_single=True, is_alone=True)
    wide = {"row": 1, "column": 0}.get(str(block), _WIDE)
    above = [scale.over for scale in block_format.scales if scale.over != block]
    if not above:
        return Plan((height, width), None, wide, is_alone=True)
    if above[-1] == "tensor":
        return Plan((height, width), None, wide)
    whole = _sides(above[-1], {"row": (1, 8 * width), "column": (8 * height, 1)})
    part = whole[0] // height, whole[1] // width
    return Plan((height, width), part if part[0] * part[1] <= _MOST_IN_PART else None, wide)


def _sides(cut: Cut, named: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    return named[cut] if isinstance(cut, str) else cut


# ---------------------------------------------------------------------- numbers of blocks


def filled(block_format: BlockFormat, amaxes: Amaxes, words: Words) -> Bits:
    """Return blocks whose numbers are ties and values of elements, or next to them.

    Blocks take turns to be made for the scale of each try. `words` are random, one for each number
    of each block.
    """
    own, count = amaxes[block_format.scales[-1].name], words.shape[1]
    factors = _factors(block_format, amaxes, count)
    points = np.array(_points(block_format))
    aims = points[words.ravel() % np.uint64(len(points))]
    center = f32_array(_unscaled(aims.tolist(), factors)).astype(np.int64)[:, np.newaxis]
    near = np.clip(center + _NEAR, 0, LARGEST).astype(np.uint32)
    magnitudes = near[np.arange(len(near)), _places(near, aims, factors, words.ravel())]
    bits = np.minimum(magnitudes.reshape(words.shape), own[:, np.newaxis])
    rows = np.arange(len(own))[:, np.newaxis]
    bits[rows, (rows + np.arange(_largest_numbers(block_format, count))) % count] = own[
        :, np.newaxis
    ]
    signs = (words >> np.uint64(40)).astype(np.uint32) << np.uint32(31)
    whole: Bits = bits | signs
    return whole


def _largest_numbers(block_format: BlockFormat, count: int) -> int:
    """Return how many numbers of a block are its largest, so that percentiles are its amax."""
    percents = [one.percent for one in percentiles_of(block_format, block_format.scales[-1])]
    return max((count + 1 - math.ceil(count * percent / 100) for percent in percents), default=1)


def _places(
    near: Bits, aims: NDArray[np.float64], factors: Mapping[str, list[float]], words: Words
) -> NDArray[np.int64]:
    """Return for each number the place of that which is a point when scaled, or next to it.

    Of four words, two ask for the point itself.
    """
    steps = near.shape[1]
    wide = {name: np.repeat(column, steps).tolist() for name, column in factors.items()}
    scaled: NDArray[np.float64] = np.array(_scaled(numbers_of(near, "f32"), wide), np.float64)
    xs, points = scaled.reshape(near.shape), aims[:, np.newaxis]
    asked = np.array((0, 0, 1, 2))[words >> np.uint64(20) & np.uint64(3)]
    places = np.full(len(near), steps // 2)
    for n, holds in enumerate((xs == points, xs < points, xs > points)):
        first, last = holds.argmax(axis=1), steps - 1 - holds[:, ::-1].argmax(axis=1)
        is_chosen = holds.any(axis=1) & (asked == n)
        places = np.where(is_chosen, last if n == 1 else first, places)
    return places


def _factors(block_format: BlockFormat, amaxes: Amaxes, count: int) -> dict[str, list[float]]:
    """Return the factors of each number of some blocks, by the tries in turn."""
    tried = [numbers_of_scales(block_format, formula, amaxes) for formula in block_format.tries]
    blocks = range(len(tried[0]["amax"]))
    return {
        name: [tried[n % len(tried)][name][n] for n in blocks for _ in range(count)]
        for name in ("decode", "encode")
        if name in tried[0]
    }


def _points(block_format: BlockFormat) -> list[float]:
    """Return the numbers of elements that are not negative, and the ties between them.

    Of a table these are the magnitudes of its values and limits.
    """
    if isinstance(block_format.fmt, TableFormat):
        points = {*map(Fraction, block_format.fmt.values), *block_format.fmt.exact_limits}
        return [rn32(point) for point in sorted(set(map(abs, points)))]
    values = values_of(block_format.fmt)
    step = values[-1] - values[-2]
    ties = [(a + b) / 2 for a, b in itertools.pairwise(values)]
    return [rn32(point) for point in (*values, *ties, *ties, values[-1] + step / Fraction(2))]


def _unscaled(aims: list[float], factors: Mapping[str, list[float]]) -> Column:
    if "encode" in factors:
        return quotients(aims, factors["encode"])
    return products(aims, factors["decode"])


def _scaled(x: list[float], factors: Mapping[str, list[float]]) -> Column:
    if "encode" in factors:
        return products(x, factors["encode"])
    return quotients(x, factors["decode"])


def _words(blocks: int, count: int, size: Size, stream: int) -> Words:
    return random_words(blocks * count, size.seed, stream).reshape(blocks, count)


# ---------------------------------------------------------------------- next to turns


def next_to_turns(block_format: BlockFormat, size: Size) -> Iterator[Tensor]:
    """Yield tensors of blocks whose amaxes are next to turns, alone and below larger blocks."""
    plan = plan_for(block_format)
    room, names = plan.room(size), [scale.name for scale in block_format.scales]
    pairs = turns(block_format, lambda bits: dict.fromkeys(names, bits), LARGEST, room // 3)
    alone = np.concatenate([pairs.ravel(), spread(amaxes(), max(room - pairs.size, 8))])
    if plan.is_alone:
        words = _words(len(alone), plan.numbers, size, 300)
        blocks = filled(block_format, dict.fromkeys(names, alone), words)
        yield from plan.tensors("turns", blocks)
        return
    count = _SMALL_TENSORS * size.factor if plan.part is None else room // 4
    tops = np.concatenate([pairs.ravel()[: count // 2], spread(amaxes(), count - count // 2)])
    streams = itertools.count(301)
    middles = 1 if len(names) == 2 else _MIDDLES
    parts = [
        *_below(block_format, plan, np.array(_TOPS, np.uint32), middles, room, size, streams),
        *_below(block_format, plan, tops, 1, 3 * len(tops), size, streams),
    ]
    if plan.part is not None and len(block_format.scales) == 2:
        yield Tensor("turns.f32", "f32", plan.joined(np.concatenate(parts)))
        return
    for n, blocks in enumerate(parts):  # a largest number each
        yield Tensor(f"turns_{n}.f32", "f32", plan.joined(blocks))


def _below(
    block_format: BlockFormat,
    plan: Plan,
    tops: Bits,
    middles: int,
    room: int,
    size: Size,
    streams: Iterator[int],
) -> Iterator[Bits]:
    """Yield, for each largest number, blocks of whole parts that have it, and blocks below it.

    There are so many amaxes of scales between the outermost and the last, the largest number first.
    """
    each, others = max(room // len(tops) // middles, 3), plan.others
    steps = 1 << 12 if each > _FEWEST_BLOCKS and middles == 1 else 1 << 8
    for top in tops.tolist():
        parts = []
        for middle in (max(top - k * _LOWER, 0) for k in range(middles)):
            under = partial(_amaxes, block_format, top, middle)
            below = turns(block_format, under, middle, -(-each // 2), steps).ravel()[:each]
            below = below if len(below) else np.array([middle >> 1], np.uint32)
            own = [
                bits
                for start in range(0, len(below), others)
                for bits in (middle, *below[start : start + others].tolist())
            ]
            if plan.part is not None:  # the last part is whole
                own += [middle >> 1] * (-len(own) % (others + 1))
            words = _words(len(own), plan.numbers, size, next(streams))
            parts.append(filled(block_format, under(np.array(own, np.uint32)), words))
        yield np.concatenate(parts)


def _amaxes(block_format: BlockFormat, top: int, middle: int, bits: Bits) -> dict[str, Bits]:
    """Return the amaxes of all scales, given those of the outermost, of others, and of blocks."""
    outermost, *others = (scale.name for scale in block_format.scales[:-1])
    above = {outermost: np.full_like(bits, top)} | {
        name: np.full_like(bits, middle) for name in others
    }
    return above | {block_format.scales[-1].name: bits}


# ---------------------------------------------------------------------- each rank


def of_each_rank(block_format: BlockFormat, size: Size) -> Iterator[Tensor]:
    """Yield tensors whose blocks have each count of numbers, far from each other, and else NaN.

    So a percentile has each rank, and a wrong rank is another number. A format in which a NaN wins
    has whole blocks alone.
    """
    if not any(percentiles_of(block_format, scale) for scale in block_format.scales):
        return
    plan = plan_for(block_format)
    count = plan.numbers
    blocks = plan.room(size) if block_format.counted != "all" else _FEWEST_BLOCKS
    counts = spread(np.arange(1, count + 1, dtype=np.uint32), min(blocks, count))
    if block_format.counted == "all":
        counts = np.full(blocks, count, np.uint32)
    words = _words(len(counts), count, size, 500)
    ranks = words.argsort(axis=1).argsort(axis=1)  # in a random order
    exponents = 127 - _RANKED // 2 + ranks * _RANKED // counts[:, np.newaxis]
    bits = (exponents << 23).astype(np.uint32) | (words >> np.uint64(41)).astype(np.uint32)
    signs = (words >> np.uint64(40)).astype(np.uint32) << np.uint32(31)
    numbers = np.where(ranks < counts[:, np.newaxis], bits | signs, _NAN)
    yield from plan.tensors("ranks", numbers.astype(np.uint32))


# ---------------------------------------------------------------------- next to another choice

Scales = Callable[[Bits], Unsigned]  # of blocks


def next_to_choices(block_format: BlockFormat, size: Size) -> Iterator[Tensor]:
    """Yield tensors in pairs: a number of each block differs by a step, and so does the choice.

    Between two blocks with other choices, numbers are exchanged from the left until the choice is
    another, and then the last of them is searched in halves.
    """
    if len(block_format.tries) == 1:
        return
    plan, top = plan_for(block_format), _TOPS[0]
    count = plan.numbers
    places = min(max(_ROOM // 4 // count, 2), _PLACES) * size.factor
    lower = (random_words(places, size.seed, 400) % np.uint64(6 << 23)).astype(np.uint32)
    own, one = np.uint32(top) - lower, np.array([top], np.uint32)
    names = [scale.name for scale in block_format.scales]
    largest = filled(block_format, dict.fromkeys(names, one), _words(1, count, size, 401))
    every = dict.fromkeys(names, own)
    if not plan.is_alone:
        every = _amaxes(block_format, top, top, own)
    scales = partial(_scales_of_blocks, block_format, plan, largest)
    first, *others = (
        filled(block_format, every, _words(places, count, size, 402 + n)) for n in range(_ATTEMPTS)
    )
    before, second = scales(first), first.copy()
    for blocks in others:
        same_signs = blocks & ~_SIGN | first & _SIGN
        is_other = (scales(same_signs) != before) & (second == first).all(axis=1)
        second[is_other] = same_signs[is_other]
    has_other = (scales(second) != before)[:, np.newaxis]
    exchanged = _first_exchange(scales, first, second, before)
    for n, blocks in enumerate(_first_step(scales, *exchanged, before)):
        whole = plan.in_parts(largest, np.where(has_other, blocks, first))
        yield from plan.tensors(f"choices_{n}", whole)


def _first_exchange(
    scales: Scales, first: Bits, second: Bits, before: Unsigned
) -> tuple[Bits, Bits]:
    """Return blocks that differ in one number, and so in the scale."""
    columns = np.arange(first.shape[1])
    low, high = np.zeros(len(first), int), np.full(len(first), len(columns))

    def mixed(count: NDArray[np.int64]) -> Bits:
        return np.where(columns < count[:, np.newaxis], second, first)

    while (high - low > 1).any():
        middle = (low + high) // 2
        is_low = scales(mixed(middle)) == before
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        high = np.maximum(high, low + 1)
    return mixed(low), mixed(low + 1)


def _first_step(scales: Scales, left: Bits, right: Bits, before: Unsigned) -> tuple[Bits, Bits]:
    """Return blocks of which one number differs by a step, and so does the scale."""
    low, high = left.astype(np.int64), right.astype(np.int64)
    while (np.abs(high - low) > 1).any():
        middle = (low + high) // 2
        is_low = (scales(middle.astype(np.uint32)) == before)[:, np.newaxis]
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return low.astype(np.uint32), high.astype(np.uint32)


def _scales_of_blocks(
    block_format: BlockFormat, plan: Plan, largest: Bits, blocks: Bits
) -> Unsigned:
    """Return the code of the scale of each block, in tensors whose parts have a largest block."""
    if plan.is_single:
        alone = (plan.joined(block[np.newaxis]) for block in blocks)
        return np.concatenate([_scale_codes(block_format, x) for x in alone])
    whole = plan.in_parts(largest, blocks)
    # The largest blocks are new: the others have their places here.
    numbers = np.arange(len(blocks) + 1, dtype=np.uint32)[:, np.newaxis]
    places = plan.in_parts(numbers[-1:], numbers[:-1])
    height, width = plan.sides
    order = plan.joined(np.repeat(places, plan.numbers, axis=1))[::height, ::width].ravel()
    codes = np.empty(len(blocks) + 1, np.uint32)
    codes[order] = _scale_codes(block_format, plan.joined(whole))
    return codes[:-1]


def _scale_codes(block_format: BlockFormat, x: Bits) -> NDArray[np.uint32]:
    """Return the code of the scale of each block of a tensor, row by row."""
    scale = block_format.scales[-1]
    found = quantize(numbers_of(x, "f32"), x.shape, block_format).scales[scale.name]
    if scale.fmt == formats["f32"]:
        return f32_array(found.numbers[scale.name])
    return np.array(found.codes, np.uint32)
