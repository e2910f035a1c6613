"""Zero points, dtypes and groups of integers that differ."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.exact.arithmetic import product, quotient, total
from mor_ref.schemes.affine import exact as affine
from mor_ref.schemes.affine import exact_groups as affine_groups
from mor_ref.schemes.affine.definition import SMALLEST_NORMAL
from mor_ref.schemes.affine.deviations import how_among
from mor_ref.schemes.affine.deviations_blocks import has_zero_points
from mor_ref.schemes.affine.domain import AFFINE_BLOCKS, FLOAT_ZEROS
from mor_ref.schemes.affine.exact import Choices

Reference = Callable[..., Any]


def _is_in_own_dtype(*arguments: Any) -> bool:
    return how_among(arguments).arithmetic != "f32"


# ---------------------------------------------------------------------- zero points


@deviation(
    affine.zero_before_rounding, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS
)
def affine_zero_point_by_a_reciprocal(
    reference: Reference, low: float, scale: float, how: Choices
) -> float:
    """The minimum is multiplied by the rounded reciprocal of the scale, not divided by it."""
    share = affine.operate(quotient, 1.0, scale, how.arithmetic)
    if not math.isfinite(share) or not math.isfinite(low):
        return float(reference(low, scale, how))
    return affine.operate(product, low, share, how.arithmetic)


@deviation(affine.zero_point, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_zero_point_truncated(reference: Reference, zero_float: float, how: Choices) -> int:
    """A zero point is cut to an integer, not rounded."""
    return int(reference(math.floor(zero_float) if math.isfinite(zero_float) else zero_float, how))


@deviation(affine.zero_point, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_zero_point_ties_away(reference: Reference, zero_float: float, how: Choices) -> int:
    """A zero point at a tie goes up, as in roundf."""
    is_number = math.isfinite(zero_float) and zero_float < 1 << 20
    return int(reference(math.floor(zero_float + 0.5) if is_number else zero_float, how))


@deviation(affine.zero_point, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_zero_point_rounded_after_the_sum(
    reference: Reference, zero_float: float, how: Choices
) -> int:
    """The lowest integer is added to a zero point before it is rounded."""
    if not math.isfinite(zero_float):
        return int(reference(zero_float, how))
    grid = how.grid
    found = affine.rint(affine.operate(total, float(grid.lowest), zero_float, how.arithmetic))
    return int(min(max(found, grid.lowest), grid.highest))


@deviation(affine.zero_point, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_zero_point_of_nan_is_lowest(
    reference: Reference, zero_float: float, how: Choices
) -> int:
    """The zero point of NaN is the lowest integer."""
    return how.grid.lowest if math.isnan(zero_float) else int(reference(zero_float, how))


@deviation(affine.zero_point, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_zero_point_not_limited(reference: Reference, zero_float: float, how: Choices) -> int:
    """A zero point is not limited to the grid."""
    if not math.isfinite(zero_float):
        return int(reference(zero_float, how))
    return int(
        affine.operate(total, float(how.grid.lowest), float(round(zero_float)), how.arithmetic)
    )


@deviation(affine.zero_point, where=has_zero_points, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_zero_point_without_the_lowest(
    reference: Reference, zero_float: float, how: Choices
) -> int:
    """The zero point counts from 0 in signed grids, too."""
    if not math.isfinite(zero_float):
        return int(reference(zero_float, how))
    return min(int(affine.rint(zero_float)), how.grid.highest)


def _has_no_middle(*arguments: Any) -> bool:
    how = how_among(arguments)
    return how.symmetric and not how.grid.signed and how.grid.bits in how.profile.low_middle


def _has_a_middle(*arguments: Any) -> bool:
    how = how_among(arguments)
    return how.symmetric and not (how.grid.signed or how.profile.sign_by_numbers)


@deviation(affine.zero_point, where=_has_no_middle, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_middle_rounded_up(reference: Reference, zero_float: float, how: Choices) -> int:
    """The zero point of a symmetric uint4 of torch is 8, as in torchao, and not 7."""
    return int(reference(zero_float, how)) + 1


@deviation(affine.zero_point, where=_has_a_middle, rules=("AFF-005",), domain=AFFINE_BLOCKS)
def affine_unsigned_without_a_middle(reference: Reference, zero_float: float, how: Choices) -> int:
    """A symmetric unsigned grid has the zero point 0."""
    del reference, zero_float, how
    return 0


def _has_early_zeros(*arguments: Any) -> bool:
    how = how_among(arguments)
    return how.profile.early_zero and not how.symmetric


@deviation(
    affine.affine_block, where=_has_early_zeros, rules=("AFF-005",), domain=AFFINE_BLOCKS
)  # fmt: skip
def affine_zero_point_of_the_limited_scale(
    reference: Reference, minimum: float, maximum: float, how: Choices, given: Any
) -> Any:
    """The zero point of PEG follows from the scale after its limit."""
    late = replace(how, profile=replace(how.profile, early_zero=False))
    return reference(minimum, maximum, late, given)


def _picks_the_sign(*arguments: Any) -> bool:
    how = how_among(arguments)
    return how.profile.sign_by_numbers and how.symmetric


@deviation(
    affine.grid_of,
    where=_picks_the_sign,
    rules=("AFF-005",),
    domain=AFFINE_BLOCKS,
    exemptions={
        "affine_large": "Every tensor of more than 64 numbers (VEC-009) has negative ones."
    },
)
def affine_peg_always_signed(
    reference: Reference, ends: list[tuple[float, float]], how: Choices
) -> IntegerGrid:
    """A symmetric grid of PEG has a sign, also if no number is negative."""
    del reference, ends
    return IntegerGrid(f"int{how.grid.bits}", how.grid.bits, signed=True)


def _has_float_zeros(*arguments: Any) -> bool:
    return how_among(arguments).profile.float_zeros


@deviation(affine.affine_element, where=_has_float_zeros, rules=("AFF-012",), domain=FLOAT_ZEROS)
def affine_float_zero_point_rounded(
    reference: Reference, x: float, block: Any, how: Choices
) -> Any:
    """A zero point that is not an integer is rounded to one."""
    return reference(x, replace(block, zero_point=affine.rint(block.zero_point)), how)


@deviation(affine.restored, where=_has_float_zeros, rules=("AFF-012",), domain=FLOAT_ZEROS)
def affine_float_zero_point_back_in_binary32(
    reference: Reference, code: int, block: Any, how: Choices
) -> float:
    """The way back from a zero point that is not an integer is computed in binary32."""
    narrow = replace(how, profile=replace(how.profile, float_zeros=False))
    return float(reference(code, block, narrow))


# ---------------------------------------------------------------------- dtypes


def _in_binary32() -> Deviation:
    """Return the deviation that computes in binary32 instead of the dtype of x."""

    def swapped(reference: Reference, *arguments: Any) -> Any:
        how = how_among(arguments)
        wide = replace(how, profile=replace(how.profile, in_own_dtype=False))
        wide = wide if how.profile.smallest is not None else replace(
            wide, profile=replace(wide.profile, smallest=SMALLEST_NORMAL[how.source])
        )  # fmt: skip
        return reference(*(wide if one is how else one for one in arguments))

    steps = (affine.affine_block, affine.inverse, affine.affine_element)
    return Deviation(
        "affine_operations_in_binary32",
        "Operations of torchao are of binary32 in bfloat16 and binary16, too; y alone is rounded.",
        ("AFF-002",),
        AFFINE_BLOCKS,
        tuple(Change(step, swapped, _is_in_own_dtype) for step in steps),
    )


def _is_narrow(*arguments: Any) -> bool:
    return how_among(arguments).source != "f32" and not _is_in_own_dtype(*arguments)


@deviation(affine.restored, where=_is_narrow, rules=("AFF-009",), domain=AFFINE_BLOCKS)
def affine_y_in_binary32(reference: Reference, code: int, block: Any, how: Choices) -> float:
    """Y is not rounded to the dtype of x."""
    return float(reference(code, block, replace(how, source="f32")))


# ---------------------------------------------------------------------- groups

_GROUPS = ("affine_groups",)


@deviation(affine_groups.ranges, rules=("AFF-010",), domain=_GROUPS)
def affine_ranges_are_amaxes(reference: Reference, columns: list[list[float]]) -> list[float]:
    """Dimensions are sorted by their largest magnitude, not by maximum - minimum."""
    found = reference(columns)
    amaxes = [max(map(abs, numbers)) for numbers in columns]
    return [r if math.isnan(r) else a for r, a in zip(found, amaxes, strict=True)]


@deviation(affine_groups.by_range, rules=("AFF-010",), domain=_GROUPS)
def affine_ranges_descending(reference: Reference, found: list[float]) -> list[int]:
    """The dimension of the largest range comes first."""
    order = reference(found)
    lost = [i for i in order if math.isnan(found[i])]
    return sorted(set(order) - set(lost), key=lambda i: (-found[i], i)) + lost


@deviation(affine_groups.by_range, rules=("AFF-010",), domain=_GROUPS)
def affine_ranges_of_ties_reversed(reference: Reference, found: list[float]) -> list[int]:
    """Dimensions of equal range come in reverse order."""
    last = len(found) - 1
    order = reference(found[::-1])
    return [last - i for i in order]


@deviation(affine_groups.by_range, rules=("AFF-010",), domain=_GROUPS)
def affine_ranges_of_nan_first(reference: Reference, found: list[float]) -> list[int]:
    """A dimension whose range is NaN comes first."""
    order = reference(found)
    lost = [i for i in order if math.isnan(found[i])]
    return lost + [i for i in order if i not in lost]


@deviation(affine_groups.by_range, rules=("AFF-010",), domain=_GROUPS)
def affine_dimensions_not_permuted(reference: Reference, found: list[float]) -> list[int]:
    """Groups have neighbouring dimensions, as without a permutation."""
    del reference
    return [*range(len(found))]


@deviation(affine_groups.by_range, rules=("AFF-010",), domain=_GROUPS)
def affine_permutation_inverted(reference: Reference, found: list[float]) -> list[int]:
    """The permutation lists the place of each dimension, not the dimension of each place."""
    order = reference(found)
    return [order.index(j) for j in range(len(order))]


DEVIATIONS = (
    _in_binary32(),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
