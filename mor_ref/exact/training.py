"""Training: delayed scales, random words, the Hadamard transform, and measures of a run."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.exact.arithmetic import FLT_MAX, difference, product, quotient
from mor_ref.exact.before_blocks import scaled_sums
from mor_ref.exact.blocks import Rows
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.nvfp4 import nvfp4
from mor_ref.exact.philox import Philox
from mor_ref.exact.quantization import Element, RandomWords, quantize_element, to_bf16
from mor_ref.exact.step import step

_PHILOX = Philox(
    64, (0xD2E7470EE14C6C93, 0xCA5A826395121157), (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
)
_ROUNDS = 10
_RANDOM_BITS = 32
_GROUP = 16

Pairs = Iterable[tuple[float, float]]  # x and y of elements


class Purpose(NamedTuple):
    """The purpose of random words: the key of the generator, and its counter (TRN-007)."""

    seed: int
    step: int
    call: int
    layer: int
    use: int


@step
def delayed_scale(
    amaxes: Sequence[float], last: float, largest: float, margin: int, *, power_of_two: bool
) -> float:
    """Return the scale that follows from the amaxes of earlier steps (TRN-005)."""
    amax = max(amaxes, default=0.0)
    if amax == 0 or not math.isfinite(amax):
        return last
    ideal = min(quotient(largest, amax), FLT_MAX)
    if power_of_two:
        exponent = floor_log2(ideal) - margin
        return math.ldexp(1.0, min(max(exponent, -126), 127))
    return quotient(ideal, math.ldexp(1.0, margin))


def elements_with_scale(x: Rows, fmt: Format, scale: float) -> list[list[Element]]:
    """Quantize a tensor with a given scale (TRN-006)."""
    return [[quantize_element(number, scale, fmt) for number in row] for row in x]


@step
def philox(counter: Sequence[int], key: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the four words of Philox 4x64 with ten rounds (TRN-007)."""
    return _PHILOX.block(counter, key, _ROUNDS)


@step
def random_word(purpose: Purpose, index: int) -> int:
    """Return the word of 32 bits of an element (TRN-007)."""
    counter = (index // 8 + 1, purpose.call, purpose.layer, purpose.use)
    word = philox(counter, (purpose.seed, purpose.step))[index % 8 // 2]
    return word >> 32 if index % 2 else word & 0xFFFFFFFF


def nvfp4_at_random(
    x: Rows, profile: Nvfp4Profile, tile: tuple[int, int], purpose: Purpose
) -> list[list[Element]]:
    """Quantize a tensor to NVFP4 with stochastic rounding of its elements (TRN-008)."""
    columns = len(x[0]) if x else 0
    words = [[random_word(purpose, i * columns + j) for j in range(columns)] for i in range(len(x))]
    return nvfp4(x, profile, tile, words=RandomWords(words, _RANDOM_BITS)).elements


@step
def signs(purpose: Purpose) -> tuple[int, ...]:
    """Return the signs of the Hadamard transform (TRN-009)."""
    word = random_word(purpose, 0)
    return tuple(-1 if word >> i & 1 else 1 for i in range(_GROUP))


@step
def hadamard(numbers: Sequence[float], signs: Sequence[int]) -> list[int]:
    """Return the bfloat16 codes of sixteen transformed numbers (TRN-009)."""
    one_run = [[product(x, float(sign))] for x, sign in zip(numbers, signs, strict=True)]
    return [to_bf16(number) for (number,) in scaled_sums(one_run)]


# ---------------------------------------------------------------------- measures


def signal(pairs: Pairs) -> Fraction:
    """Return the sum of the squares of x (TRN-010)."""
    return sum((Fraction(x) ** 2 for x, _ in pairs if math.isfinite(x)), Fraction(0))


def noise(pairs: Pairs) -> Fraction:
    """Return the sum of the squares of the differences (TRN-010)."""
    differences = (difference_of(x, y) for x, y in pairs)
    return sum((Fraction(d) ** 2 for d in differences if math.isfinite(d)), Fraction(0))


@step
def difference_of(x: float, y: float) -> float:
    """Return d of an element (TRN-010)."""
    return formats["bf16"].value(to_bf16(difference(x, y)))


def sqnr(signal: Fraction, noise: Fraction) -> float:
    """Return the ratio in decibels (TRN-010)."""
    return 10 * math.log10(signal / noise) if noise else math.inf


@step
def is_flushed(x: float, y: float) -> bool:
    """Return whether a number became zero (TRN-011)."""
    return x != 0 and y == 0


@step
def is_saturated(xs: float, fmt: Format) -> bool:
    """Return whether a scaled number is too large to round to the largest code (TRN-011)."""
    largest = fmt.largest_code
    gap = Fraction(fmt.value(largest)) - Fraction(fmt.value(largest - 1))
    return math.isfinite(xs) and abs(Fraction(xs)) > Fraction(fmt.value(largest)) + gap / 2


@step
def scale_exponent(scale: float, *, divides: bool) -> int:
    """Return the exponent of a scale that multiplies, or divides (TRN-012)."""
    exponent = floor_log2(scale)
    return -exponent if divides else exponent
