"""The chapter on integers with zero points: one loop over rows for every profile and block.

A step that a profile lacks is None in its rule, so each kind of profile is compiled by itself.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.engine.blocks import Gathered, Part, Sides, for_each_part, row_bounds, words_of
from mor_ref.engine.dequantization import canonical
from mor_ref.engine.errors import add_strip, error_of_any
from mor_ref.engine.intrinsics import bits_of, float_of, fused_product, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP, prefetch_row, spread
from mor_ref.engine.widening import widen
from mor_ref.schemes.affine.definition import AffineProfile
from mor_ref.schemes.affine.engine_blocks import (
    NARROW,
    BlockFields,
    affine_blocks,
    extremes,
    grid_of,
    narrowed,
    rounded_to,
)
from mor_ref.schemes.affine.engine_orders import Dimensions

_U = np.uint32
_I = np.int32
_F = np.float32
_W = np.float64
_LEAST = _I(-(1 << 31))
_TWO_TO_31, _TWO_TO_63 = _F(2.0**31), _F(2.0**63)
_TO_INT64, _TO_INT32, _CAST = _I(1), _I(2), _I(3)
_CONVERSIONS = {"saturate": None, "int64": _TO_INT64, "int32": _TO_INT32, "cast": _CAST}


class UnsaturatedRule(NamedTuple):
    """The choices of a profile that does not saturate, or whose scale is amax."""

    conversion: np.int32
    back: np.float32  # the last factor of y, 0 if scale is not amax
    float_zeros: Any


class AffineRule(NamedTuple):
    """The choices of a profile and a grid, as the loop over numbers takes them."""

    fused: Any
    divides: Any
    adds: Any  # the zero point, before numbers are rounded
    inside: Any  # whether xs has the zero point
    narrow: Any  # the format of operations
    unsaturated: Any
    source: np.int32  # the format of y
    factor: np.float32
    lowest: np.float32
    highest: np.float32
    nan_code: np.float32


class AffineFields(NamedTuple):
    """The fields of all numbers, and those of the blocks."""

    grid: IntegerGrid
    xs: NDArray[np.uint32]
    code: NDArray[Any]
    y: NDArray[np.uint32]
    blocks: BlockFields
    error: NDArray[np.uint64]


# ---------------------------------------------------------------------- numbers


@step
def scaled(x, scale, inverse, zero, rule, fused, divides):
    """AFF-007: xs; the factor is 1 in most profiles."""
    if fused is not None:
        xs = fused_product(x, inverse, zero)
    elif divides is not None:
        xs = _F(rule.factor * narrowed(_F(x / scale), rule.narrow))
    else:
        xs = _F(rule.factor * narrowed(_F(x * inverse), rule.narrow))
    if rule.adds is not None:
        xs = _F(xs + zero)
    return xs


@step
def with_zero(whole, zero, rule, inside):
    """AFF-008: an integer and the zero point, if xs has none."""
    if inside is None:
        sum_with_zero = narrowed(_F(whole + zero), rule.narrow)
    else:
        sum_with_zero = whole
    return sum_with_zero


@step
def within(w, rule):
    """AFF-008: an integer within the grid; NaN stays."""
    above = rule.highest if w > rule.highest else w
    return rule.lowest if above < rule.lowest else above


@step
def in_32_bits(whole, otherwise):
    """AFF-008: a number as int32, or `otherwise` if it does not fit."""
    return _I(whole) if abs(whole) < _TWO_TO_31 else otherwise


@step
def unsaturated_integer(whole, zero, rule, conversion, inside):
    """AFF-008: the code of a rounded number that does not saturate."""
    if conversion == _TO_INT32:
        added = _I(in_32_bits(whole, _LEAST) + _I(zero))
        return min(max(added, _I(rule.lowest)), _I(rule.highest))
    if conversion == _CAST:
        return _I(_I(_I(in_32_bits(whole, _I(0)) + _I(128)) & _I(255)) - _I(128))
    w = with_zero(whole, zero, rule, inside)
    return _I(within(w, rule)) if w < _TWO_TO_63 else _I(rule.lowest)


@step
def integer(whole, zero, rule, unsaturated, inside):
    """AFF-008: the code of a rounded number."""
    if unsaturated is None:
        w = within(with_zero(whole, zero, rule, inside), rule)
        code = _I(rule.nan_code if w != w else w)
    else:
        code = unsaturated_integer(whole, zero, rule, unsaturated.conversion, inside)
    return code


@step
def unsaturated_y(code, scale, zero, y, unsaturated, float_zeros):
    """AFF-009 and AFF-012: y of a profile that does not saturate."""
    if float_zeros is None:
        restored_y = _F(_F(scale * _F(code)) * unsaturated.back) if unsaturated.back != _F(0) else y
    else:
        restored_y = _F(_W(_W(_W(code) - _W(zero)) * _W(scale)))
    return restored_y


@step
def restored(code, scale, zero, rule, unsaturated):
    """AFF-009: y before it is rounded to the dtype of x."""
    q = narrowed(_F(code), rule.narrow)
    y = narrowed(_F(narrowed(_F(q - zero), rule.narrow) * scale), rule.narrow)
    if unsaturated is None:
        y_before_rounding = y
    else:
        y_before_rounding = unsaturated_y(
            code, scale, zero, y, unsaturated, unsaturated.float_zeros
        )
    return y_before_rounding


@step
def quantize_row(x, scale, inverse, zero, rule, xs, code, y):
    """AFF-007 to AFF-009 for one row of a strip, with the fields of each column."""
    use_full_vectors()
    for i in range(x.size):
        number = float_of(widen(x[i], _U))
        number = scaled(number, scale[i], inverse[i], zero[i], rule, rule.fused, rule.divides)
        xs[i] = canonical(number)
        q = integer(_F(np.rint(number)), zero[i], rule, rule.unsaturated, rule.inside)
        code[i] = q
        y[i] = canonical(restored(q, scale[i], zero[i], rule, rule.unsaturated))


@step
def round_row(y, source):
    """AFF-009: y, rounded to the dtype of x."""
    for i in range(y.size):
        y[i] = bits_of(rounded_to(float_of(y[i]), source))


@step
def measure_row(x, y, sums, counts):
    """ERR-001 to ERR-003 for one row of a strip."""
    use_full_vectors()
    for i in range(x.size):
        u, count = error_of_any(_U(widen(x[i], _U)), y[i])
        sums[i] = _U(sums[i] + u)
        counts[i] = _U(counts[i] + count)


@kernel
def integers_of_part(x, place, part, bounds, columns, block, factors, rule, xs, code, y, errors):
    """AFF-001: the fields of the numbers of a part, and the error sums of its blocks."""
    use_full_vectors()
    sums, counts = np.empty(STRIP, _U), np.empty(STRIP, _U)
    scale, inverse, zero = np.empty(STRIP, _F), np.empty(STRIP, _F), np.empty(STRIP, _F)
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        width = right - left
        for k in range(bounds.size - 1):
            sums[:width] = 0
            counts[:width] = 0
            spread(factors[0], bounds[k], left, right, block, scale)
            spread(factors[1], bounds[k], left, right, block, inverse)
            spread(factors[2], bounds[k], left, right, block, zero)
            for row in range(bounds[k], bounds[k + 1]):
                start = (row - place.top) * place.stride + left - place.left
                first, end = row * columns + left, row * columns + right
                prefetch_row(x, start + place.stride, width)
                numbers, back = x[start : start + width], y[first:end]
                quantize_row(
                    numbers, scale, inverse, zero, rule, xs[first:end], code[first:end], back
                )
                if rule.source != _I(0):
                    round_row(back, rule.source)
                measure_row(numbers, back, sums, counts)
            block_errors = errors[bounds[k] // block.rows - part.top // block.rows]
            add_strip(sums, counts, block_errors, part, left, right, block)


# ---------------------------------------------------------------------- whole tensors


def rule_of(profile: AffineProfile, grid: IntegerGrid, source: str) -> AffineRule:
    """Return the choices of a profile and a grid for numbers (AFF-007 to AFF-009)."""
    codes = {"lowest": grid.lowest, "highest": grid.highest, "zero": 0}
    conversion = _CONVERSIONS[profile.conversion]
    back = _F(1) / _F(127) if profile.stores_amax else _F(0)
    return AffineRule(
        True if profile.application == "fuse" else None,
        True if profile.application == "divide" else None,
        True if profile.adds_first else None,
        True if profile.zero_in_xs else None,
        NARROW.get(source) if profile.in_own_dtype else None,
        None
        if conversion is None
        else UnsaturatedRule(conversion, back, profile.float_zeros or None),
        NARROW.get(source, _I(0)),
        _F(profile.factor),
        _F(grid.lowest),
        _F(grid.highest),
        _F(codes[profile.nan_code]),
    )


def quantize_affine(
    numbers: Numbers,
    cut: Partition,
    profile: AffineProfile,
    grid: IntegerGrid,
    symmetric: bool,
    source: str,
    scales: NDArray[np.uint32] | None,
    zeros: NDArray[np.int32] | NDArray[np.float32] | None,
    threads: int | None,
    dimensions: Dimensions | None = None,
) -> AffineFields:
    """Quantize a tensor (AFF-001); zero points of binary32 are given ones (AFF-012).

    With `dimensions`, the blocks are groups of these (AFF-010).
    """
    ends = extremes(numbers, cut, threads) if dimensions is None else dimensions.ends_of(cut)
    if symmetric and profile.sign_by_numbers:
        grid = grid_of(grid, *ends)
    narrow = source if profile.in_own_dtype else "f32"
    blocks = affine_blocks(ends, profile, grid, symmetric, narrow, scales, zeros)
    factors = tuple(a.reshape(cut.grid) for a in (blocks.scale, blocks.inverse_scale, blocks.zero))
    parts = cut
    if dimensions is not None:
        factors = tuple(dimensions.per_dimension(a, cut) for a in factors)
        parts = dimensions.columns
    xs, y = np.empty(numbers.bits.size, _U), np.empty(numbers.bits.size, _U)
    code = np.empty(numbers.bits.size, grid.dtype)
    words_of_codes = code.view(f"u{code.itemsize}")
    errors = Gathered(parts, np.uint64, 0, np.add, 3)
    block, number_rule = Sides(*parts.block), rule_of(profile, grid, source)

    def quantize_one(part: Part) -> None:
        words, bounds = words_of(numbers, cut.columns, part), row_bounds(part, cut.block[0])
        errors_of_part = errors.room_for(part)
        sides = part, bounds, cut.columns, block
        integers_of_part(
            *words, *sides, factors, number_rule, xs, words_of_codes, y, errors_of_part
        )
        errors.add(part, errors_of_part)

    for_each_part(quantize_one, cut.rows, cut.columns, threads)
    sums = errors.blocks if dimensions is None else dimensions.sums_of(errors.blocks, cut)
    return AffineFields(grid, xs, code, y, blocks, sums)
