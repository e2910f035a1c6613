"""Scales of integer grids with another number of steps, such as 254 for 8 bits."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.integer_grids import integer_grid
from mor_ref.operations import OPERATIONS
from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.alternative import Alternative, sure_of
from mor_ref.verify.diagnosing.entries import MOST, Entries


def other_grids(e: Entries) -> Iterator[Alternative]:
    """Yield the scales of grids with one step less or more; symmetric grids have deviations.

    Two binary32 numbers that are not round are hardly equal by accident, so one scale is enough.
    """
    operation = OPERATIONS[e.samples[0].operation]
    asked = [one.question.parameters for one in e.samples]
    is_scale = operation.follows_extremes and e.field == "scale"
    is_small = sum(one.size for one in e.samples) <= MOST
    if not is_scale or not is_small or any(RECIPE in one or one["symmetric"] for one in asked):
        return
    grids = {integer_grid(one["grid"]) for one in asked}
    for grid in grids if len(grids) == 1 else ():
        steps, width, every = grid.highest - grid.lowest, _width(e), np.ones(e.size, np.bool_)
        for other in (steps - 1, steps + 1):
            values = (width / np.float32(other)).view(np.uint32).astype(np.uint64)
            sure = sure_of(values, e.expected)
            words = f"each entry is that of a grid of {other:,} steps, not {steps:,}"
            yield Alternative(words, values, every, e, is_of_place=False, of_all=True, sure=sure)


def _width(e: Entries) -> NDArray[np.float32]:
    """Return the distance from the minimum of each block to its maximum, with zero in between."""
    engine, asked = OPERATIONS[e.samples[0].operation].engine, [one.question for one in e.samples]
    found = [engine(one.parameters, one.arrays) for one in asked]
    low, high = (
        np.concatenate([one[field].ravel() for one in found]).view(np.float32)
        for field in ("minimum", "maximum")
    )
    width: NDArray[np.float32] = np.maximum(high, 0) - np.minimum(low, 0)
    return width
