"""Scales of blocks with extremes from other numbers, or with another global scale."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned, tensor_of
from mor_ref.operations.call import Parameters
from mor_ref.operations.operation import Operation
from mor_ref.operations.parameters import RECIPE
from mor_ref.operations.shapes import Sides, sides_of, spread_to_numbers
from mor_ref.verify.diagnosing.alternative import Alternative, sure_of
from mor_ref.verify.diagnosing.amaxes_of_blocks import (
    Amaxes,
    blocks_of,
    by_blocks,
    of_halves,
    of_lanes,
    of_more,
)
from mor_ref.verify.diagnosing.amaxes_of_parts import (
    Part,
    joined_parts,
    named,
    parts_of_blocks,
)
from mor_ref.verify.diagnosing.amaxes_of_tensors import amaxes_of_tensors
from mor_ref.verify.diagnosing.entries import MOST, Entries
from mor_ref.verify.diagnosing.sample import Sample

_EACH = "each entry is that "
_CASES = 2  # cases that all reaches are tried on first
_NUMBERS = ("f32", "e8m0", "e4m3")  # formats of fields that follow from an amax
_OF_EXTREMES = (*_NUMBERS, "u32")  # formats of fields that follow from a minimum and a maximum


class Reach(NamedTuple):
    """A function that computes a field of a case with other amaxes, or None, and its words.

    If it `needs_finite`, it takes cases whose numbers are all finite.
    """

    words: str
    computed: Callable[[Sample, str], Unsigned | None]
    is_of_part: bool = False
    needs_finite: bool = True


def scales_of_other_numbers(e: Entries) -> Iterator[Alternative]:
    """Yield the scales of blocks whose amax is taken from other numbers.

    Each reach is tried on some cases that differ; a reach that explains these is tried on all.
    Cases with numbers that are not finite are left out, unless the amax is of another tensor.
    """
    if follows_amax(e):
        yield from joined_parts(_fitting(e))


def _fitting(e: Entries) -> Iterator[tuple[Alternative, bool]]:
    """Yield the reaches that explain some cases, each with whether it is the amax of a part."""
    finite = [k for k, one in enumerate(e.samples) if is_finite(one)]
    for reach in reaches(e):
        known = finite if reach.needs_finite else range(len(e.samples))
        some = [k for k in e.worst_cases if k in known][:_CASES]
        if some and all(e.is_given(k, reach.computed(e.samples[k], e.field)) for k in some):
            yield _alternative(e, reach, known), reach.is_of_part


def _alternative(e: Entries, reach: Reach, known: Sequence[int]) -> Alternative:
    """Return the field of the known cases with other amaxes."""
    values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
    for k in known:
        found = reach.computed(e.samples[k], e.field)
        if found is not None:
            values[e.slices[k]], is_there[e.slices[k]] = found, True
    is_known = bool(is_there[e.differing].all())
    words = f"{_EACH}{reach.words}"
    one = Alternative(words, values, is_there, e, is_of_place=False, of_all=is_known)
    is_sure = has_32_bits(e) and not one.kept
    return replace(one, sure=sure_of(values, e.expected)) if is_sure else one


def follows_amax(e: Entries) -> bool:
    """Return whether the entries follow from the amax, or from the extremes, of blocks."""
    operation = OPERATIONS[e.samples[0].operation]
    way, of_extremes = operation.way_back, operation.follows_extremes
    follows = operation.ignores_zeros or of_extremes
    is_of_amax = follows and way is not None and way.coded is not None
    is_of_blocks = is_of_amax and e.field in operation.outputs
    if not is_of_blocks or any(RECIPE in one.question.parameters for one in e.samples):
        return False
    output = operation.outputs[e.field]
    is_small = sum(one.size for one in e.samples) <= MOST
    formats_seen = _OF_EXTREMES if of_extremes else _NUMBERS
    return output.axes == "grid" and output.format in formats_seen and is_small


def has_32_bits(e: Entries) -> bool:
    """Return whether the entries have 32 bits and are of parts of a tensor, or of the whole."""
    output = OPERATIONS[e.samples[0].operation].outputs.get(e.field)
    return output is not None and output.format in ("f32", "u32") and output.axes != "rc"


def is_finite(one: Sample) -> bool:
    """Return whether all numbers of a case are finite."""
    asked = one.question
    numbers = tensor_of(asked.arrays["x"], asked.parameters["source"])
    return bool(np.isfinite(numbers.astype(np.float32)).all())


def with_amaxes(amaxes: Amaxes, one: Sample, field: str) -> NDArray[Any]:
    """Return a field of a case with other amaxes of blocks."""
    magnitudes = by_blocks(magnitudes_of(one), _grid(one))
    found = amaxes(magnitudes)
    if field in one.pairs and np.array_equal(found, blocks_of(magnitudes)):
        return one.pairs[field].expected.ravel()
    return _with_found(found, one, field)


def _with_part(part: Part, one: Sample, field: str) -> NDArray[Any]:
    """Return a field of a case with the amaxes of a part of each block."""
    magnitudes, sides = magnitudes_of(one), _grid(one)
    some = part.of(magnitudes, sides)
    own = blocks_of(by_blocks(magnitudes, sides))
    found = own if some is None else blocks_of(by_blocks(some, sides))
    if np.array_equal(found, own):
        return one.pairs[field].expected.ravel()
    return _with_found(found, one, field)


def _with_tensor(other: Mapping[Sample, float], one: Sample, field: str) -> NDArray[Any] | None:
    """Return a field of a case with the amax of another tensor; None if there is none."""
    if one not in other:
        return None
    asked = one.question
    amax = np.full((1, 1), other[one], np.float32).view(np.uint32)
    parameters = {**asked.parameters, "source": "f32"}  # tensors may have other formats
    return OPERATIONS[one.operation].engine(parameters, {**asked.arrays, "x": amax})[field].ravel()


def magnitudes_of(one: Sample) -> Unsigned:
    """Return the bits of the numbers of a case, without their signs."""
    x = one.question.arrays["x"]
    found: Unsigned = x & x.dtype.type(np.iinfo(x.dtype).max >> 1)
    return found


def _grid(one: Sample) -> Sides:
    return sides_of("rc", one.question.parameters, one.question.arrays["x"].shape)["grid"]


def _with_found(found: Unsigned, one: Sample, field: str) -> NDArray[Any]:
    """Return a field of a case with given amaxes of blocks.

    All numbers of a block are replaced by its amax. The amax of the whole tensor stays, unless the
    tensor is the block.
    """
    asked, operation = one.question, OPERATIONS[one.operation]
    x, parameters, magnitudes = asked.arrays["x"], asked.parameters, magnitudes_of(one)
    sides = _grid(one)
    other = np.ascontiguousarray(spread_to_numbers(found, sides, x.shape).astype(x.dtype))
    if sides != x.shape and other.max(initial=0) < magnitudes.max(initial=0):
        parameters = _with_whole_amax(operation, parameters, magnitudes.max())
    return operation.engine(parameters, {**asked.arrays, "x": other})[field].ravel()


def _with_extremes(extremes: Amaxes, one: Sample, field: str) -> NDArray[Any]:
    """Return a field of a case with other extremes: each block has its minimum and maximum alone.

    Keys have the order of the numbers that they encode. The key 0 does not encode a number.
    """
    asked, x = one.question, one.question.arrays["x"]
    sides = sides_of("rc", asked.parameters, x.shape)["grid"]
    last = x.dtype.type(np.iinfo(x.dtype).max)
    sign = x.dtype.type((int(last) >> 1) + 1)
    keys = np.where(x & sign, ~x, x | sign)
    found = []
    for of in (keys, ~keys):
        own = by_blocks(of, sides)
        found.append((extremes(own), blocks_of(own)))
    if all(np.array_equal(*pair) for pair in found):
        return one.pairs[field].expected.ravel()
    highest, lowest = found[0][0], ~found[1][0]
    both = np.stack([lowest, highest], axis=2)
    is_none = (both == 0) | (both == last)
    bits = np.where(is_none, 0, np.where(both & sign, both ^ sign, ~both)).astype(x.dtype)
    pairs = {**asked.arrays, "x": bits.reshape(len(bits), -1)}
    of_pairs = {**asked.parameters, "block": [1, 2]}
    return OPERATIONS[one.operation].engine(of_pairs, pairs)[field].ravel()


def _with_whole_amax(operation: Operation, parameters: Parameters, bits: Any) -> Parameters:
    """Return the parameters with the amax of the tensor, if it is needed and missing."""
    whole = operation.whole_amax
    if whole is None or not whole.is_needed(parameters) or _GIVEN & {*parameters}:
        return parameters
    amax = tensor_of(np.array([bits]), parameters["source"])
    return {**parameters, "amax": float(amax[0])}


_GIVEN = {"amax", "scale", "global_scale"}


# ---------------------------------------------------------------- reaches


def reaches(e: Entries) -> Iterator[Reach]:
    """Yield the reaches that kernels confuse, the simplest first."""
    sides = {_grid(one) for one in e.samples}
    rows, columns = sides.pop() if len(sides) == 1 else (0, 0)
    yield from _of_global_scales(e)
    of_extremes, noun = OPERATIONS[e.samples[0].operation].follows_extremes, _noun(e)
    name, computed = (
        ("minimum and maximum", _with_extremes) if of_extremes else ("amax", with_amaxes)
    )
    for words, amaxes in (*of_more(rows, columns), *of_halves(noun)):
        yield Reach(f"of the {name} of {words}", partial(computed, amaxes))
    if not of_extremes:
        for words, other in _of_tensors(e):
            of_other = partial(_with_tensor, other)
            yield Reach(f"of the amax of {words}", of_other, needs_finite=False)
        for part in parts_of_blocks(noun):
            yield Reach(f"of the amax of {named(part, noun)}", partial(_with_part, part), True)
    for words, amaxes in of_lanes(noun):
        yield Reach(f"of the {name} of {words}", partial(computed, amaxes))


def _of_tensors(e: Entries) -> Iterator[tuple[str, dict[Sample, float]]]:
    """Yield the amaxes of other tensors, for the cases whose block is the whole tensor."""
    is_whole = [_grid(one) == one.question.arrays["x"].shape for one in e.samples]
    for words, amaxes in amaxes_of_tensors(e.samples) if any(is_whole) else ():
        each = zip(e.samples, amaxes, is_whole, strict=True)
        yield words, {one: amax for one, amax, whole in each if whole and amax is not None}


def _noun(e: Entries) -> str:
    """Return the words for a block: the tensor, a row or a column, if all are."""
    cuts = {str(one.question.parameters.get("block")) for one in e.samples}
    known = {"tensor": "the tensor", "row": "its row", "column": "its column"}
    return known.get(cuts.pop(), "its block") if len(cuts) == 1 else "its block"


def _of_global_scales(e: Entries) -> Iterator[Reach]:
    """Yield other global scales, if they can be given: 1, and the scales of the candidate."""
    operation = OPERATIONS[e.samples[0].operation]
    if "global_scale" in operation.optional:
        yield Reach("with a global scale of 1", partial(_with_global_scale, ""))
        for name, output in operation.outputs.items():
            if (output.format, output.axes) == ("f32", "ends"):
                yield Reach(f"with the given {name}", partial(_with_global_scale, name))


def _with_global_scale(name: str, one: Sample, field: str) -> NDArray[Any] | None:
    """Return a field of a case with the candidate's global scale, or with 1 if `name` is empty."""
    asked, given = one.question, one.pairs.get(name)
    if _GIVEN & {*asked.parameters} or (name and (given is None or given.given.size != 1)):
        return None
    scale = float(given.given.view(np.float32)[0]) if given is not None else 1.0
    with contextlib.suppress(ValueError):  # 4 over 6 takes no global scale
        parameters = {**asked.parameters, "global_scale": scale}
        return OPERATIONS[one.operation].engine(parameters, asked.arrays)[field].ravel()
    return None
