"""Random numbers at which encoders differ: near the values and midpoints of a format, and beyond.

The number of a case determines its random words: the cases are the same in chunks of any size. Of
256 numbers, about 128 have an exponent in the range of the format or near it. 85 are a value or a
midpoint of the format, or next to one. The rest are special numbers or any pattern.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.operations.random_words import endless_words

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
_U = np.uint64
_BEYOND = 3  # binades to each side of a format's range
_IN_RANGE, _NEAR, _ANY = 128, 213, 246  # of 256
ANY_NUMBER = "every pattern is taken"

# Significands of binary32 at which divisions round differently, and those next to 1.75.
SIGNIFICANDS = (
    0x800000, 0x800001, 0xAAAAAA, 0xAAAAAB, 0xBFFFFF, 0xC00000, 0xDFFFFF, 0xE00000,
    0xE00001, 0xEFFFFF, 0xF00000, 0xFFFFFE, 0xFFFFFF, 0x9E3779, 0xB504F3, 0xC90FDB,
)  # fmt: skip


class Layout(NamedTuple):
    """An IEEE 754 layout: its bits, the bits of its fraction, and its bias."""

    bits: int
    fraction_bits: int
    bias: int

    @property
    def hidden(self) -> int:
        """The bit above the fraction."""
        return 1 << self.fraction_bits

    @property
    def infinity(self) -> int:
        """The pattern of infinity."""
        return (1 << (self.bits - 1)) - self.hidden

    @property
    def largest(self) -> int:
        """The pattern of the largest number."""
        return self.infinity - 1


LAYOUTS = {
    "f64": Layout(64, 52, 1023),
    "f32": Layout(32, 23, 127),
    "f16": Layout(16, 10, 15),
    "bf16": Layout(16, 7, 127),
}


@dataclass(frozen=True)
class Draws:
    """The random words of `count` cases from number `first` on.

    A case is a row of `width` numbers.
    """

    first: int
    count: int
    seed: int
    width: int = 1

    def per_number(self) -> "Draws":
        """Return the draws for each number of the rows."""
        return Draws(self.first * self.width, self.count * self.width, self.seed)

    def words(self, stream: int) -> Words:
        """Return a word for each case."""
        return endless_words(self.first, self.count, self.seed, stream)


def share(words: Words, bits: int, limit: int | Words) -> Words:
    """Return integers below `limit`, from words of `bits` bits."""
    return words * np.asarray(limit, _U) >> _U(bits)


def bits_at(words: Words, place: int, count: int) -> Words:
    """Return some bits of each word."""
    return words >> _U(place) & _U((1 << count) - 1)


def moved(magnitudes: Words, steps: Words, most: int) -> Words:
    """Move magnitudes by `steps - 2`, and limit them to 0 to `most`; `steps` is 0 to 4."""
    limited: Words = np.minimum(np.maximum(magnitudes + steps, _U(2)) - _U(2), _U(most))
    return limited


def magnitudes_of(fields: Integers, fractions: Words, layout: Layout) -> Words:
    """Return patterns of these exponent fields; one below 1 makes a subnormal number."""
    normal = np.maximum(fields, 1)
    significands = (fractions & _U(layout.hidden - 1)) | _U(layout.hidden)
    shifted: Words = significands >> np.minimum(normal - fields, 63).astype(_U)
    return (normal - 1).astype(_U) * _U(layout.hidden) + shifted


def edge_fractions(draws: Draws, stream: int, largest: float) -> Words:
    """Draw fractions of binary32: those of edges and of the largest value of a format, and any."""
    words = draws.words(stream)
    significand = int(math.frexp(largest)[0] * 2**24)
    edges = np.array([*SIGNIFICANDS, *[significand] * len(SIGNIFICANDS)], _U)
    at_edge = moved(edges[share(words >> _U(48), 16, edges.size)], bits_at(words, 24, 2), 1 << 24)
    is_edge = bits_at(words, 30, 1) == 0
    return np.where(is_edge, at_edge, words) & _U(LAYOUTS["f32"].hidden - 1)


def any_row(_: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return True for every row."""
    return np.ones(len(next(iter(arrays.values()))), np.bool_)


def numbers(draws: Draws, stream: int, target: Format, source: str) -> Words:
    """Return patterns of the source at which encoders to the target differ; use three streams."""
    layout = LAYOUTS[source]
    patterns, choices = draws.words(stream), draws.words(stream + 1)
    fields = _fields(target, layout, choices >> _U(32))
    in_range = magnitudes_of(fields, patterns, layout)
    near = _near_a_point(in_range, fields, target, layout, draws.words(stream + 2))
    kind = bits_at(choices, 0, 8)
    special = _specials(layout)[share(bits_at(choices, 8, 16), 16, 9)]
    rest = np.where(kind < _ANY, patterns & _U(layout.infinity + layout.hidden - 1), special)
    magnitudes: Words = np.where(kind < _IN_RANGE, in_range, np.where(kind < _NEAR, near, rest))
    signs = patterns >> _U(63) << _U(layout.bits - 1)
    return magnitudes | signs


def _fields(target: Format, layout: Layout, words: Words) -> Integers:
    """Return exponent fields of the source in the range of the target and a few binades around."""
    lowest = target.smallest_exponent - target.mantissa_bits - _BEYOND + layout.bias
    highest = math.frexp(target.largest)[1] - 1 + _BEYOND + layout.bias
    most = layout.infinity // layout.hidden - 1
    lowest, highest = max(lowest, -layout.fraction_bits), min(highest, most)
    return share(words, 32, highest - lowest + 1).astype(np.int64) + np.int64(lowest)


def _near_a_point(
    magnitudes: Words, fields: Integers, target: Format, layout: Layout, words: Words
) -> Words:
    """Return values and midpoints of the target, within two steps, or with a few lower bits set."""
    dropped = _dropped_bits(fields, target, layout)
    points = magnitudes >> dropped << dropped
    extra_bits = [_U(1) << share(bits_at(words, place, 8), 8, dropped) for place in (8, 16)]
    steps = moved(points, share(bits_at(words, 24, 16), 16, 5), layout.infinity)
    return np.where(bits_at(words, 0, 2) == 0, points | extra_bits[0] | extra_bits[1], steps)


def _dropped_bits(fields: Integers, target: Format, layout: Layout) -> Words:
    """Return how many low bits of a number of the source lie below half a step of the target."""
    exponents = np.maximum(fields, 1) - layout.bias
    step = np.maximum(exponents, target.smallest_exponent) - target.mantissa_bits
    dropped: Integers = np.clip(
        step - 1 - exponents + layout.fraction_bits, 0, layout.fraction_bits
    )
    return dropped.astype(_U)


def _specials(layout: Layout) -> Words:
    """Return zero, the ends of the subnormal and of the normal numbers, infinity, and NaNs."""
    hidden, infinity = layout.hidden, layout.infinity
    quiet = infinity + hidden // 2
    ends = [0, 1, hidden - 1, hidden, infinity - 1]
    return np.array([*ends, infinity, infinity + 1, quiet, infinity + hidden - 1], _U)
