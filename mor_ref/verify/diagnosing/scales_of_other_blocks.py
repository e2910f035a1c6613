"""Scales of each number with smaller or larger blocks than the recipe asks for."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.shapes import Sides, sides_of, spread_to_numbers
from mor_ref.verify.diagnosing.amaxes_of_blocks import grouped
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scales_of_other_numbers import is_finite, with_amaxes

_TIMES = ((1, 2), (1, 4), (2, 1), (4, 1), (2, 2), (4, 4))


class OtherBlocks(NamedTuple):
    """Blocks that are `times` smaller or larger, down and to the right."""

    times: Sides
    are_smaller: bool

    def of(self, sides: Sides) -> Sides:
        """Return the rows and columns of these blocks, given those that are asked for."""
        pairs = zip(sides, self.times, strict=True)
        return tuple(side // by if self.are_smaller else side * by for side, by in pairs)

    def scales(self, one: Sample, names: Sequence[str]) -> dict[str, Unsigned] | None:
        """Return fields of blocks for each number, in rows and columns; None if unknown."""
        found = None
        with suppress(ValueError):  # a group may cut the blocks
            if "tile" in one.question.parameters:
                found = self._of_tiles(one, names)
            else:
                found = _of_blocks(one, names, self.of(block_of(one)))
        shape, fields = one.question.arrays["x"].shape, found or {}
        ends_too_soon = any(each.shape != shape for each in fields.values())  # a smaller tile
        return None if ends_too_soon else found

    def _of_tiles(self, one: Sample, names: Sequence[str]) -> dict[str, Unsigned] | None:
        """Return fields of tiles, whose size is fixed, from other tensors of such tiles."""
        x, operation = one.question.arrays["x"], OPERATIONS[one.operation]
        if not is_finite(one):
            return None
        sides = block_of(one)
        if self.are_smaller:
            parts = self.of(sides)
            arrays = {**one.question.arrays, "x": _spread(x, sides, parts)}
            found = operation.engine(one.question.parameters, arrays)
            return {name: spread_to_numbers(found[name], parts, x.shape) for name in names}
        grid = [-(-size // side) for size, side in zip(x.shape, sides, strict=True)]
        amaxes = grouped(*self.times)
        each = {name: with_amaxes(amaxes, one, name).reshape(grid) for name in names}
        return {name: spread_to_numbers(entries, sides, x.shape) for name, entries in each.items()}


def _of_blocks(one: Sample, names: Sequence[str], sides: Sides) -> dict[str, Unsigned] | None:
    """Return fields of blocks of another size, computed as if the recipe asked for it."""
    x, parameters = one.question.arrays["x"], one.question.parameters
    is_of_columns = isinstance(parameters["block"], int)
    if is_of_columns and sides[0] > 1:
        return None
    asked = {**parameters, "block": sides[1] if is_of_columns else list(sides)}
    found = OPERATIONS[one.operation].engine(asked, one.question.arrays)
    each = sides_of("rc", asked, x.shape)["grid"]
    return {name: spread_to_numbers(found[name], each, x.shape) for name in names}


def other_block_sizes(sides: Sides) -> Iterator[tuple[str, OtherBlocks]]:
    """Yield other blocks, each with its size in words.

    These have half or a quarter of a side, or two or four times a side; smaller ones may also be a
    row or a column of a block, and a larger one may be a square on the longer side.
    """
    rows, columns = sides
    square = max(columns // rows, 1), max(rows // columns, 1)
    for more, are_smaller in ((((rows, 1), (1, columns)), True), ((square,), False)):
        for times in dict.fromkeys((*_TIMES, *more)):
            other = OtherBlocks(times, are_smaller)
            if max(times) > 1 and (not are_smaller or rows % times[0] == columns % times[1] == 0):
                yield "{}x{} numbers".format(*other.of(sides)), other


def block_of(one: Sample) -> Sides:
    """Return the rows and columns of a block, which may be larger than the tensor."""
    parameters, shape = one.question.parameters, one.question.arrays["x"].shape
    block = parameters.get("tile", parameters.get("block", "tensor"))
    if isinstance(block, str):  # the whole tensor, a row or a column
        return sides_of("rc", parameters, shape)["grid"]
    return (1, block) if isinstance(block, int) else tuple(block)


def _spread(x: Unsigned, sides: Sides, parts: Sides) -> Unsigned:
    """Return a tensor in which each part fills the start of its own block, and zeros the rest."""
    whole = np.pad(x, [(0, -size % part) for size, part in zip(x.shape, parts, strict=True)])
    for axis, (side, part) in enumerate(zip(sides, parts, strict=True)):
        lines = np.moveaxis(whole, axis, 0).reshape(-1, part, whole.shape[1 - axis])
        wide = np.pad(lines, [(0, 0), (0, side - part), (0, 0)])
        whole = np.moveaxis(wide.reshape(-1, whole.shape[1 - axis]), 0, axis)
    return np.ascontiguousarray(whole)
