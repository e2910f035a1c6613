"""The chapter on levels: a loop for all kinds, in binary32 or rounded to bfloat16 on the way."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.levels import CLIP, SMALLEST_ALPHA, LevelKind
from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.parallel import for_each, thread_count

_U = np.uint32
_I = np.int32
_F = np.float32
_B = np.uint8
_NAN = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_INTEGERS, _SCALED, _SIGNS = range(3)
_PART = 1 << 18  # numbers of a slice of rows, about
_UNIT = -149  # of the subnormal numbers of binary32


class Rule(NamedTuple):
    """The numbers of a kind, as the loop takes them."""

    grid: np.int32
    lowest: np.float32
    highest: np.float32
    below: np.float32
    above: np.float32
    steps: np.float32
    shift: np.float32
    mask: np.uint32
    narrow: bool


class LevelFields(NamedTuple):
    """The fields of all weights; numbers are binary32 bits."""

    ratio: NDArray[np.uint32]
    clipped: NDArray[np.uint32]
    level: NDArray[np.uint32]
    y: NDArray[np.uint32]
    alpha_term: NDArray[np.uint32]
    code: NDArray[np.uint8]
    inside: NDArray[np.uint8]


@step
def rounded(x, narrow):
    """LVL-001: a binary32 number, rounded to bfloat16 if the arithmetic is narrow."""
    if not narrow or x != x:
        return x
    word = bits_of(x)
    odd = _U(_U(word >> _U(16)) & _U(1))
    return float_of(_U(_U(_U(word + _U(0x7FFF)) + odd) & _U(0xFFFF0000)))


@step
def stored(x):
    """ART-003: the bits of a number; every NaN is the same."""
    return _NAN if x != x else bits_of(x)


@step
def level_of(w, clipped, rule):
    """LVL-004 to LVL-006: the level of a weight."""
    if rule.grid == _SIGNS:
        return _F(1) if w > _F(0) else (_F(-1) if w < _F(0) else _F(0))
    if rule.grid == _INTEGERS:
        return _F(np.rint(clipped))
    wide = rounded(_F(clipped * rule.steps), rule.narrow)
    whole = _F(np.rint(rounded(_F(wide - rule.shift), rule.narrow)))
    back = rounded(_F(whole + rule.shift), rule.narrow)
    return rounded(_F(back / rule.steps), rule.narrow)


@step
def term_of(ratio, level, rule):
    """LVL-007: the factor of a weight in the gradient of alpha."""
    if rule.grid == _SIGNS:
        return level
    if ratio != ratio or _U(bits_of(ratio) & _U(0x7FFFFFFF)) == _INFINITY:
        return float_of(_NAN)
    if ratio < rule.lowest:
        return rule.below
    if ratio > rule.highest:
        return rule.above
    return rounded(_F(level - ratio), rule.narrow)


@step
def code_of(level, rule):
    """LVL-008: the code of a level."""
    is_nan = level != level
    if rule.grid == _INTEGERS:
        return _B(0) if is_nan else _B(_U(_I(level)) & rule.mask)
    if rule.shift != _F(0):
        return _B(2) if is_nan else _B(_F(_F(level * _F(2)) + _F(1.5)))
    return _B(1) if is_nan else _B(_I(1) + _I(level > _F(0)) - _I(level < _F(0)))


@kernel
def quantize_rows(words, columns, first, last, alpha, rule, fields):
    """LVL-004 to LVL-008: rows of weights."""
    for row in range(first, last):
        scale = float_of(alpha[row])
        for i in range(row * columns, (row + 1) * columns):
            w = float_of(words[i])
            ratio = rounded(_F(w / scale), rule.narrow)
            clipped = ratio
            if ratio < rule.lowest:
                clipped = rule.lowest
            elif ratio > rule.highest:
                clipped = rule.highest
            level = level_of(w, clipped, rule)
            fields.ratio[i] = stored(ratio)
            fields.clipped[i] = stored(clipped)
            fields.level[i] = stored(level)
            fields.y[i] = stored(rounded(_F(level * scale), rule.narrow))
            fields.alpha_term[i] = stored(term_of(ratio, level, rule))
            fields.code[i] = code_of(level, rule)
            fields.inside[i] = _B(not (ratio < rule.lowest or ratio > rule.highest))


@kernel
def rounded_array(words, out):
    """LVL-001: binary32 numbers as bfloat16 has them."""
    for i in range(words.size):
        out[i] = stored(rounded(float_of(words[i]), True))


@kernel
def limited_alphas(alpha, smallest, out):
    """LVL-003: each alpha, or the smallest if it is not above that."""
    for i in range(alpha.size):
        x = float_of(alpha[i])
        out[i] = alpha[i] if x > smallest else bits_of(smallest)


@kernel
def largest_of_rows(words, columns, divisor, narrow, out):
    """LVL-002: the largest magnitude of each row, divided; NaN if a number is."""
    for row in range(out.size):
        largest = _U(0)
        for i in range(row * columns, (row + 1) * columns):
            largest = max(largest, _U(words[i] & _U(0x7FFFFFFF)))
        out[row] = stored(rounded(_F(float_of(largest) / divisor), narrow))


def in_arithmetic(words: NDArray[np.uint32], arithmetic: str) -> NDArray[np.uint32]:
    """Return binary32 numbers as the arithmetic has them (LVL-001)."""
    if arithmetic == "f32":
        return words
    out = np.empty(words.size, _U)
    rounded_array(words, out)
    return out


def first_alphas(
    words: NDArray[np.uint32], sides: tuple[int, int], kind: LevelKind, arithmetic: str
) -> NDArray[np.uint32]:
    """Return alpha of each row for which none is given (LVL-002)."""
    rows, columns = sides
    out = np.full(rows, _NAN, _U)
    if columns == 0:
        return out
    if kind.divisor:
        largest_of_rows(words, columns, _F(kind.divisor), arithmetic == "bf16", out)
        return out
    for row, magnitudes in enumerate(words.reshape(rows, columns) & _U(0x7FFFFFFF)):
        out[row] = _mean(magnitudes)
    return in_arithmetic(out, arithmetic)


def _mean(magnitudes: NDArray[np.uint32]) -> int:
    """Return the bits of the mean of magnitudes: the exact one, rounded once."""
    largest = int(magnitudes.max())
    if largest >= _INFINITY:
        return int(_NAN) if largest > _INFINITY else int(_INFINITY)
    field = (magnitudes >> _U(23)).astype(np.int64)
    significand = (magnitudes & _U(0x7FFFFF)).astype(np.int64) | (field > 0).astype(np.int64) << 23
    sums = np.zeros(255, np.int64)
    np.add.at(sums, np.maximum(field, 1), significand)
    exact = sum(int(part) << (e - 1) for e, part in enumerate(sums.tolist()) if part)
    mean = Fraction(exact, magnitudes.size)
    up = max(int(mean).bit_length() - 24, 0)
    whole = round(mean / (1 << up))
    return whole + (up << 23)  # the hidden bit adds one to the exponent


def quantize_levels(
    words: NDArray[np.uint32],
    sides: tuple[int, int],
    kind: LevelKind,
    alpha: NDArray[np.uint32],
    arithmetic: str,
    threads: int | None,
) -> tuple[NDArray[np.uint32], LevelFields]:
    """Return the alphas that are used, and the fields of all weights."""
    rows, columns = sides
    constants = np.array([SMALLEST_ALPHA, CLIP], _F).view(_U)
    smallest, clip = in_arithmetic(constants, arithmetic).view(_F)
    used = np.empty(rows, _U)
    limited_alphas(alpha, smallest, used)
    scaled = kind.grid in ("thirds", "quarters")
    rule = Rule(
        _I(_SCALED if scaled else _SIGNS if kind.grid == "signs" else _INTEGERS),
        -clip if scaled else _F(kind.lowest),
        clip if scaled else _F(kind.highest),
        _F(kind.lowest),
        _F(kind.highest),
        _F(kind.steps),
        _F(kind.shift),
        _U((1 << kind.bits) - 1),
        arithmetic == "bf16",
    )
    size = rows * columns
    fields = LevelFields(
        np.empty(size, _U), np.empty(size, _U), np.empty(size, _U), np.empty(size, _U),
        np.empty(size, _U), np.empty(size, _B), np.empty(size, _B),
    )  # fmt: skip
    height = max(1, _PART // max(columns, 1))

    def work(top: int) -> None:
        quantize_rows(words, columns, top, min(top + height, rows), used, rule, fields)

    for_each(work, range(0, rows, height), thread_count(threads, size))
    return used, fields
