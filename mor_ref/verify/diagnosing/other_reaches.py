"""Scales of blocks with extremes from other numbers, or with another global scale."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned, tensor_of
from mor_ref.operations.operation import Operation, Parameters
from mor_ref.operations.parameters import RECIPE
from mor_ref.operations.shapes import of_numbers, sides_of
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import MOST, Entries
from mor_ref.verify.diagnosing.sample import Sample

_CASES = 2  # cases that all reaches are tried on first
_POWERS = (2, 4, 8, 16, 32, 64, 128)
_NUMBERS = ("f32", "e8m0", "e4m3")  # formats of fields that follow from an amax
_OF_EXTREMES = (*_NUMBERS, "u32")  # formats of fields that follow from a minimum and a maximum

# A function from the magnitudes of a case, with axes (row of blocks, row, block, column), to the
# bits of the amax of each block.
Amaxes = Callable[[Unsigned], Unsigned]


class _Reach(NamedTuple):
    """A function that computes a field of a case with other amaxes, or None, and its words."""

    words: str
    computed: Callable[[Sample, str], Unsigned | None]


def other_reaches(e: Entries) -> Iterator[Alternative]:
    """Yield the scales of blocks whose amax is taken from other numbers.

    Each reach is tried on some cases that differ; a reach that explains these is tried on all.
    Cases with numbers that are not finite are left out.
    """
    operation = OPERATIONS[e.samples[0].operation]
    if not _is_of_amax(e, operation):
        return
    places = e.slices
    known = [k for k, one in enumerate(e.samples) if is_finite(one)]
    some = [k for k in e.worst_cases if k in known][:_CASES]
    for reach in _reaches(e) if some else ():
        if not all(e.is_given(k, reach.computed(e.samples[k], e.field)) for k in some):
            continue
        values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
        for k in known:
            found = reach.computed(e.samples[k], e.field)
            if found is not None:
                values[places[k]], is_there[places[k]] = found, True
        is_known = bool(is_there[e.differing].all())
        yield Alternative(
            f"each entry is that {reach.words}",
            values,
            is_there,
            e,
            is_of_place=False,
            of_all=is_known,
        )


def _is_of_amax(e: Entries, operation: Operation) -> bool:
    """Return whether the entries follow from the amax, or from the extremes, of blocks."""
    way, of_extremes = operation.way_back, operation.follows_extremes
    follows = operation.ignores_zeros or of_extremes
    is_of_amax = follows and way is not None and way.coded is not None
    is_of_blocks = is_of_amax and e.field in operation.outputs
    if not is_of_blocks or any(RECIPE in one.question.parameters for one in e.samples):
        return False
    fmt, axes = operation.outputs[e.field]
    is_small = sum(one.size for one in e.samples) <= MOST
    return axes == "grid" and fmt in (_OF_EXTREMES if of_extremes else _NUMBERS) and is_small


def is_finite(one: Sample) -> bool:
    """Return whether all numbers of a case are finite."""
    asked = one.question
    numbers = tensor_of(asked.arrays["x"], asked.parameters["source"])
    return bool(np.isfinite(numbers.astype(np.float32)).all())


def with_amaxes(amaxes: Amaxes, one: Sample, field: str) -> NDArray[Any]:
    """Return a field of a case with other amaxes of blocks.

    All numbers of a block are replaced by its amax. The amax of the whole tensor stays.
    """
    asked, operation = one.question, OPERATIONS[one.operation]
    x, parameters = asked.arrays["x"], asked.parameters
    sides = sides_of("rc", parameters, x.shape)["grid"]
    magnitudes = x & x.dtype.type(np.iinfo(x.dtype).max >> 1)
    by_blocks = _by_blocks(magnitudes, sides)
    found = amaxes(by_blocks)
    if field in one.pairs and np.array_equal(found, _blocks(by_blocks)):
        return one.pairs[field].expected.ravel()
    other = np.ascontiguousarray(of_numbers(found, sides, x.shape))
    if other.max(initial=0) < magnitudes.max(initial=0):
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
        by_blocks = _by_blocks(of, sides)
        found.append((extremes(by_blocks), _blocks(by_blocks)))
    if all(np.array_equal(*pair) for pair in found):
        return one.pairs[field].expected.ravel()
    highest, lowest = found[0][0], ~found[1][0]
    both = np.stack([lowest, highest], axis=2)
    is_none = (both == 0) | (both == last)
    bits = np.where(is_none, 0, np.where(both & sign, both ^ sign, ~both)).astype(x.dtype)
    pairs = {**asked.arrays, "x": bits.reshape(len(bits), -1)}
    of_pairs = {**asked.parameters, "block": [1, 2]}
    return OPERATIONS[one.operation].engine(of_pairs, pairs)[field].ravel()


def _by_blocks(numbers: Unsigned, sides: Sequence[int]) -> Unsigned:
    """Return numbers with the axes (row of blocks, row, block, column), padded with zeros."""
    ends = [(0, -size % side) for size, side in zip(numbers.shape, sides, strict=True)]
    padded = np.pad(numbers, ends)
    down, right = (size // side for size, side in zip(padded.shape, sides, strict=True))
    return padded.reshape(down, sides[0], right, sides[1])


def _with_whole_amax(operation: Operation, parameters: Parameters, bits: Any) -> Parameters:
    """Return the parameters with the amax of the tensor, if it is needed and missing."""
    whole = operation.whole_amax
    if whole is None or not whole.is_needed(parameters) or _GIVEN & {*parameters}:
        return parameters
    amax = tensor_of(np.array([bits]), parameters["source"])
    return {**parameters, "amax": float(amax[0])}


_GIVEN = {"amax", "scale", "global_scale"}


# ---------------------------------------------------------------- reaches


def _reaches(e: Entries) -> Iterator[_Reach]:
    """Yield the reaches that kernels confuse, the simplest first."""
    sides = {
        sides_of("rc", one.question.parameters, one.question.arrays["x"].shape)["grid"]
        for one in e.samples
    }
    rows, columns = sides.pop() if len(sides) == 1 else (0, 0)
    yield from _of_global_scales(e)
    of_extremes = OPERATIONS[e.samples[0].operation].follows_extremes
    name, computed = (
        ("minimum and maximum", _with_extremes) if of_extremes else ("amax", with_amaxes)
    )
    for words, amaxes in _amaxes(rows, columns):
        yield _Reach(f"of the {name} of {words}", partial(computed, amaxes))


def _amaxes(rows: int, columns: int) -> Iterator[tuple[str, Amaxes]]:
    """Yield other amaxes of blocks; rows and columns are 0 if block sizes differ."""
    yield "its whole row of blocks", _over((1, 2, 3))
    yield "its whole column of blocks", _over((0, 1, 3))
    yield "the whole tensor", _over((0, 1, 2, 3))
    yield from _of_several(rows, columns)
    yield "its block and all before it in the row", _running(1)
    yield "its block and all above it", _running(0)
    yield "its block and all before it, row by row", _running(None)
    yield from _of_parts()


def _of_several(rows: int, columns: int) -> Iterator[tuple[str, Amaxes]]:
    """Yield amaxes over several blocks."""
    for m in _POWERS:
        for down, right in ((1, m), (m, 1), (m, m)):
            size = f": of {down * rows}x{right * columns} numbers" if rows else ""
            yield f"{down}x{right} blocks{size}", grouped(down, right)


def _of_global_scales(e: Entries) -> Iterator[_Reach]:
    """Yield other global scales, if they can be given: 1, and the scales of the candidate."""
    operation = OPERATIONS[e.samples[0].operation]
    if "global_scale" in operation.optional:
        yield _Reach("with a global scale of 1", partial(_with_global_scale, ""))
        for name, (fmt, axes) in operation.outputs.items():
            if (fmt, axes) == ("f32", "ends"):
                yield _Reach(f"with the given {name}", partial(_with_global_scale, name))


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


def _blocks(magnitudes: Unsigned) -> Unsigned:
    found: Unsigned = magnitudes.max(axis=(1, 3))
    return found


def _over(axes: tuple[int, ...]) -> Amaxes:
    return lambda m: np.broadcast_to(
        m.max(axis=axes, keepdims=True), (m.shape[0], 1, m.shape[2], 1)
    )[:, 0, :, 0]


def grouped(down: int, right: int) -> Amaxes:
    """Return the amax of groups of blocks; the last groups may be smaller."""

    def amaxes(magnitudes: Unsigned) -> Unsigned:
        own = _blocks(magnitudes)
        tops, lefts = (
            np.arange(0, size, m) for size, m in zip(own.shape, (down, right), strict=True)
        )
        found = np.maximum.reduceat(np.maximum.reduceat(own, tops, axis=0), lefts, axis=1)
        return of_numbers(found, (down, right), own.shape)

    return amaxes


def _running(axis: int | None) -> Amaxes:
    """Return the largest amax so far, along an axis or row by row."""

    def amaxes(magnitudes: Unsigned) -> Unsigned:
        own = _blocks(magnitudes)
        so_far = np.maximum.accumulate(own.ravel() if axis is None else own, axis=axis or 0)
        return so_far.reshape(own.shape)

    return amaxes


def _of_parts() -> Iterator[tuple[str, Amaxes]]:
    """Yield amaxes of half a block, and of the lines whose number has a bit that is 0, or 1."""
    for axis, name in ((3, "column"), (1, "row")):
        half = f"half of the {name}s of its block"
        yield f"the first {half}", _of_lines(axis, lambda k: 2 * k < len(k))
        yield f"the last {half}", _of_lines(axis, lambda k: 2 * k >= len(k))
        for m in (1, *_POWERS[:-1]):
            where = f"the {name}s of its block with {name} & {m}"
            yield f"{where} = 0", _of_lines(axis, lambda k, m=m: k & m == 0)
            yield f"{where} = {m}", _of_lines(axis, lambda k, m=m: k & m > 0)


def _of_lines(axis: int, chosen: Callable[..., NDArray[np.bool_]]) -> Amaxes:
    """Return the amax of chosen rows or columns of each block, or of all if none is chosen."""

    def amaxes(magnitudes: Unsigned) -> Unsigned:
        which = chosen(np.arange(magnitudes.shape[axis]))
        return _blocks(np.compress(which | ~which.any(), magnitudes, axis=axis))

    return amaxes
