"""The bits that a tensor takes under a recipe: codes, scales and decisions."""

from collections.abc import Mapping

from mor_ref.definitions.blocks import Cut, partition, rows_and_columns
from mor_ref.definitions.formats import formats
from mor_ref.definitions.levels import TERNARY_DIGITS
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import Scaling
from mor_ref.definitions.shared import BLOCK, PAIR
from mor_ref.policies import Policy
from mor_ref.representations import (
    AffineBlocks,
    LevelRows,
    MixedFormats,
    MxBlocks,
    Nvfp4Tiles,
    Representation,
    ScaledFormat,
    SharedBlocks,
)

_OF_A_SCALE: Mapping[Scaling, int] = {"gam": 8, "e8m0": 8, "fp32": 32}
_MANTISSA = 23  # bits of a gam group's
_OF_AN_E8M0 = _OF_AN_E4M3 = _OF_AN_EXPONENT = 8
_GLOBAL = 32  # bits of the global scale of NVFP4


def stored_bits(
    policy: Policy | None,
    taken: Mapping[str, int],
    units: int,
    shape: tuple[int, ...],
    cut: Cut,
    scaling: Scaling,
) -> int:
    """Return the bits of a tensor whose numbers took these representations (ERR-009).

    `units` is the number of decisions; 0 if nothing is decided.
    """
    total = sum(taken.values())
    found = formats["bf16"].bits * taken.get("bf16", 0)
    if policy is None or not total:
        return found
    for rung in policy.ladder:
        count = taken[rung.name]
        found += _code_bits(rung.representation, shape, count, total)
        if count:
            scales = _scale_bits(rung.representation, shape, cut, policy.group, scaling)
            found += -(-scales * count // total)
    return found + units * len(policy.ladder).bit_length()


def _code_bits(one: Representation, shape: tuple[int, ...], count: int, total: int) -> int:
    """Return the bits of so many codes; five codes of three values take a byte (LVL-008)."""
    if isinstance(one, LevelRows) and not one.rules.bits:
        rows, columns = rows_and_columns(shape)
        return -(-8 * rows * -(-columns // TERNARY_DIGITS) * count // total)
    return one.bits * count


def _scale_bits(
    one: Representation, shape: tuple[int, ...], cut: Cut, group: Cut, scaling: Scaling
) -> int:
    """Return the bits of the scales of a whole tensor; 0 for a representation of a user."""
    match one:
        case ScaledFormat():
            parts = partition(shape, cut, group)
            mantissas = _MANTISSA * _count(parts.group_grid) if scaling == "gam" else 0
            return _OF_A_SCALE[scaling] * _count(parts.grid) + mantissas
        case MxBlocks():
            return _OF_AN_E8M0 * _count(partition(shape, (1, one.block)).grid)
        case Nvfp4Tiles():
            rows = rows_and_columns(shape)[0] if PROFILES[one.profile].per_row else 1
            return _OF_AN_E4M3 * _count(partition(shape, one.tile).grid) + _GLOBAL * rows
        case AffineBlocks():
            zero_point = 0 if one.symmetric else one.bits
            return (_OF_A_SCALE["fp32"] + zero_point) * _count(one.parts(shape).grid)
        case MixedFormats():
            units = _count(one.parts(shape).grid)
            of_each = (
                _scale_bits(each, shape, one.block, "tensor", "fp32") for each in one.candidates
            )
            return max(of_each) + units * (len(one.candidates) - 1).bit_length()
        case LevelRows():
            return formats[one.arithmetic].bits * rows_and_columns(shape)[0]
        case SharedBlocks():
            shifts = _count(partition(shape, (1, PAIR)).grid) if one.rules.shifts else 0
            return _OF_AN_EXPONENT * _count(partition(shape, (1, BLOCK)).grid) + shifts
    return 0


def _count(grid: tuple[int, int]) -> int:
    return grid[0] * grid[1]
