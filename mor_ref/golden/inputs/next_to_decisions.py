"""Tensors in pairs: one number differs by a step, and so does the rung that the tensor takes.

Between a tensor that takes a rung and one that takes a lower rung, numbers are exchanged from the
left until the decision is another, and then the last of them is searched in halves. So any metric
turns between the two, whatever it compares.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import Cut
from mor_ref.golden.inputs.edges import Bits
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.random_words import random_words

Words = NDArray[np.uint64]
Decide = Callable[[Bits], int]  # the place of the rung that a tensor of one unit takes

_MOST, _WIDE = 192, 48  # numbers of a tensor, and of a row of it
_PAIRS = 4  # of a rung
_BINADES = (0, 1, 2, 4, 8, 16, 32, 64)  # below the largest numbers of a tensor
_FRACTIONS = (0, 2, 6, 23)  # bits of significands that are random
_TOP = 135  # exponent of the largest numbers, with its bias
# Of ties of elements with so many bits of mantissa, the smallest ones have the largest errors.
_MANTISSAS, _TIES = (0, 1, 2, 3, 4, 7), (1, 4)
_TOPS = (0, 0x600000, 0x280000)  # significands 1, 1.75 as in 448, and 1.3125 as in 6 * 448


def sides_of_unit(block: Cut) -> tuple[int, int]:
    """Return the sides of a tensor of few numbers that lies in one block.

    >>> sides_of_unit((128, 128)), sides_of_unit((8, 16)), sides_of_unit("row")
    ((4, 48), (8, 16), (1, 48))
    """
    if isinstance(block, str):
        return {"row": (1, _WIDE), "column": (_WIDE, 1)}.get(block, (_MOST // _WIDE, _WIDE))
    height, width = block
    if height * width <= _MOST:
        return height, width
    short = min(width, _WIDE)
    return min(height, _MOST // short), short


def next_to_decisions(rungs: int, decide: Decide, block: Cut, size: Size) -> Iterator[Tensor]:
    """Yield pairs of tensors for each rung of a policy that has so many, the fallback not counted.

    The first tensor of a pair takes the rung or one above, and the second one does not.
    """
    sides = sides_of_unit(block)
    tensors = itertools.chain(_of_each_spread(sides, size), _of_ties(sides, size))
    known = [(x, decide(x)) for x in tensors]
    for rung in range(rungs):
        taken = [x for x, place in known if place == rung]
        left = [x for x, place in known if place > rung]
        for n, (one, other) in enumerate(_pairs(taken, left, _PAIRS * size.factor)):
            pair = _next_to_each_other(one, other, partial(_is_taken, decide, rung))
            for word, x in zip(("taken", "left"), pair, strict=True):
                yield Tensor(f"rung_{rung}_{word}_{n}.f32", "f32", x)


def _is_taken(decide: Decide, rung: int, x: Bits) -> bool:
    """Return whether a tensor takes a rung, or one above."""
    return decide(x) <= rung


def _of_each_spread(sides: tuple[int, int], size: Size) -> Iterator[Bits]:
    """Yield tensors of few and of many binades, with short and with long significands."""
    for n, (binades, fraction) in enumerate(itertools.product(_BINADES, _FRACTIONS)):
        words = random_words(sides[0] * sides[1], size.seed, 600 + n)
        kept = np.uint64((1 << 23) - (1 << 23 - fraction))
        yield _numbers(sides, words, binades, words >> np.uint64(41) & kept, size)


def _of_ties(sides: tuple[int, int], size: Size) -> Iterator[Bits]:
    """Yield tensors of one or several ties, or numbers next to them, below a largest number."""
    kinds = itertools.product(_MANTISSAS, _TIES, _TOPS, (0, 4))
    for n, (mantissa, ties, top, binades) in enumerate(kinds):
        words = random_words(sides[0] * sides[1], size.seed, 640 + n)
        chosen = words >> np.uint64(42) & np.uint64(min(ties, 1 << mantissa) - 1)
        odd = np.uint64(2) * chosen + np.uint64(1)
        fractions = (odd << np.uint64(22 - mantissa)) + (words >> np.uint64(41) & np.uint64(1))
        words[0], fractions[0] = 0, top  # with such a largest number, scales are powers of two
        yield _numbers(sides, words, binades, fractions, size)


def _numbers(
    sides: tuple[int, int], words: Words, binades: int, fractions: Words, size: Size
) -> Bits:
    """Return numbers of some binades. The signs are those of all tensors: numbers move in steps."""
    exponents = np.uint64(_TOP) - words % np.uint64(binades + 1)
    signs = (random_words(words.size, size.seed, 599) & np.uint64(1)) << np.uint64(31)
    bits = exponents << np.uint64(23) | fractions | signs
    return bits.astype(np.uint32).reshape(sides)


def _pairs(first: Sequence[Bits], second: Sequence[Bits], most: int) -> Iterator[tuple[Bits, Bits]]:
    """Yield pairs of different tensors, of each as often as of another."""
    count = min(most, len(first) * len(second))
    for n in range(count):
        turn = n // len(first) if first else 0
        yield first[n % len(first)], second[(n + turn) % len(second)]


def _next_to_each_other(one: Bits, other: Bits, holds: Callable[[Bits], bool]) -> tuple[Bits, Bits]:
    """Return two tensors of which one number differs by a step: of the first alone, it holds."""
    low, high = 0, one.size

    def mixed(count: int) -> Bits:
        x = one.copy()
        x.flat[:count] = other.flat[:count]
        return x

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(mixed(middle)) else (low, middle)
    x = mixed(low)
    first, last = int(one.flat[low]), int(other.flat[low])

    def stepped(bits: int) -> Bits:
        y = x.copy()
        y.flat[low] = bits
        return y

    while abs(last - first) > 1:
        half = (first + last) // 2
        first, last = (half, last) if holds(stepped(half)) else (first, half)
    return stepped(first), stepped(last)
