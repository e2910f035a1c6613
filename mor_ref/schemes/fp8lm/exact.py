"""FP8-LM: scales, delayed scaling, all-reduce, automatic scaling, Adam and the partition."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from mor_ref.definitions.format import Format
from mor_ref.exact.arithmetic import (
    FLT_MAX,
    product,
    quotient,
    rn32,
    rn32_of_binary64,
    units_next_to,
)
from mor_ref.exact.encoding import encode, floor_log2
from mor_ref.exact.step import step
from mor_ref.schemes.fp8lm.definition import (
    BY_AMAX,
    PAPER_PARTS,
    PAPER_WINDOW,
    ScaleProfile,
)

_BITS_OF_LOGARITHM = 80
_BITS_OF_SQUARES = 256
_SATURATED = 0x7E


class Scale(NamedTuple):
    """A scale, and the numbers that it follows from."""

    ratio: float
    exponent: float
    scale: float
    scale_inv: float


class Element(NamedTuple):
    """The code and y of a number."""

    code: int
    y: float


class Reduced(NamedTuple):
    """The result of an all-reduce."""

    rank_scale: list[float]
    scale: float
    scale_inv: float
    requantized: list[bool]
    rank_codes: list[list[int]]
    elements: list[Element]


class SharedScales(NamedTuple):
    """The scales of an all-reduce, and which ranks cast their tensor anew."""

    rank_scale: list[float]
    scale: float
    scale_inv: float
    requantized: list[bool]


# ---------------------------------------------------------------------- scales


def rn32_of_log2(ratio: float) -> float:
    """Return RN32(log2(ratio)) of a positive finite number (FLM-002)."""
    exponent = floor_log2(ratio)
    rest = Fraction(ratio) / Fraction(2) ** exponent
    if rest == 1:
        return float(exponent)
    # Each squaring moves the next bit of the logarithm before the binary point.
    square, bits = int(rest * 2**_BITS_OF_SQUARES), 0
    for _ in range(_BITS_OF_LOGARITHM):
        square = square * square >> _BITS_OF_SQUARES
        is_over = square >> _BITS_OF_SQUARES + 1
        square >>= is_over
        bits = 2 * bits + is_over
    above = Fraction(2 * bits + 1, 2 << _BITS_OF_LOGARITHM)  # no tie: it is irrational
    return rn32(exponent + above)


@step
def ratio_of(largest: float, amax: float) -> float:
    """Return the ratio of msamp (FLM-002)."""
    return product(largest, quotient(1.0, amax))


@step
def exponent_of(ratio: float, margin: int) -> float:
    """Return the exponent of msamp (FLM-002)."""
    if ratio == 0:
        return -math.inf
    if not math.isfinite(ratio):
        return ratio
    return math.floor(rn32_of_log2(ratio)) - margin


@step
def scale_of_msamp(amax: float, previous: float, largest: float, margin: int) -> Scale:
    """Return the scale as MS-AMP has it (FLM-002, FLM-003)."""
    ratio = ratio_of(largest, amax)
    exponent = exponent_of(ratio, margin)
    if amax > 0 and math.isfinite(amax):
        scale = math.ldexp(1.0, int(abs(exponent))) if abs(exponent) <= 127 else math.inf
    else:
        scale = previous
    if exponent < 0:
        scale = quotient(1.0, scale)
    return Scale(ratio, exponent, scale, quotient(1.0, scale))


@step
def scale_exactly(amax: float, previous: float, largest: float, margin: int) -> Scale:
    """Return the scale without the logarithm, which stays if amax is 0 or not finite (FLM-004)."""
    ratio = quotient(largest, amax)
    if amax == 0 or not math.isfinite(amax):
        return Scale(ratio, math.nan, previous, quotient(1.0, previous))
    exponent = min(max(floor_log2(min(ratio, FLT_MAX)) - margin, -126), 127)
    scale = math.ldexp(1.0, exponent)
    return Scale(ratio, exponent, scale, quotient(1.0, scale))


@step
def scale_of(
    amax: float, previous: float, fmt: Format, margin: int, profile: ScaleProfile
) -> Scale:
    """Return the scale of a tensor of that amax (FLM-001)."""
    rule = scale_of_msamp if profile == "msamp" else scale_exactly
    return rule(amax, previous, fmt.largest, margin)


@step
def cast(x: float, scale: float, fmt: Format) -> Element:
    """Return the code and y of a number (FLM-005)."""
    code = encode(product(x, scale), fmt, "rne")
    return Element(code, product(fmt.value(code), quotient(1.0, scale)))


@step
def recast(x: float, scale: float, shared: float, fmt: Format) -> Element:
    """Return the code and y of a number that is cast, and then cast anew (FLM-007)."""
    return cast(cast(x, scale, fmt).y, shared, fmt)


@step
def history(window: Sequence[float], amax: float) -> tuple[float, ...]:
    """Return the window after a step (FLM-006)."""
    return (*window[1:], amax if math.isfinite(amax) else 0.0)


@step
def largest_after(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the largest amax of the window after a step (FLM-006)."""
    del before
    return largest_magnitude(after)


# ---------------------------------------------------------------------- all-reduce


def largest_magnitude(numbers: Sequence[float]) -> float:
    """Return the largest |x|; a NaN counts most (FLM-001)."""
    return math.nan if any(map(math.isnan, numbers)) else max(map(abs, numbers), default=0.0)


@step
def by_root(scale: float, ranks: int, reduction: str) -> float:
    """Return a scale by the root of the number of ranks (FLM-008)."""
    if reduction == "msamp_max":
        return quotient(scale, square_root(float(ranks)))
    return product(scale, rn32_of_binary64(1.0 / math.sqrt(ranks)))


@step
def shared_scales(
    amaxes: Sequence[float], fmt: Format, reduction: str, profile: ScaleProfile
) -> SharedScales:
    """Return the scales of tensors with these amaxes, and the shared one (FLM-007, FLM-008)."""
    rank_scales = [scale_of(amax, 1.0, fmt, 0, profile).scale for amax in amaxes]
    if reduction in BY_AMAX:
        whole = scale_of(largest_magnitude(amaxes), 1.0, fmt, 0, profile).scale
        shared = by_root(whole, len(amaxes), reduction)
    else:
        shared = min(rank_scales)
    changed = [reduction != "msamp_min" or scale != shared for scale in rank_scales]
    back = quotient(quotient(1.0, shared), float(len(amaxes)))
    return SharedScales(rank_scales, shared, back, changed)


def shared_scale(
    ranks: Sequence[Sequence[float]], fmt: Format, reduction: str, sums: str, profile: ScaleProfile
) -> Reduced:
    """Return the mean of the tensors of all ranks (FLM-007 to FLM-009)."""
    amaxes = [largest_magnitude(numbers) for numbers in ranks]
    rank_scales, shared, back, changed = shared_scales(amaxes, fmt, reduction, profile)
    if reduction in BY_AMAX:  # FLM-008
        codes = [[cast(x, shared, fmt).code for x in numbers] for numbers in ranks]
    else:  # FLM-007
        codes = []
        for numbers, scale, changes in zip(ranks, rank_scales, changed, strict=True):
            codes.append(
                [
                    (recast(x, scale, shared, fmt) if changes else cast(x, scale, fmt)).code
                    for x in numbers
                ]
            )
    columns = [[fmt.value(code) for code in column] for column in zip(*codes, strict=True)]
    added = [sum_of(column, fmt, sums) for column in columns]
    elements = [Element(code, product(fmt.value(code), back)) for code in added]
    return Reduced(rank_scales, shared, back, changed, codes, elements)


@step
def sum_of(values: Sequence[float], fmt: Format, sums: str) -> int:
    """Return the code of the sum of values, exactly or in the order of ranks (FLM-009)."""
    parts = [values] if sums == "exact" else [[value] for value in values]
    code = 0
    for part in parts:
        numbers = [fmt.value(code), *part]
        is_finite = all(map(math.isfinite, numbers))
        value = sum(map(Fraction, numbers), Fraction(0)) if is_finite else math.nan
        code = encode(float(value), fmt, "rne")  # binary64 holds such a sum
    return code


# ---------------------------------------------------------------------- automatic scaling


@step
@cache
def growth(window: int) -> float:
    """Return RN32(2^(1/window)) (FLM-010)."""
    low, high = 1 << 23, 1 << 24  # in units of 2^-23; low^window <= 2^(23 window + 1)
    while high - low > 1:
        middle = (low + high) // 2
        is_below = middle**window <= 2 << 23 * window
        low, high = (middle, high) if is_below else (low, middle)
    goes_up = (2 * low + 1) ** window < 2 << 24 * window
    return math.ldexp(low + goes_up, -23)


def auto_scale(
    mu: float, codes: Sequence[int], profile: str, threshold: float, window: int
) -> tuple[int, float]:
    """Return the saturated codes, and mu after a step (FLM-010)."""
    count = sum(code & 0x7F == _SATURATED for code in codes)
    return count, next_mu(mu, count, len(codes), profile, threshold, window)


def next_mu(mu: float, count: int, size: int, profile: str, threshold: float, window: int) -> float:
    """Return mu after a step whose gradient has `count` saturated codes (FLM-010)."""
    if are_too_many(count, size, profile, threshold):
        return quotient(mu, 2.0)
    return product(mu, growth(PAPER_WINDOW if profile == "paper" else window))


@step
def are_too_many(count: int, size: int, profile: str, threshold: float) -> bool:
    """Return whether this many saturated codes halve mu (FLM-010)."""
    if profile == "paper":
        return count * PAPER_PARTS > size
    share = quotient(rn32(Fraction(count)), rn32(Fraction(size)))
    return share > rn32_of_binary64(threshold)


def square_root(x: float) -> float:
    """Return RN32 of the square root of a number that is not negative."""
    if x < 0:
        return math.nan
    if x == 0 or not math.isfinite(x):
        return x
    root = Fraction(math.isqrt(int(Fraction(x) * 4**200)), 2**200)
    if root * root != Fraction(x):
        root += Fraction(1, 2**201)  # no tie: it is irrational
    unit = max(floor_log2(root) - 23, -149)
    return math.ldexp(units_next_to(root, unit), unit)


# ---------------------------------------------------------------------- partition


@step
def partition(numels: Sequence[int], ranks: int) -> list[int]:
    """Return the rank of each tensor (FLM-015)."""
    loads, owners = [0] * ranks, [0] * len(numels)
    for i in sorted(range(len(numels)), key=lambda i: (-numels[i], i % ranks)):
        owners[i] = loads.index(min(loads))
        loads[owners[i]] += numels[i]
    return owners
