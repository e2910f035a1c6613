"""Blocks that begin at another place: half a block sooner or later."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.parameters import RECIPE
from mor_ref.operations.shapes import sides_of
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import Entries, Marks
from mor_ref.verify.diagnosing.sample import Sample

_MOST = 1 << 18  # numbers of all cases together


def other_blocks(e: Entries) -> Iterator[Alternative]:
    """Yield the bits expected for blocks that begin half a block sooner, or later."""
    there = [one for one in e.samples if one.pairs[e.field].differs.any()]
    operations = [OPERATIONS[one.operation] for one in there]
    kinds = {one.axes_of(e.field) for one in operations}
    is_known = all(one.ignores_zeros for one in operations) and kinds <= {"rc", "grid"}
    if not is_known or sum(one.size for one in there) > _MOST:
        return
    for name, axis in (("columns", 1), ("rows", 0)):
        halves = {_block(one)[axis] // 2 for one in there}
        if len(halves) == 1 and (half := halves.pop()):
            for sign, word in ((-1, "sooner"), (1, "later")):
                words = f"each {e.noun} has the expected value for blocks that begin {half:,} "
                found = _moved(e, sign * half, axis)
                yield replace(found, words=f"{words}{name} {word}")


def _block(one: Sample) -> tuple[int, ...]:
    """Return the sides of a block; 0 for a side that is longer than the tensor."""
    x = one.question.arrays["x"]
    if RECIPE in one.question.parameters:
        return 0, 0
    sides = sides_of("rc", one.question.parameters, x.shape)["grid"]
    return tuple(side if side <= most else 0 for side, most in zip(sides, x.shape, strict=True))


def _moved(e: Entries, by: int, axis: int) -> Alternative:
    values, is_there = np.zeros(e.size, np.uint64), np.zeros(e.size, bool)
    first = 0
    for one in e.samples:
        mine = one.pairs[e.field].expected
        if one.pairs[e.field].differs.any():
            bits, known = _of_moved_blocks(one, e.field, by, axis)
            values[first : first + mine.size] = bits.ravel()
            is_there[first : first + mine.size] = known.ravel()
        first += mine.size
    is_known = bool(is_there[e.differing].all())
    return Alternative("", values, is_there, e, is_of_place=False, of_all=is_known)


def _of_moved_blocks(one: Sample, field: str, by: int, axis: int) -> tuple[Unsigned, Marks]:
    """Return a field of a case computed with moved blocks, and which entries are known."""
    asked, like = one.question, one.pairs[field].expected
    operation = OPERATIONS[one.operation]
    inputs = {name: _from(array, by, axis) for name, array in asked.arrays.items()}
    found = None
    with suppress(ValueError):  # a group as wide as the tensor may cut moved blocks
        found = operation.engine(asked.parameters, inputs).get(field)
    values, known = np.zeros_like(like), np.zeros(like.shape, np.bool_)
    if found is not None:
        is_of_elements = operation.outputs[field].axes == "rc"
        back = _from(found, -by if is_of_elements else 0, axis)
        there = tuple(slice(0, min(a, b)) for a, b in zip(back.shape, like.shape, strict=True))
        values[there], known[there] = back[there], True
        if is_of_elements and by > 0:
            np.moveaxis(known, axis, 0)[:by] = False
    return values, known


def _from(array: Unsigned, by: int, axis: int) -> Unsigned:
    """Return an array from a row or column on, with zeros before the first one."""
    lines = np.moveaxis(array, axis, 0)
    if by < 0:
        zeros = np.zeros((-by, *lines.shape[1:]), array.dtype)
        lines = np.concatenate([zeros, lines])
    return np.ascontiguousarray(np.moveaxis(lines[max(by, 0) :], 0, axis))
