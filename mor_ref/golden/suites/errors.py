"""Errors of single numbers, and the fields of error sums."""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.edges import bell, wide
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.random_words import random_words


def _step_cases(size: Size) -> Iterator[Case]:
    x, y = (np.array(column, np.uint32) for column in zip(*_pairs(size), strict=True))
    yield Case("all", {}, {"x": x, "y": y})


def _pairs(size: Size) -> list[tuple[int, int]]:
    """Return finite x that are not zero, with y near x, at ties of u, far away, and infinite."""
    random = (*wide(400, size.seed, 50), *bell(400, size.seed, 51))
    x = [b & 0x7F7FFFFF or 1 for b in random]
    pairs = []
    for k, bits in enumerate(map(int, x)):
        off = (1 << (k % 23)) * (1 if k % 2 else -1)
        pairs.append((bits, min(max(bits + off, 0), 0x7F800000)))
        pairs.append((bits | 0x80000000, min(bits + (off >> 1), 0x7F7FFFFF) | 0x80000000))
    one = 0x3F800000
    for k in range(64):  # d at and next to half a step of 2^-23
        pairs += [(one, one + k), (one, one - k), (one | 1, one - 2 * k), (0x40400000, one + k)]
    pairs += _far_apart(size)
    pairs += [(b, b + 1) for b in (0x3AFFFFFF, 0x3B7FFFFF, 0x10FFFFFF, 0x607FFFFF)]
    pairs += [(1, 0), (1, 2), (3, 2), (one, 0x80000000 | one), (0x7F7FFFFF, 0x7F800000), (1, one)]
    pairs += _lost_and_overflowing()
    return [(a, b) for a, b in pairs if a & 0x7FFFFFFF and a & 0x7F800000 != 0x7F800000 and b >= 0]


def _lost_and_overflowing() -> Iterator[tuple[int, int]]:
    """Yield pairs whose y is an infinity or a zero, and pairs about an infinite distance."""
    largest = 0x7F7FFFFF
    for sign in (0, 1 << 31):
        for y in (0x7F800000, 0xFF800000, 0, 1 << 31):
            yield 0x3F800000 | sign, y
        # The distance of the largest number and -2^103 is a tie, which becomes infinite.
        for y in (largest, 0x73000000, 0x72FFFFFF, 0x7F800000):
            yield largest | sign, y | sign ^ 1 << 31


def _far_apart(size: Size) -> Iterator[tuple[int, int]]:
    """Yield pairs whose distance takes more than 24 bits: |y| < |x| / 2, or of other sign."""
    for k, word in enumerate(random_words(480, size.seed, 52).tolist()):
        field = 127 + (-90, 0, 100)[k % 3]
        below = field - 1 - (word >> 46) % 30
        signs = (0, 0), (1 << 31, 1 << 31), (0, 1 << 31)
        x_sign, y_sign = signs[(word >> 56) % 3]
        yield (
            field << 23 | word & 0x7FFFFF | x_sign,
            below << 23 | word >> 23 & 0x7FFFFF | y_sign,
        )


STEPS = suite("error_steps", "The relative error of one number", "error_term", (), _step_cases)
