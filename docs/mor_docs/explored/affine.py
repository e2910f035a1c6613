"""Grids of integers, and the profiles of libraries."""

from typing import Any

from mor_docs.explorer_rows import bits_of_number, fields_of_row
from mor_ref.definitions.integer_grids import NARROWEST, WIDEST, IntegerGrid, integer_grid
from mor_ref.schemes.affine.definition import AFFINE_PROFILES, SMALLEST_NORMAL


def entries() -> dict[str, Any]:
    """Return the grids and the profiles."""
    return {
        "integerGrids": {grid.name: _grid(grid) for grid in _grids()},
        "integerProfiles": {name: _integers(name) for name in AFFINE_PROFILES},
    }


def _grids() -> list[IntegerGrid]:
    """Return every grid of integers, those of 8 and 4 bits first."""
    widths = [8, 4, *(bits for bits in range(NARROWEST, WIDEST + 1) if bits not in (4, 8))]
    return [integer_grid(f"{sign}int{bits}") for bits in widths for sign in ("", "u")]


def _grid(grid: IntegerGrid) -> dict[str, Any]:
    return {**fields_of_row(grid), "lowest": grid.lowest, "highest": grid.highest}


def _integers(name: str) -> dict[str, Any]:
    """Return a profile of integers; its numbers are bits of binary32."""
    profile = AFFINE_PROFILES[name]
    smallest = SMALLEST_NORMAL["f32"] if profile.smallest is None else profile.smallest
    bits = {
        "smallest": bits_of_number(smallest),
        "smallestHigh": bits_of_number(profile.smallest_high),
    }
    return {**fields_of_row(profile, "stores_amax"), **bits}
