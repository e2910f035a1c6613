"""Extremes, scales and zero points of blocks of integers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.integer_grids import IntegerGrid
from mor_ref.engine.blocks import Gathered, Part, Sides, for_each_part, row_bounds, words_of
from mor_ref.engine.dequantization import canonical
from mor_ref.engine.intrinsics import bits_of, float_of, sign_mask, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.strips import STRIP, prefetch_row, segment
from mor_ref.engine.widening import widen
from mor_ref.schemes.affine.definition import SMALLEST_NORMAL, AffineProfile

_U = np.uint32
_I = np.int32
_F = np.float32
_NAN = _U(0x7FFFFFFF)
_MAGNITUDE = _U(0x7FFFFFFF)
_KEY_OF_INFINITY = _I(0x7F800000)
LEAST, MOST = _I(-(1 << 31)), _I((1 << 31) - 1)
_HALF = _F(0.5)
_F16_INFINITE, _F16_NORMAL = _U(0x477FF000), _U(0x38800000)
_TO_BF16, _TO_F16 = _I(7), _I(10)
NARROW = {"bf16": _TO_BF16, "f16": _TO_F16}
_ZERO_BY_LIMIT, _ZERO_BY_ONE, _ZERO_BY_RANGE = range(3)
_ZERO_SCALES = {"limit": _ZERO_BY_LIMIT, "one": _ZERO_BY_ONE, "range of one": _ZERO_BY_RANGE}


class BlockRule(NamedTuple):
    """The numbers of a profile and a grid, as the loop over blocks takes them."""

    symmetric: bool
    stores_amax: bool
    early_zero: bool
    zero_scale: int
    steps: np.float32
    smallest: np.float32
    smallest_high: np.float32
    inverse_factor: np.float32
    lowest: np.float32
    highest: np.float32
    middle: np.int32


class BlockFields(NamedTuple):
    """The fields of blocks; numbers are binary32 bits."""

    minimum: NDArray[np.uint32]
    maximum: NDArray[np.uint32]
    scale: NDArray[np.uint32]
    inverse_scale: NDArray[np.uint32]
    zero_float: NDArray[np.uint32]
    zero_point: NDArray[np.int32]
    zero: NDArray[np.uint32]  # as the arithmetic has it


# ---------------------------------------------------------------------- extremes


@step
def key_of(bits):
    """AFF-003: an integer in the order of numbers; NaNs lie beyond the infinities."""
    return _I(_I(bits) ^ _I(_U(sign_mask(bits) & _MAGNITUDE)))


@step
def number_of(key):
    """Return the bits of the number of a key; a zero has no sign, and NaN is canonical."""
    if key > _KEY_OF_INFINITY or key < _I(~_KEY_OF_INFINITY):
        return _NAN
    if key == _I(-1):
        return _U(0)
    return _U(_U(key) ^ _U(sign_mask(_U(key)) & _MAGNITUDE))


@step
def extremes_row(x, lowest, highest):
    """AFF-003: the extremes of each column of a strip."""
    use_full_vectors()
    for i in range(x.size):
        key = key_of(widen(x[i], _U))
        lowest[i] = min(lowest[i], key)
        highest[i] = max(highest[i], key)


@step
def extremes_of(lowest, highest):
    """AFF-003: the extremes of some columns."""
    use_full_vectors()
    low, high = MOST, LEAST
    for c in range(lowest.size):
        low, high = min(low, lowest[c]), max(high, highest[c])
    return low, high


@kernel
def extremes_part(x, place, part, bounds, block, least, most):
    """AFF-003: the extremes of the blocks of a part."""
    use_full_vectors()
    lowest, highest = np.empty(STRIP, _I), np.empty(STRIP, _I)
    for left in range(part.left, part.right, STRIP):
        right = min(left + STRIP, part.right)
        width = right - left
        for k in range(bounds.size - 1):
            lowest[:width], highest[:width] = MOST, LEAST
            for row in range(bounds[k], bounds[k + 1]):
                start = (row - place.top) * place.stride + left - place.left
                prefetch_row(x, start + place.stride, width)
                extremes_row(x[start : start + width], lowest, highest)
            i = bounds[k] // block.rows - part.top // block.rows
            for column in range(left // block.columns, (right - 1) // block.columns + 1):
                first, last = segment(column, block, left, right)
                j = column - part.left // block.columns
                low, high = extremes_of(lowest[first:last], highest[first:last])
                least[i, j], most[i, j] = min(least[i, j], low), max(most[i, j], high)


def extremes(
    numbers: Numbers, cut: Partition, threads: int | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the keys of the minimum and the maximum of each block."""
    least = Gathered(cut, _I, int(MOST), np.minimum)
    most = Gathered(cut, _I, int(LEAST), np.maximum)
    block = Sides(*cut.block)

    def find(part: Part) -> None:
        words = words_of(numbers, cut.columns, part)
        low, high = least.room_for(part), most.room_for(part)
        extremes_part(*words, part, row_bounds(part, block.rows), block, low, high)
        least.add(part, low)
        most.add(part, high)

    for_each_part(find, cut.rows, cut.columns, threads)
    return least.blocks, most.blocks


# ---------------------------------------------------------------------- fields of blocks


@step
def narrowed(x, to):
    """AFF-002: a binary32 number, rounded to the format of an arithmetic."""
    if to is None:
        rounded = x
    else:
        rounded = rounded_to(x, to)
    return rounded


@step
def rounded_to(x, to):
    """AFF-002: a number, rounded to bfloat16 or binary16."""
    word = bits_of(x)
    size, sign = _U(word & _MAGNITUDE), _U(word & ~_MAGNITUDE)
    if size >= _U(0x7F800000):
        return x
    if to == _TO_BF16:
        odd = _U(_U(size >> _U(16)) & _U(1))
        return float_of(_U(_U(_U(_U(size + _U(0x7FFF)) + odd) & _U(0xFFFF0000)) | sign))
    if size < _F16_NORMAL:
        units = _F(_F(float_of(size) + _HALF) - _HALF)
        return float_of(_U(bits_of(units) | sign))
    if size >= _F16_INFINITE:
        return float_of(_U(_U(0x7F800000) | sign))
    odd = _U(_U(size >> _U(13)) & _U(1))
    return float_of(_U(_U(_U(_U(size + _U(0xFFF)) + odd) & _U(0xFFFFE000)) | sign))


@step
def before_limit(low, high, narrow, rule):
    """AFF-004: the scale of a block before its limit."""
    if rule.symmetric:
        width = low if low != low else max(low, high)
    else:
        width = narrowed(_F(high + low), narrow)
    if width == _F(0) and rule.zero_scale == _ZERO_BY_ONE:
        return _F(1)
    if width == _F(0) and rule.zero_scale == _ZERO_BY_RANGE:
        width = _F(1)
    return width if rule.stores_amax else narrowed(_F(width / rule.steps), narrow)


@step
def zero_of(zero_float, narrow, rule):
    """AFF-005: the code of zero."""
    if rule.symmetric:
        return rule.middle
    if zero_float != zero_float:
        return _I(rule.highest)
    code = narrowed(_F(rule.lowest + _F(np.rint(zero_float))), narrow)
    return _I(min(max(code, rule.lowest), rule.highest))


@kernel
def fill_blocks(least, most, scales, zeros, narrow, rule, fields):
    """AFF-003 to AFF-007: the fields of each block."""
    for k in range(least.size):
        fields.minimum[k], fields.maximum[k] = number_of(least[k]), number_of(most[k])
        if max(fields.minimum[k] & _MAGNITUDE, fields.maximum[k] & _MAGNITUDE) == _NAN:
            fields.minimum[k] = fields.maximum[k] = _NAN
        minimum, maximum = float_of(fields.minimum[k]), float_of(fields.maximum[k])
        low, high = _F(max(_F(0), _F(-minimum))), max(rule.smallest_high, maximum)
        if minimum != minimum:
            low = high = minimum
        delta = before_limit(low, high, narrow, rule)
        scale = delta if delta != delta or delta > rule.smallest else rule.smallest
        if scales is not None:
            delta = scale = narrowed(float_of(scales[k]), narrow)
        zero_float = _F(0)
        if not rule.symmetric:
            zero_float = narrowed(_F(low / (delta if rule.early_zero else scale)), narrow)
        zero = zero_of(zero_float, narrow, rule)
        if zeros is not None:
            zero = zeros[k]
        fields.scale[k] = canonical(scale)
        reciprocal = narrowed(_F(_F(1) / scale), narrow)
        fields.inverse_scale[k] = canonical(_F(rule.inverse_factor * reciprocal))
        fields.zero_float[k] = canonical(zero_float)
        fields.zero_point[k] = zero
        fields.zero[k] = bits_of(narrowed(_F(zero), narrow))


# ---------------------------------------------------------------------- whole tensors


def block_rule(
    profile: AffineProfile, grid: IntegerGrid, symmetric: bool, narrow: str
) -> BlockRule:
    """Return the numbers of a profile and a grid for blocks (AFF-004, AFF-005)."""
    width = grid.highest - grid.lowest
    steps = width / 2 if profile.divisor == "half" else float(grid.highest)
    has_no_middle = grid.signed or profile.sign_by_numbers
    middle = 0 if has_no_middle else (1 << grid.bits - 1) - (grid.bits in profile.low_middle)
    smallest = SMALLEST_NORMAL[narrow] if profile.smallest is None else profile.smallest
    return BlockRule(
        symmetric,
        profile.stores_amax,
        profile.early_zero,
        _ZERO_SCALES[profile.zero_scale],
        _F(steps if symmetric else width),
        _F(smallest),
        _F(profile.smallest_high),
        _F(profile.inverse_factor),
        _F(grid.lowest),
        _F(grid.highest),
        _I(middle),
    )


def grid_of(grid: IntegerGrid, least: NDArray[np.int32], most: NDArray[np.int32]) -> IntegerGrid:
    """Return the grid that has a sign if a block without NaN has a negative number (AFF-005)."""
    numbers = (least >= ~_KEY_OF_INFINITY) & (most <= _KEY_OF_INFINITY)
    signed = bool((numbers & (least < -1)).any())
    return IntegerGrid(f"{'' if signed else 'u'}int{grid.bits}", grid.bits, signed)


def affine_blocks(
    ends: tuple[NDArray[np.int32], NDArray[np.int32]],
    profile: AffineProfile,
    grid: IntegerGrid,
    symmetric: bool,
    narrow: str,
    scales: NDArray[np.uint32] | None,
    zeros: NDArray[np.int32] | NDArray[np.float32] | None,
) -> BlockFields:
    """Return the fields of blocks, given the keys of their extremes."""
    least, most = (keys.reshape(-1) for keys in ends)
    fields = BlockFields(
        np.empty(least.size, _U),
        np.empty(least.size, _U),
        np.empty(least.size, _U),
        np.empty(least.size, _U),
        np.empty(least.size, _U),
        np.empty(least.size, _I),
        np.empty(least.size, _U),
    )
    rule = block_rule(profile, grid, symmetric, narrow)
    whole = None if profile.float_zeros else zeros
    fill_blocks(least, most, scales, whole, NARROW.get(narrow), rule, fields)
    if profile.float_zeros and zeros is not None:
        fields.zero[:] = zeros.view(_U)
    return fields
