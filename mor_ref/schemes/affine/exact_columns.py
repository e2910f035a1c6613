"""Integers with zero points, many numbers at a time: the blocks one by one, their numbers at once.

The fields of a block are those of `mor_ref.schemes.affine.exact`. So are the codes of the profiles
that convert integers in another way than to clamp them.
"""

import math
from collections.abc import Iterable, MutableSequence, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import nearest_in
from mor_ref.exact.block_formats import InBlocks
from mor_ref.exact.columns import Column, differences, products, quotients, totals
from mor_ref.exact.error_columns import error_sums
from mor_ref.exact.errors import ErrorSum
from mor_ref.schemes.affine.exact import (
    A_127TH,
    AffineBlock,
    Choices,
    ScaleAndZero,
    affine_block,
    extremes,
    fused,
    grid_of,
    integer,
)

Numbers = MutableSequence[float]


@dataclass(frozen=True)
class AffineColumns:
    """The elements of a tensor, row by row, and the fields and the error sums of each block."""

    xs: Sequence[float]
    codes: Sequence[int]
    y: Sequence[float]
    blocks: list[AffineBlock]
    error: list[ErrorSum]


@dataclass(frozen=True)
class _Factors:
    """The scale, the inverse scale and the zero point of the block of each number."""

    scale: Column
    inverse: Column
    zero: Column


def affine(x: Sequence[float], choices: Choices, parts: Partition) -> AffineColumns:
    """Quantize a tensor, whose numbers are given row by row (AFF-001)."""
    order = InBlocks(parts)
    numbers = order.taken(x)
    ends = [extremes(block) for block in order.blocks(numbers)]
    used = replace(choices, grid=grid_of(ends, choices))
    blocks = [affine_block(*pair, used, ScaleAndZero()) for pair in ends]
    factors = _Factors(
        order.spread(block.scale for block in blocks),
        order.spread(block.inverse_scale for block in blocks),
        order.spread(block.zero_point for block in blocks),
    )
    xs = _scaled(numbers, factors, used)
    codes = _integers(xs, factors, used)
    y = _restored(codes, factors, used)
    errors = error_sums(numbers, y, order)
    return AffineColumns(
        order.put_back(xs), order.put_back(codes), order.put_back(y), blocks, errors
    )


def _rounded(numbers: Numbers, arithmetic: str) -> Numbers:
    """Return binary32 numbers, rounded to the format of an arithmetic (AFF-002)."""
    return numbers if arithmetic == "f32" else _nearest(numbers, arithmetic)


def _nearest(numbers: Iterable[float], name: str) -> list[float]:
    return list(map(nearest_in, numbers, repeat(formats[name])))


def _scaled(x: Column, factors: _Factors, choices: Choices) -> Numbers:
    """Return xs, the numbers that are rounded to integers (AFF-007)."""
    profile, arithmetic = choices.profile, choices.arithmetic
    if profile.application == "fuse":
        return list(map(fused, x, factors.inverse, map(float, factors.zero)))
    if profile.application == "divide":
        xs = _rounded(quotients(x, factors.scale), arithmetic)
    else:
        xs = _rounded(products(x, factors.inverse), arithmetic)
    if profile.adds_first:
        return _rounded(totals(xs, factors.zero), arithmetic)
    if profile.factor > 1:
        return _rounded(products([float(profile.factor)] * len(xs), xs), arithmetic)
    return xs


def _integers(xs: Column, factors: _Factors, choices: Choices) -> list[int]:
    """Return the codes of xs (AFF-008)."""
    profile, grid, arithmetic = choices.profile, choices.grid, choices.arithmetic
    if profile.conversion != "saturate":
        return list(map(integer, xs, map(float, factors.zero), repeat(choices)))
    whole: Numbers = [float(round(v)) if math.isfinite(v) else v for v in xs]
    if not profile.zero_in_xs:
        whole = _rounded(totals(whole, _zeros(factors, arithmetic)), arithmetic)
    codes = {"lowest": grid.lowest, "highest": grid.highest, "zero": 0}
    of_nan, low, high = codes[profile.nan_code], grid.lowest, grid.highest
    return [of_nan if math.isnan(v) else int(min(max(v, low), high)) for v in whole]


def _zeros(factors: _Factors, arithmetic: str) -> Numbers:
    """Return the zero points as numbers of an arithmetic (AFF-008, AFF-009)."""
    return _rounded(list(map(float, factors.zero)), arithmetic)


def _restored(codes: list[int], factors: _Factors, choices: Choices) -> Numbers:
    """Return y, the numbers that codes stand for, in the format of x (AFF-009)."""
    arithmetic, whole = choices.arithmetic, list(map(float, codes))
    if choices.profile.stores_amax:
        y: Numbers = products(products(factors.scale, whole), [A_127TH] * len(whole))
    else:
        zeros = _zeros(factors, arithmetic)
        steps = _rounded(differences(_rounded(whole, arithmetic), zeros), arithmetic)
        y = _rounded(products(steps, factors.scale), arithmetic)
    return _rounded(y, choices.source)
