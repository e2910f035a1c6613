"""The bits that a tensor takes under a recipe: codes, scales and decisions."""

from collections.abc import Mapping

from mor_ref.definitions.blocks import Cut, partition, rows_and_columns
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import Scaling
from mor_ref.policies import Policy
from mor_ref.representations import (
    AffineBlocks,
    MxBlocks,
    Nvfp4Tiles,
    Representation,
    ScaledFormat,
)

_OF_A_SCALE: Mapping[Scaling, int] = {"gam": 8, "e8m0": 8, "fp32": 32}
_MANTISSA = 23  # bits of a gam group's
_OF_AN_E8M0 = _OF_AN_E4M3 = 8
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
        found += rung.representation.bits * count
        if count:
            scales = _scale_bits(rung.representation, shape, cut, policy.group, scaling)
            found += -(-scales * count // total)
    return found + units * len(policy.ladder).bit_length()


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
    return 0


def _count(grid: tuple[int, int]) -> int:
    return grid[0] * grid[1]
