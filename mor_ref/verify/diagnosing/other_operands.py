"""Dot products of other operands: transposed tiles, other rows, other scales, and a part of K."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import MOST, Bits, Entries
from mor_ref.verify.diagnosing.other_dot_numbers import (
    Change,
    chunk_of,
    of_blocks,
    other_dot_numbers,
)
from mor_ref.verify.diagnosing.sample import Sample

_CASES = 3  # cases that differ most, on which each change is tried first
_TILES = (2, 4, 8, 16, 32, 64)
_LENGTHS = (2, 4, 8, 16, 32, 64, 128, 256)


def other_operands(e: Entries) -> Iterator[Alternative]:
    """Yield the dot products of operands that a kernel may confuse with the right ones.

    Each change of the inputs is tried on some cases that differ; a change that explains these is
    tried on all.
    """
    if not {"a", "b"} <= OPERATIONS[e.samples[0].operation].inputs.keys():
        return
    if sum(one.size for one in e.samples) > MOST:
        return
    some = e.worst_cases[:_CASES]
    for change in _changes(e):
        if all(e.is_given(k, _computed(change, e.samples[k], e.field)) for k in some):
            values = np.concatenate([_computed(change, one, e.field) for one in e.samples])
            there = np.ones(e.size, np.bool_)
            words = f"each {e.noun} is that {change.words}"
            yield Alternative(words, values.astype(np.uint64), there, e, is_of_place=False)


def _computed(change: Change, one: Sample, field: str) -> Bits:
    """Return a field of a case with changed inputs: c, or 0, if no element is left."""
    asked, operation = one.question, OPERATIONS[one.operation]
    inputs = change.inputs(asked.parameters, asked.arrays)
    if inputs["a"].shape[1]:
        parameters = change.parameters(asked.parameters)
        return operation.engine(parameters, inputs)[field].ravel()
    rest = inputs.get("c") if field == "result" else None
    found = one.pairs[field].expected.ravel()
    return np.zeros_like(found) if rest is None else rest


def _changes(e: Entries) -> Iterator[Change]:
    """Yield the changes that are tried, the simplest first."""
    inputs = e.samples[0].question.arrays
    for size in _TILES:
        for name in "ba":
            words = f"of {name} with its {size} x {size} tiles transposed"
            yield Change(words, partial(_with, name, partial(_transposed, size)))
            filled = f"{words}, zeros beyond the last row and column"
            yield Change(filled, partial(_with, name, partial(_transposed_with_zeros, size)))
            words = f"of {name} with the rows of {size} x {size} entries transposed"
            yield Change(words, partial(_with, name, partial(_rows_transposed, size)))
    for name in ("b", "a", *(one for one in ("scale_b", "scale_a") if one in inputs)):
        for words, by in (("before", 1), ("after", -1)):
            yield Change(
                f"of {name} of the row {words} it", partial(_with, name, partial(_rolled, by))
            )
    for name, other in ("ba", "ab") if "scale_b" in inputs else ():
        words = f"with scale_{other} in place of scale_{name}"
        yield Change(words, partial(_instead, f"scale_{name}", f"scale_{other}"))
    asked = e.samples[0].question
    yield from _shorter(asked.parameters)
    yield from other_dot_numbers(asked.parameters, asked.arrays)


def _shorter(parameters: Parameters) -> Iterator[Change]:
    """Yield the changes that leave out the elements of a part of K."""
    lengths: list[tuple[str, Callable[[Parameters], int]]] = [
        (str(size), partial(_always, size)) for size in _LENGTHS
    ]
    if "scale_block" in parameters:
        lengths.append(("scale_block", lambda parameters: int(parameters["scale_block"])))
    if "dot_profile" in parameters:
        lengths.append(("its chunk", chunk_of))
    for said, length in lengths:
        words = f"without the elements of K past the last multiple of {said}"
        yield Change(words, partial(_cut, lambda k, size: (0, k // size * size), length))
    for said, length in lengths:
        words = f"without the last block of K, of {said} elements or less"
        yield Change(words, partial(_cut, lambda k, size: (0, (k - 1) // size * size), length))
        words = f"without the first {said} elements of K"
        yield Change(words, partial(_cut, lambda k, size: (min(size, k), k), length))


def _always(size: int, _: Parameters) -> int:
    return size


# ---------------------------------------------------------------- changed inputs


def _with(
    name: str, change: Callable[[Bits], Bits], _parameters: Parameters, arrays: Arrays
) -> Arrays:
    """Return inputs with a changed operand: its codes, and its numbers if they are upcast."""
    names = [one for one in (name, f"y_{name}") if one in arrays]
    return {**arrays, **{one: np.ascontiguousarray(change(arrays[one])) for one in names}}


def _instead(name: str, other: str, _: Parameters, arrays: Arrays) -> Arrays:
    return {**arrays, name: arrays[other]}


def _in_tiles(x: Bits, size: int) -> Bits:
    """Return an array whose whole tiles are transposed."""
    rows, columns = (side // size for side in x.shape)
    tiles = x.reshape(rows, size, columns, size)
    return tiles.transpose(0, 3, 2, 1).reshape(x.shape)


def _transposed(size: int, x: Bits) -> Bits:
    """Transpose the whole tiles of an array; the others stay."""
    found = x.copy()
    rows, columns = (side // size * size for side in x.shape)
    found[:rows, :columns] = _in_tiles(x[:rows, :columns], size)
    return found


def _transposed_with_zeros(size: int, x: Bits) -> Bits:
    """Transpose all tiles of an array that is filled with zeros."""
    wide = np.pad(x, [(0, -side % size) for side in x.shape])
    return _in_tiles(wide, size)[: x.shape[0], : x.shape[1]]


def _rows_transposed(size: int, x: Bits) -> Bits:
    """Exchange rows as a tile of size x size entries of the product is transposed."""
    order = np.arange(len(x))
    whole = len(x) // size**2 * size**2
    order[:whole] = order[:whole].reshape(-1, size, size).transpose(0, 2, 1).ravel()
    return x[order]


def _rolled(by: int, x: Bits) -> Bits:
    return np.roll(x, by, axis=0)


def _cut(
    ends: Callable[[int, int], tuple[int, int]],
    length: Callable[[Parameters], int],
    parameters: Parameters,
    arrays: Arrays,
) -> Arrays:
    """Return inputs with a part of K, and the blocks of that part."""
    size, k = length(parameters), arrays["a"].shape[1]
    start, end = ends(k, size) if size else (0, k)
    if start % parameters.get("scale_block", 1):
        return dict(arrays)
    return of_blocks(parameters, arrays, slice(start, end))
