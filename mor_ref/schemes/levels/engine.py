"""The chapter on levels: a loop for all kinds, in binary32 or rounded to bfloat16 on the way."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.engine.strips import STRIP
from mor_ref.engine.widening import widen
from mor_ref.schemes.levels.definition import CLIP, SMALLEST_ALPHA, LevelKind
from mor_ref.schemes.levels.engine_alphas import in_arithmetic, rounded, stored

_U = np.uint32
_I = np.int32
_F = np.float32
_B = np.uint8
_NAN = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_PART = 1 << 18  # numbers of a slice of rows, about


class LevelRule(NamedTuple):
    """The numbers of a kind, as the loop takes them; what a kind lacks is None."""

    integers: Any
    signs: Any
    narrow: Any
    lowest: np.float32
    highest: np.float32
    below: np.float32
    above: np.float32
    steps: np.float32
    shift: np.float32
    first: np.float32  # the code of zero, if codes count from the lowest level
    nan_code: np.float32
    mask: np.uint32


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
def level_of(w, clipped, rule, integers, signs):
    """LVL-004, LVL-005 and LVL-006: the level of a weight."""
    if signs is not None:
        level = _F(_F(w > _F(0)) - _F(w < _F(0)))
    elif integers is not None:
        level = _F(np.rint(clipped))
    else:
        wide = rounded(_F(clipped * rule.steps), rule.narrow)
        whole = _F(np.rint(rounded(_F(wide - rule.shift), rule.narrow)))
        back = rounded(_F(whole + rule.shift), rule.narrow)
        level = rounded(_F(back / rule.steps), rule.narrow)
    return level


@step
def term_of(ratio, level, rule, signs):
    """LVL-007: the factor of a weight in the gradient of alpha."""
    if signs is not None:
        term = level
    else:
        inside = rounded(_F(level - ratio), rule.narrow)
        above = rule.above if ratio > rule.highest else inside
        limited = rule.below if ratio < rule.lowest else above
        is_finite = _U(bits_of(ratio) & _U(0x7FFFFFFF)) < _INFINITY
        term = limited if is_finite else float_of(_NAN)
    return term


@step
def code_of(level, rule, integers):
    """LVL-008: the code of a level; that of NaN is the code of zero, or of the level above it."""
    if integers is not None:
        known = _F(0) if level != level else level
        code = _U(_U(_I(known)) & rule.mask)
    else:
        steps = _F(np.rint(_F(_F(level * rule.steps) + rule.first)))
        code = _U(_I(rule.nan_code if level != level else steps))
    return _B(code)


@step
def quantize_row(w, scale, rule, ratios, clippeds, levels, ys, terms, codes, insides):
    """LVL-004 to LVL-008: weights of a row."""
    use_full_vectors()
    for i in range(w.size):
        x = float_of(widen(w[i], _U))
        ratio = rounded(_F(x / scale), rule.narrow)
        above = rule.highest if ratio > rule.highest else ratio
        clipped = rule.lowest if ratio < rule.lowest else above
        level = level_of(x, clipped, rule, rule.integers, rule.signs)
        ratios[i] = stored(ratio)
        clippeds[i] = stored(clipped)
        levels[i] = stored(level)
        ys[i] = stored(rounded(_F(level * scale), rule.narrow))
        terms[i] = stored(term_of(ratio, level, rule, rule.signs))
        codes[i] = code_of(level, rule, rule.integers)
        insides[i] = _B(1) - _B(ratio < rule.lowest) - _B(ratio > rule.highest)


@kernel
def quantize_rows(words, columns, first, last, alpha, rule, fields):
    """LVL-004 to LVL-008: rows of weights, in strips that stay in the caches."""
    use_full_vectors()
    for row in range(first, last):
        for left in range(row * columns, (row + 1) * columns, STRIP):
            right = min(left + STRIP, (row + 1) * columns)
            quantize_row(
                words[left:right], float_of(alpha[row]), rule, fields.ratio[left:right],
                fields.clipped[left:right], fields.level[left:right], fields.y[left:right],
                fields.alpha_term[left:right], fields.code[left:right], fields.inside[left:right],
            )  # fmt: skip


@kernel
def limited_alphas(alpha, smallest, out):
    """LVL-003: each alpha, or the smallest if it is not above that."""
    for i in range(alpha.size):
        x = float_of(alpha[i])
        out[i] = alpha[i] if x > smallest else bits_of(smallest)


def quantize_levels(
    words: Bits,
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
    rule = LevelRule(
        True if kind.grid == "integers" else None,
        True if kind.grid == "signs" else None,
        True if arithmetic == "bf16" else None,
        -clip if scaled else _F(kind.lowest),
        clip if scaled else _F(kind.highest),
        _F(kind.lowest),
        _F(kind.highest),
        _F(kind.steps),
        _F(kind.shift),
        _F(1.5 if kind.shift else 1),
        _F(2 if kind.shift else 1),
        _U((1 << kind.bits) - 1),
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
