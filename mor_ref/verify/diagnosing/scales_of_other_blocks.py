"""Scales of each number with smaller or larger blocks than the recipe asks for."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.shapes import Sides, of_numbers, sides_of
from mor_ref.verify.diagnosing.other_reaches import grouped, is_finite, with_amaxes
from mor_ref.verify.diagnosing.sample import Sample

_TIMES = ((1, 2), (1, 4), (2, 1), (4, 1), (2, 2), (4, 4))


class OtherBlocks(NamedTuple):
    """Blocks that are `times` smaller or larger, down and to the right."""

    times: Sides
    are_smaller: bool

    def scales(self, one: Sample, name: str) -> Unsigned | None:
        """Return the scale of each number of a tensor, in rows and columns; None if unknown."""
        x, operation = one.question.arrays["x"], OPERATIONS[one.operation]
        if not operation.ignores_zeros or not is_finite(one):
            return None
        sides = block_of(one)
        with contextlib.suppress(ValueError):  # a group may cut the blocks
            if self.are_smaller:
                parts = tuple(side // many for side, many in zip(sides, self.times, strict=True))
                arrays = {**one.question.arrays, "x": _spread(x, sides, parts)}
                found = operation.engine(one.question.parameters, arrays)[name]
                each = of_numbers(found, parts, x.shape)
                return each if each.shape == x.shape else None  # a block ends too soon
            grid = [-(-size // side) for size, side in zip(x.shape, sides, strict=True)]
            found = with_amaxes(grouped(*self.times), one, name)
            return of_numbers(found.reshape(grid), sides, x.shape)
        return None


def other_block_sizes(sides: Sides) -> Iterator[tuple[str, OtherBlocks]]:
    """Yield other blocks, each with its size in words."""
    for times in _TIMES:
        pairs = tuple(zip(sides, times, strict=True))
        if all(side % many == 0 for side, many in pairs):
            rows, columns = (side // many for side, many in pairs)
            yield f"{rows}x{columns} numbers", OtherBlocks(times, are_smaller=True)
        rows, columns = (side * many for side, many in pairs)
        yield f"{rows}x{columns} numbers", OtherBlocks(times, are_smaller=False)


def block_of(one: Sample) -> Sides:
    """Return the rows and columns of a block, which is at most as large as the tensor."""
    return sides_of("rc", one.question.parameters, one.question.arrays["x"].shape)["grid"]


def _spread(x: Unsigned, sides: Sides, parts: Sides) -> Unsigned:
    """Return a tensor in which each part fills the start of its own block, and zeros the rest."""
    whole = np.pad(x, [(0, -size % part) for size, part in zip(x.shape, parts, strict=True)])
    for axis, (side, part) in enumerate(zip(sides, parts, strict=True)):
        lines = np.moveaxis(whole, axis, 0).reshape(-1, part, whole.shape[1 - axis])
        wide = np.pad(lines, [(0, 0), (0, side - part), (0, 0)])
        whole = np.moveaxis(wide.reshape(-1, whole.shape[1 - axis]), 0, axis)
    return np.ascontiguousarray(whole)
