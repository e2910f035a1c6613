"""Levels that differ: the paper's, other alphas, other roundings, other terms and codes."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.exact.arithmetic import product, quotient, rn32, rn32_of_binary64, total
from mor_ref.schemes.levels import exact as levels
from mor_ref.schemes.levels.definition import SMALLEST_ALPHA, LevelKind
from mor_ref.schemes.levels.domain import IN_LEVELS, LEVELS
from mor_ref.schemes.levels.exact import rounded

Reference = Callable[..., Any]


def _of(*grids: str) -> Callable[..., bool]:
    """Return a function that says whether one of its arguments is a kind of these grids."""

    def is_one(*arguments: Any) -> bool:
        return any(isinstance(one, LevelKind) and one.grid in grids for one in arguments)

    return is_one


def _is_narrow(*arguments: Any) -> bool:
    return bool(arguments[-1] == "bf16")


_SEQ = _of("quarters", "thirds")

# ---------------------------------------------------------------------- arithmetic


@deviation(rounded, where=_is_narrow, rules=("LVL-001",), domain=IN_LEVELS)
def levels_in_binary32(reference: Reference, x: float, arithmetic: str) -> float:
    """All operations are in binary32, even if bfloat16 is asked for."""
    del reference, arithmetic
    return x


def _is_wide(*arguments: Any) -> bool:
    return bool(arguments[-1] == "f32")


@deviation(levels.lower_limit, where=_is_wide, rules=("LVL-003",), domain=IN_LEVELS)
def levels_alpha_in_bf16(reference: Reference, alpha: float, arithmetic: str) -> float:
    """Alpha is stored in bfloat16, even if binary32 is asked for."""
    return rounded(float(reference(alpha, arithmetic)), "bf16")


@deviation(rounded, where=_is_narrow, rules=("LVL-001",), domain=IN_LEVELS)
def levels_cut_to_bf16(reference: Reference, x: float, arithmetic: str) -> float:
    """Results are cut to bfloat16, not rounded."""
    near = float(reference(x, arithmetic))
    if not math.isfinite(x) or abs(near) <= abs(x):
        return near
    steps = 8 - math.frexp(x)[1] if abs(x) >= 2.0**-126 else 133
    return math.ldexp(math.trunc(math.ldexp(x, steps)), -steps)


# ---------------------------------------------------------------------- alphas


def _first_alpha(name: str, summary: str, divisor: Callable[[LevelKind], float]) -> Deviation:
    """Return the deviation that divides max|w| by another number in lsq4 and lsq3."""

    def divided(reference: Reference, row: list[float], kind: LevelKind, arithmetic: str) -> float:
        found = float(reference(row, kind, arithmetic))
        if math.isnan(found):
            return found
        top = max(abs(x) for x in row)
        return rounded(quotient(top, divisor(kind)), arithmetic)

    change = Change(levels.first_alpha, divided, _of("integers"))
    return Deviation(name, summary, ("LVL-002",), LEVELS, (change,))


@deviation(levels.first_alpha, where=_of("integers"), rules=("LVL-002",), domain=LEVELS)
def levels_alpha_by_a_reciprocal(
    reference: Reference, row: list[float], kind: LevelKind, arithmetic: str
) -> float:
    """Max|w| is multiplied by the rounded reciprocal of 7 or 3."""
    found = float(reference(row, kind, arithmetic))
    if not math.isfinite(found):
        return found
    share = rounded(quotient(1.0, float(kind.divisor)), arithmetic)
    return rounded(product(max(abs(x) for x in row), share), arithmetic)


@deviation(
    levels.first_alpha,
    where=_of("integers", "quarters", "thirds"),
    rules=("LVL-002",),
    domain=LEVELS,
)
def levels_alpha_of_the_maximum(
    reference: Reference, row: list[float], kind: LevelKind, arithmetic: str
) -> float:
    """Alpha follows from the maximum of a row, not from its largest magnitude."""
    if any(map(math.isnan, row)):
        return float(reference(row, kind, arithmetic))
    return rounded(quotient(max(row), float(kind.divisor)), arithmetic)


@deviation(levels.first_alpha, where=_of("signs"), rules=("LVL-002",), domain=LEVELS)
def levels_mean_in_floating_point(
    reference: Reference, row: list[float], kind: LevelKind, arithmetic: str
) -> float:
    """The mean of magnitudes is a sum in binary32, from the left, divided."""
    found = float(reference(row, kind, arithmetic))
    if not math.isfinite(found):
        return found
    total = 0.0
    for x in row:
        total = rn32(Fraction(total) + Fraction(abs(x)))
        if math.isinf(total):
            break
    return rounded(quotient(total, float(len(row))), arithmetic)


@deviation(levels.first_alpha, where=_of("signs"), rules=("LVL-002",), domain=LEVELS)
def levels_maximum_for_one_bit(
    reference: Reference, row: list[float], kind: LevelKind, arithmetic: str
) -> float:
    """Alpha of one bit is max|w|, not the mean."""
    found = float(reference(row, kind, arithmetic))
    return max(abs(x) for x in row) if math.isfinite(found) else found


@deviation(levels.first_alpha, rules=("LVL-002",), domain=LEVELS)
def levels_alpha_skips_nan(
    reference: Reference, row: list[float], kind: LevelKind, arithmetic: str
) -> float:
    """A NaN does not count in the alpha of its row."""
    return float(reference([x for x in row if not math.isnan(x)], kind, arithmetic))


@deviation(levels.lower_limit, rules=("LVL-003",), domain=IN_LEVELS)
def levels_nan_alpha_stays(reference: Reference, alpha: float, arithmetic: str) -> float:
    """A NaN alpha is not replaced, as a maximum of torch keeps it."""
    return alpha if math.isnan(alpha) else float(reference(alpha, arithmetic))


@deviation(levels.lower_limit, rules=("LVL-003",), domain=IN_LEVELS)
def levels_alpha_not_limited(reference: Reference, alpha: float, arithmetic: str) -> float:
    """Alpha has no smallest value."""
    return float(reference(alpha, arithmetic)) if math.isnan(alpha) else alpha


@deviation(levels.lower_limit, rules=("LVL-003",), domain=IN_LEVELS)
def levels_epsilon_added(reference: Reference, alpha: float, arithmetic: str) -> float:
    """10^-5 is added to alpha, and nothing is limited."""
    if not alpha > 0 or math.isinf(alpha):
        return float(reference(alpha, arithmetic))
    return rounded(rn32(Fraction(alpha) + Fraction(rn32_of_binary64(SMALLEST_ALPHA))), arithmetic)


# ---------------------------------------------------------------------- levels


@deviation(levels.clip, where=_SEQ, rules=("LVL-005",), domain=IN_LEVELS)
def levels_clipped_at_one(*_: Any) -> tuple[float, float]:
    """Ratios of seq2 and seq1.58 are limited to 1, as in the paper, not to 0.99."""
    return -1.0, 1.0


@deviation(levels.clip, where=_of("integers"), rules=("LVL-004",), domain=IN_LEVELS)
def levels_symmetric(reference: Reference, kind: LevelKind, arithmetic: str) -> tuple[float, float]:
    """The lowest integer is -(2^(b - 1) - 1)."""
    _, highest = reference(kind, arithmetic)
    return -float(highest), float(highest)


@deviation(levels.nearest_integer, rules=("LVL-004", "LVL-005"), domain=IN_LEVELS)
def levels_ties_away(reference: Reference, x: float) -> float:
    """Ties go away from zero."""
    if not math.isfinite(x):
        return float(reference(x))
    return math.copysign(float(math.floor(Fraction(abs(x)) + Fraction(1, 2))), x)


@deviation(levels.nearest_integer, rules=("LVL-004", "LVL-005"), domain=IN_LEVELS)
def levels_half_added(reference: Reference, x: float) -> float:
    """The integer is floor(|x| + 1/2) in binary32: 1 also for the number below 1/2."""
    if not math.isfinite(x):
        return float(reference(x))
    return math.copysign(math.floor(total(abs(x), 0.5)), x)


@deviation(levels.nearest_integer, rules=("LVL-004", "LVL-005"), domain=IN_LEVELS)
def levels_truncate(reference: Reference, x: float) -> float:
    """A cast to an integer cuts the digits behind the point."""
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else float(reference(x))


@deviation(levels.level_of, where=_of("signs"), rules=("LVL-006",), domain=IN_LEVELS)
def levels_two_for_one_bit(
    reference: Reference, w: float, clipped: float, kind: LevelKind, arithmetic: str
) -> float:
    """One bit has two levels, as in the paper: the level of 0 is 1."""
    return 1.0 if w == 0 else float(reference(w, clipped, kind, arithmetic))


@deviation(levels.level_of, where=_of("signs"), rules=("LVL-006",), domain=IN_LEVELS)
def levels_nan_for_one_bit(
    reference: Reference, w: float, clipped: float, kind: LevelKind, arithmetic: str
) -> float:
    """The level of NaN is NaN for one bit, too."""
    return w if math.isnan(w) else float(reference(w, clipped, kind, arithmetic))


@deviation(levels.level_of, where=_of("thirds"), rules=("LVL-005",), domain=IN_LEVELS)
def levels_ternary_of_one(
    reference: Reference, w: float, clipped: float, kind: LevelKind, arithmetic: str
) -> float:
    """The ternary levels are -1, 0 and 1."""
    found = float(reference(w, clipped, kind, arithmetic))
    return math.copysign(math.ceil(abs(found)), found) if math.isfinite(found) else found


@deviation(levels.level_of, where=_of("quarters"), rules=("LVL-005",), domain=IN_LEVELS)
def levels_without_the_shift(
    reference: Reference, w: float, clipped: float, kind: LevelKind, arithmetic: str
) -> float:
    """seq2 rounds to halves, with a zero: -1, -1/2, 0 and 1/2."""
    if math.isnan(clipped):
        return float(reference(w, clipped, kind, arithmetic))
    return min(levels.nearest_integer(2 * clipped), 1.0) / 2


# ---------------------------------------------------------------------- gradients and codes


@deviation(levels.term, where=_SEQ, rules=("LVL-007",), domain=IN_LEVELS)
def levels_term_is_the_level(
    reference: Reference, ratio: float, level: float, kind: LevelKind, arithmetic: str
) -> float:
    """Outside, the factor in the gradient of alpha is the level: 2/3, not 1, in seq1.58."""
    found = float(reference(ratio, level, kind, arithmetic))
    lowest, highest = levels.clip(kind, arithmetic)
    return level if math.isfinite(ratio) and not lowest <= ratio <= highest else found


@deviation(levels.term, rules=("LVL-007",), domain=IN_LEVELS)
def levels_term_of_infinities(
    reference: Reference, ratio: float, level: float, kind: LevelKind, arithmetic: str
) -> float:
    """For an infinite ratio, the factor in the gradient of alpha is a limit, not NaN."""
    if not math.isinf(ratio) or kind.grid == "signs":
        return float(reference(ratio, level, kind, arithmetic))
    return kind.lowest if ratio < 0 else kind.highest


@deviation(levels.is_inside, rules=("LVL-007",), domain=IN_LEVELS)
def levels_nan_is_outside(
    reference: Reference, ratio: float, kind: LevelKind, arithmetic: str
) -> int:
    """A NaN has no gradient, as low <= ratio <= high is false."""
    return 0 if math.isnan(ratio) else int(reference(ratio, kind, arithmetic))


@deviation(levels.code_of, where=_of("integers"), rules=("LVL-008",), domain=IN_LEVELS)
def levels_codes_from_the_lowest(reference: Reference, level: float, kind: LevelKind) -> int:
    """The codes of lsq4 and lsq3 count from the lowest level."""
    return int(reference(level, kind)) ^ 1 << (kind.bits - 1)


@deviation(levels.code_of, where=_of("thirds", "signs"), rules=("LVL-008",), domain=IN_LEVELS)
def levels_codes_of_zero_first(reference: Reference, level: float, kind: LevelKind) -> int:
    """Three values have the codes 2, 0 and 1: zero has 0."""
    return (int(reference(level, kind)) + 2) % 3


DEVIATIONS = (
    _first_alpha(
        "levels_alpha_by_2_to_the_b",
        "Max|w| is divided by 2^(b - 1), not by one less.",
        lambda kind: -kind.lowest,
    ),
    _first_alpha(
        "levels_alpha_by_half_the_range",
        "Max|w| is divided by half of 2^b - 1, as torch's observers have it.",
        lambda kind: (kind.highest - kind.lowest) / 2,
    ),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
