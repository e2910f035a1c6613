"""The chapter on scales: the extremes of blocks, and a scale for each."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.scales import Scaling
from mor_ref.engine.amaxes import Counted, Pattern, find_extremes, pattern_of
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
from mor_ref.engine.intrinsics import shift_left, shift_right
from mor_ref.engine.kernel import kernel, step

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


class BlockScales(NamedTuple):
    """The scale of each block as binary32 bits, and its stored fields."""

    scale: NDArray[np.uint32]
    exponent: NDArray[np.uint8] | None
    mantissa: NDArray[np.uint32] | None


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
def fp32_scale(amax, largest):
    """SCL-004: the ideal scale itself, as binary32 bits."""
    if amax == _U(0):
        return _U(0x3F800000)
    mantissa, exponent = ideal_scale(amax, largest)
    if exponent > _LARGEST_EXPONENT:
        return _FLT_MAX
    return _U(_U(_U(exponent + _I(127)) << _U(23)) | mantissa)


# ---------------------------------------------------------------------- loops


@kernel
def shared_exponents(amax, largest, shared_mantissas, exponents):
    """Write the exponent of each block's scale, as it is stored."""
    for i in range(amax.size):
        exponents[i] = np.uint8(shared_exponent(amax[i], largest, shared_mantissas[i]) + _I(127))


@kernel
def fp32_scales(amax, largest, scales):
    """Write the scale of each block."""
    for i in range(amax.size):
        scales[i] = fp32_scale(amax[i], largest)


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
    _gather(numbers, partition, threads, pattern_of(dtype, counted), amax, None)
    return _as_binary32(amax.blocks)


def extremes(numbers: Numbers, partition: Partition, threads: int | None) -> Extremes:
    """Return the extremes of each block among its finite numbers."""
    dtype = _word_of(numbers)
    pattern = pattern_of(dtype, "finite")
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
    given_amax: float | None = None,
) -> BlockScales:
    """Return the scale of each block from its amax, or from one that is given (SCL-006)."""
    largest = np.float32(fmt.largest).view(np.uint32)
    if given_amax is not None and kind != "gam":
        amax = np.full_like(amax, np.float32(given_amax).view(np.uint32))
    if kind == "fp32":
        scale = np.empty_like(amax)
        fp32_scales(amax.reshape(-1), largest, scale.reshape(-1))
        return BlockScales(scale, None, None)
    mantissa = np.zeros(partition.group_grid, np.uint32)
    if kind == "gam":
        group_amax = over_groups(amax, partition, np.maximum)
        if given_amax is not None:
            group_amax = np.full_like(group_amax, np.float32(given_amax).view(np.uint32))
        ideal_mantissas(group_amax.reshape(-1), largest, mantissa.reshape(-1))
    shared = np.ascontiguousarray(to_blocks(mantissa, partition))
    exponent = np.empty(amax.shape, np.uint8)
    shared_exponents(amax.reshape(-1), largest, shared.reshape(-1), exponent.reshape(-1))
    scale = exponent.astype(np.uint32) << _U(23) | shared  # GAM-005; it is normal (THM-002)
    return BlockScales(scale, exponent, mantissa if kind == "gam" else None)
