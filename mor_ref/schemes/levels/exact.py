"""Levels of ParetoQ: a step size for each row, and few levels."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import (
    difference,
    nearest_in,
    product,
    quotient,
    rn32,
    rn32_of_binary64,
    total,
)
from mor_ref.exact.step import step
from mor_ref.schemes.levels.definition import CLIP, SMALLEST_ALPHA, TERNARY_DIGITS, LevelKind


class LevelElement(NamedTuple):
    """A weight: every step of its quantization, its code, and its factors of the gradients."""

    ratio: float
    clipped: float
    level: float
    code: int
    y: float
    alpha_term: float
    inside: int


@dataclass(frozen=True)
class LevelRow:
    """A row of weights, and its alpha."""

    alpha: float
    elements: list[LevelElement]


def level_row(w: list[float], kind: LevelKind, alpha: float | None, arithmetic: str) -> LevelRow:
    """Quantize a row (LVL-001)."""
    row = [rounded(x, arithmetic) for x in w]
    start = first_alpha(row, kind, arithmetic) if alpha is None else rounded(alpha, arithmetic)
    used = lower_limit(start, arithmetic)
    return LevelRow(used, [quantize_level(x, used, kind, arithmetic) for x in row])


@step
def rounded(x: float, arithmetic: str) -> float:
    """Return a binary32 number as the arithmetic has it (LVL-001)."""
    return x if arithmetic == "f32" else nearest_in(x, formats[arithmetic])


def in_arithmetic(
    operation: Callable[[float, float], float], a: float, b: float, arithmetic: str
) -> float:
    """Return the result of one operation (LVL-001)."""
    return rounded(operation(a, b), arithmetic)


@step
def first_alpha(row: list[float], kind: LevelKind, arithmetic: str) -> float:
    """Return alpha of a row for which none is given (LVL-002)."""
    magnitudes = [abs(x) for x in row]
    if not magnitudes or any(map(math.isnan, magnitudes)):
        return math.nan
    if kind.divisor:
        return in_arithmetic(quotient, max(magnitudes), float(kind.divisor), arithmetic)
    if any(map(math.isinf, magnitudes)):
        return math.inf
    return rounded(rn32(sum(map(Fraction, magnitudes), Fraction(0)) / len(row)), arithmetic)


@step
def lower_limit(alpha: float, arithmetic: str) -> float:
    """Return alpha, or the smallest one if alpha is not above it (LVL-003)."""
    smallest = rounded(rn32_of_binary64(SMALLEST_ALPHA), arithmetic)
    return max(smallest, alpha)


@step
def limited(x: float, lowest: float, highest: float) -> float:
    """Return a number within limits; NaN and the sign of zero stay."""
    return lowest if x < lowest else min(x, highest)


@step
def nearest_integer(x: float) -> float:
    """Return the nearest integer, ties to even; the sign of zero, infinities and NaN stay."""
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


@step
def clip(kind: LevelKind, arithmetic: str) -> tuple[float, float]:
    """Return the limits of a ratio (LVL-004, LVL-005, LVL-006)."""
    if kind.grid in ("integers", "signs"):
        return kind.lowest, kind.highest
    limit = rounded(rn32_of_binary64(CLIP), arithmetic)
    return -limit, limit


@step
def level_of(w: float, clipped: float, kind: LevelKind, arithmetic: str) -> float:
    """Return the level of a weight (LVL-004, LVL-005, LVL-006)."""
    if kind.grid == "signs":
        return float((w > 0) - (w < 0))
    if kind.grid == "integers":
        return nearest_integer(clipped)
    wide = in_arithmetic(product, clipped, kind.steps, arithmetic)
    whole = nearest_integer(in_arithmetic(difference, wide, kind.shift, arithmetic))
    back = in_arithmetic(total, whole, kind.shift, arithmetic)
    return in_arithmetic(quotient, back, kind.steps, arithmetic)


@step
def term(ratio: float, level: float, kind: LevelKind, arithmetic: str) -> float:
    """Return the factor of a weight in the gradient of alpha (LVL-007)."""
    lowest, highest = clip(kind, arithmetic)
    if kind.grid == "signs":
        return level
    if math.isinf(ratio) or math.isnan(ratio):
        return math.nan
    if ratio < lowest:
        return kind.lowest
    if ratio > highest:
        return kind.highest
    return in_arithmetic(difference, level, ratio, arithmetic)


@step
def is_inside(ratio: float, kind: LevelKind, arithmetic: str) -> int:
    """Return the factor of a weight in its own gradient (LVL-007)."""
    lowest, highest = clip(kind, arithmetic)
    return int(not (ratio < lowest or ratio > highest))


@step
def code_of(level: float, kind: LevelKind) -> int:
    """Return the code of a level (LVL-008)."""
    if kind.grid == "quarters":
        return 2 if math.isnan(level) else int(2 * level + 1.5)
    number = 0 if math.isnan(level) else int(math.copysign(math.ceil(abs(level)), level))
    return number % (1 << kind.bits) if kind.grid == "integers" else number + 1


@step
def quantize_level(w: float, alpha: float, kind: LevelKind, arithmetic: str) -> LevelElement:
    """Quantize a weight (LVL-004 to LVL-008)."""
    ratio = in_arithmetic(quotient, w, alpha, arithmetic)
    clipped = limited(ratio, *clip(kind, arithmetic))
    level = level_of(w, clipped, kind, arithmetic)
    return LevelElement(
        ratio,
        clipped,
        level,
        code_of(level, kind),
        in_arithmetic(product, level, alpha, arithmetic),
        term(ratio, level, kind, arithmetic),
        is_inside(ratio, kind, arithmetic),
    )


@step
def packed_row(codes: list[int], kind: LevelKind) -> bytes:
    """Return the bytes of the codes of a row (LVL-008)."""
    if kind.bits:
        word = sum(code << i * kind.bits for i, code in enumerate(codes))
        return word.to_bytes(-(-len(codes) * kind.bits // 8), "little")
    starts = range(0, len(codes), TERNARY_DIGITS)
    groups = [codes[start : start + TERNARY_DIGITS] for start in starts]
    return bytes(sum(code * 3**i for i, code in enumerate(group)) for group in groups)


def alpha_sum(elements: list[LevelElement], dy: list[float]) -> Fraction:
    """Return the exact sum of a row for the gradient of alpha (LVL-007)."""
    pairs = zip(elements, dy, strict=True)
    return sum((Fraction(e.alpha_term) * Fraction(d) for e, d in pairs), Fraction(0))
