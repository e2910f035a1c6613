"""The chapter on scales: the extremes of blocks, and a scale for each."""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import Scaling
from mor_ref.engine.blocks import (
    Gathered,
    Part,
    Sides,
    for_each_part,
    over_groups,
    row_bounds,
    to_blocks,
    words_of,
)
from mor_ref.engine.intrinsics import (
    LANES,
    largest_of_lanes,
    shift_left,
    shift_right,
    use_full_vectors,
)
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP, prefetch_row, segment, whole_segments

_U, _I, _W = np.uint32, np.int32, np.uint64
_HIDDEN = _U(1 << 23)
_FRACTION = _U((1 << 23) - 1)
_FLT_MAX = _U(0x7F7FFFFF)
_LARGEST_EXPONENT, _SMALLEST_EXPONENT = _I(127), _I(-126)
_BIAS = _I(127)


class Extremes(NamedTuple):
    """The largest and the smallest magnitude but zero of the finite numbers of each block, as bits.

    Both are 0 in a block that has no such number.
    """

    amax: NDArray[np.uint32]
    amin: NDArray[np.uint32]


class Scales(NamedTuple):
    """The scale of each block as binary32 bits, and its stored fields."""

    scale: NDArray[np.uint32]
    exponent: NDArray[np.uint8] | None
    mantissa: NDArray[np.uint32] | None


class Pattern(NamedTuple):
    """Masks in the width of the numbers, and the first magnitude that does not count."""

    magnitude: Any
    end: Any
    all: Any


Counted = Literal["finite", "not nan", "all"]


@lru_cache
def _pattern(dtype: np.dtype[Any], counted: Counted) -> Pattern:
    shift = 32 - 8 * dtype.itemsize
    magnitude, infinity, all_ones = (b >> shift for b in (0x7FFFFFFF, 0x7F800000, 0xFFFFFFFF))
    end = {"finite": infinity, "not nan": infinity + 1, "all": magnitude + 1}[counted]
    return Pattern(*(dtype.type(bits) for bits in (magnitude, end, all_ones)))


# ---------------------------------------------------------------------- scalar steps


@step
def normalised(amax):
    """Return mantissa and exponent of the bits of a number above zero, subnormal or not."""
    field, mantissa = _I(shift_right(amax, _U(23))), _U(amax & _FRACTION)
    if field == _I(0):
        field = _I(1)
        while mantissa < _HIDDEN:
            mantissa = shift_left(mantissa, _U(1))
            field = _I(field - _I(1))
    return _U(mantissa & _FRACTION), _I(field - _BIAS)


@step
def ideal_scale(amax, largest):
    """SCL-002: the mantissa and the exponent of largest / amax, which are binary32 bits."""
    (a, amax_exponent), (q, largest_exponent) = normalised(amax), normalised(largest)
    below_one = a > q  # THM-004
    exponent = _I(largest_exponent - amax_exponent)
    exponent = _I(exponent - _I(1)) if below_one else exponent
    if exponent < _SMALLEST_EXPONENT:
        return _U(0), _SMALLEST_EXPONENT
    a, q = _U(a | _HIDDEN), _U(q | _HIDDEN)
    # One bit more than the mantissa has, to round by. It is never a tie, for a quotient that ends
    # there would need more significant bits than a largest number of 8 bits has.
    doubled = _U(shift_left(_W(q), _W(25) if below_one else _W(24)) // _W(a))
    return _U(_U(_U(doubled + _U(1)) >> _U(1)) - _HIDDEN), exponent


@step
def shared_exponent(amax, largest, shared_mantissa):
    """GAM-002 to GAM-004: the exponent of a block's scale; SCL-005, if the mantissa is 0."""
    if amax == _U(0):
        return _I(0)
    mantissa, exponent = ideal_scale(amax, largest)
    exponent = _I(exponent - _I(1)) if shared_mantissa > mantissa else exponent
    return min(exponent, _LARGEST_EXPONENT)


@step
def own_scale(amax, largest):
    """SCL-004: the ideal scale itself, as binary32 bits."""
    if amax == _U(0):
        return _U(0x3F800000)
    mantissa, exponent = ideal_scale(amax, largest)
    if exponent > _LARGEST_EXPONENT:
        return _FLT_MAX
    return _U(_U(_U(exponent + _I(127)) << _U(23)) | mantissa)


# ---------------------------------------------------------------------- loops


@step
def extremes_of_row(x, pattern, high, low):
    """SCL-001: gather the extremes of each column; skip the numbers that do not count.

    Without `low`, gather the largest alone.
    """
    use_full_vectors()
    word = x.dtype.type
    for i in range(x.size):
        magnitude = word(x[i] & pattern.magnitude)
        counts = magnitude < pattern.end
        high[i] = max(high[i], magnitude if counts else word(0))
        if low is not None:
            low[i] = min(low[i], word(magnitude - word(1)) if counts else pattern.all)


@kernel
def find_extremes(x, place, part, bounds, block, pattern, amax, below_amin):
    """Find the largest magnitude of each block that a part touches, and the smallest less one.

    Zero less one is the largest word: it counts as nothing. Without `below_amin`, find the largest
    alone.
    """
    use_full_vectors()
    high = np.empty(STRIP, x.dtype)
    low = None if below_amin is None else np.empty(STRIP, x.dtype)
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        for piece in range(bounds.size - 1):
            high[:] = 0
            if low is not None:
                low[:] = pattern.all
            for row in range(bounds[piece], bounds[piece + 1]):
                start = (row - place.top) * place.stride + left - place.left
                prefetch_row(x, start + place.stride, right - left)
                extremes_of_row(x[start : start + right - left], pattern, high, low)
            i = bounds[piece] // block.rows - part.top // block.rows
            begin = part.left // block.columns
            largest_of_segments(high, block, left, right, begin, amax[i])
            if low is not None:
                smallest_of_segments(low, block, left, right, begin, below_amin[i])


@step
def largest_of_segments(words, block, left, right, begin, found):
    """Take the largest word of each block in the strip from left to right."""
    here, vectors = whole_segments(block, left, right), block.columns // LANES
    next_one = left // block.columns
    for k in range(here):
        largest = found[next_one - begin + k]
        for vector in range(k * vectors, (k + 1) * vectors):
            largest = max(largest, largest_of_lanes(words, vector * LANES))
        found[next_one - begin + k] = largest
    for column in range(next_one + here, (right - 1) // block.columns + 1):
        first, last = segment(column, block, left, right)
        found[column - begin] = max(found[column - begin], largest_of(words[first:last]))


@step
def smallest_of_segments(words, block, left, right, begin, found):
    """Take the smallest word of each block in the strip from left to right."""
    for column in range(left // block.columns, (right - 1) // block.columns + 1):
        first, last = segment(column, block, left, right)
        found[column - begin] = min(found[column - begin], smallest_of(words[first:last]))


@step
def largest_of(words):
    """Return the largest of some words."""
    found = words[0]
    for k in range(words.size):
        found = max(found, words[k])
    return found


@step
def smallest_of(words):
    """Return the smallest of some words."""
    found = words[0]
    for k in range(words.size):
        found = min(found, words[k])
    return found


@kernel
def shared_exponents(amax, largest, shared_mantissas, exponents):
    """Write the exponent of each block's scale, as it is stored."""
    for i in range(amax.size):
        exponents[i] = np.uint8(shared_exponent(amax[i], largest, shared_mantissas[i]) + _I(127))


@kernel
def own_scales(amax, largest, scales):
    """Write the scale of each block."""
    for i in range(amax.size):
        scales[i] = own_scale(amax[i], largest)


@kernel
def ideal_mantissas(amax, largest, mantissas):
    """GAM-001: the mantissa of each group; 0 where the amax is."""
    for i in range(amax.size):
        mantissas[i] = ideal_scale(amax[i], largest)[0] if amax[i] != _U(0) else _U(0)


# ---------------------------------------------------------------------- whole tensors


def amax_of_blocks(
    numbers: Numbers, partition: Partition, threads: int | None, counted: Counted = "finite"
) -> NDArray[np.uint32]:
    """Return the largest magnitude of each block among the numbers that count, as bits."""
    dtype = _word_of(numbers)
    amax = Gathered(partition, dtype, 0, np.maximum)
    _gather(numbers, partition, threads, _pattern(dtype, counted), amax, None)
    return _as_binary32(amax.blocks)


def extremes(numbers: Numbers, partition: Partition, threads: int | None) -> Extremes:
    """Return the extremes of each block among its finite numbers."""
    dtype = _word_of(numbers)
    pattern = _pattern(dtype, "finite")
    amax = Gathered(partition, dtype, 0, np.maximum)
    below_amin = Gathered(partition, dtype, int(pattern.all), np.minimum)
    _gather(numbers, partition, threads, pattern, amax, below_amin)
    amin = below_amin.blocks + dtype.type(1)
    return Extremes(_as_binary32(amax.blocks), _as_binary32(amin))


def _word_of(numbers: Numbers) -> np.dtype[Any]:
    return np.dtype(np.uint16 if numbers.is_bf16 else np.uint32)


def _as_binary32(magnitudes: NDArray[Any]) -> NDArray[np.uint32]:
    if magnitudes.dtype == _U:
        return magnitudes
    return magnitudes.astype(_U) << _U(16)


def _gather(
    numbers: Numbers,
    partition: Partition,
    threads: int | None,
    pattern: Pattern,
    amax: Gathered,
    below_amin: Gathered | None,
) -> None:
    """Find the extremes of each block, or the largest magnitudes alone."""
    block = Sides(*partition.block)

    def find(part: Part) -> None:
        words = words_of(numbers, partition.columns, part)
        high = amax.room_for(part)
        low = None if below_amin is None else below_amin.room_for(part)
        bounds = row_bounds(part, block.rows)
        find_extremes(words.bits, words.place, part, bounds, block, pattern, high, low)
        amax.add(part, high)
        if below_amin is not None and low is not None:
            below_amin.add(part, low)

    for_each_part(find, partition.rows, partition.columns, threads)


def extremes_of_groups(blocks: Extremes, partition: Partition) -> Extremes:
    """Return the extremes of each group from those of its blocks; an amin of 0 stands for none."""
    amax = over_groups(blocks.amax, partition, np.maximum)
    return Extremes(amax, over_groups(blocks.amin - _U(1), partition, np.minimum) + _U(1))


def scales_for(
    kind: Scaling,
    amax: NDArray[np.uint32],
    fmt: Format,
    partition: Partition,
    given: float | None = None,
) -> Scales:
    """Return the scale of each block from its amax, or from one that is given (SCL-006)."""
    largest = np.float32(fmt.largest).view(np.uint32)
    if given is not None and kind != "gam":
        amax = np.full_like(amax, np.float32(given).view(np.uint32))
    if kind == "fp32":
        scale = np.empty_like(amax)
        own_scales(amax.reshape(-1), largest, scale.reshape(-1))
        return Scales(scale, None, None)
    mantissa = np.zeros(partition.group_grid, np.uint32)
    if kind == "gam":
        group_amax = over_groups(amax, partition, np.maximum)
        if given is not None:
            group_amax = np.full_like(group_amax, np.float32(given).view(np.uint32))
        ideal_mantissas(group_amax.reshape(-1), largest, mantissa.reshape(-1))
    shared = np.ascontiguousarray(to_blocks(mantissa, partition))
    exponent = np.empty(amax.shape, np.uint8)
    shared_exponents(amax.reshape(-1), largest, shared.reshape(-1), exponent.reshape(-1))
    scale = exponent.astype(np.uint32) << _U(23) | shared  # GAM-005; it is normal (THM-002)
    return Scales(scale, exponent, mantissa if kind == "gam" else None)
