"""The chapter on FP8-LM: loops over tensors, which read and write each number once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, code_dtype
from mor_ref.definitions.format import Format
from mor_ref.engine.decoding import decoded, layout_of
from mor_ref.engine.dequantization import canonical
from mor_ref.engine.intrinsics import bits_of, float_of, use_full_vectors
from mor_ref.engine.kernel import kernel, step
from mor_ref.engine.nearest import grid_of, nearest, with_sign
from mor_ref.engine.parallel import for_each, for_each_slice, thread_count
from mor_ref.engine.strips import STRIP

Floats = NDArray[np.float32]

_U = np.uint32
_F = np.float32
_D = np.float64
_NAN = _U(0x7FFFFFFF)
_SIGN, _MAGNITUDE = _U(0x80000000), _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_TILE = 1 << 16  # numbers: the codes of a few ranks stay in the second level cache

# ---------------------------------------------------------------------- amax


@kernel
def largest_of_tensor(x):
    """FLM-001: the bits of the largest |x|; a NaN is above all."""
    use_full_vectors()
    largest = _U(0)
    for i in range(x.size):
        largest = max(largest, _U(bits_of(x[i]) & _MAGNITUDE))
    return largest


def amax_of(bits: Sequence[int]) -> np.float32:
    """Return the largest of magnitudes as a number; every NaN is the same."""
    largest = max(bits, default=0)
    return _U(largest if largest <= _INFINITY else _NAN).view(_F)


def largest_magnitude(x: Floats) -> np.float32:
    """Return the largest |x| of a tensor; a NaN counts most (FLM-001)."""
    flat, magnitudes = np.ascontiguousarray(x).reshape(-1), list[int]()
    for_each_slice(
        lambda part: magnitudes.append(int(largest_of_tensor(flat[part]))),
        flat.size,
        thread_count(None, flat.size),
    )
    return amax_of(magnitudes)


# ---------------------------------------------------------------------- casts


@step
def cast_number(scaled, inverse, grid):
    """FLM-005: the code of a number times its scale, and y."""
    bits = bits_of(scaled)
    magnitude = _F(abs(scaled))
    code, value = nearest(magnitude, grid)
    y = _F(float_of(_U(bits_of(value) | _U(bits & _SIGN))) * inverse)
    y = y if scaled == scaled else float_of(_NAN)
    return with_sign(code, magnitude, bits, grid), float_of(canonical(y))


@step
def cast_row(x, scale, inverse, grid, codes, y):
    """FLM-005 for numbers with one scale."""
    use_full_vectors()
    for i in range(x.size):
        codes[i], y[i] = cast_number(_F(x[i] * scale), inverse, grid)


@kernel
def cast_rows(x, columns, scale, inverse, grid, codes, y):
    """FLM-005 for rows, each with a scale."""
    for row in range(scale.size):
        first, last = row * columns, (row + 1) * columns
        cast_row(x[first:last], scale[row], inverse[row], grid, codes[first:last], y[first:last])


@kernel
def cast_in_place(y, scale, inverse, grid, codes):
    """FLM-005 for numbers with one scale, in whose place is y then.

    New arrays take longer than the arithmetic: their pages are new to the process.
    """
    use_full_vectors()
    for i in range(y.size):
        codes[i], y[i] = cast_number(_F(y[i] * scale), inverse, grid)


def cast(x: Floats, scale: Any, inverse: Any, fmt: Format) -> tuple[Bits, Floats]:
    """Return the codes of x, and y; with one scale, or with one for each number."""
    flat, grid, is_one = np.ascontiguousarray(x).reshape(-1), grid_of(fmt), np.ndim(scale) == 0
    codes, y = np.empty(flat.size, code_dtype(fmt)), np.empty(flat.size, np.float32)
    scales, inverses = (np.asarray(factor, np.float32).reshape(-1) for factor in (scale, inverse))

    def cast_slice(part: slice) -> None:
        rows, columns = (slice(0, 1), part.stop - part.start) if is_one else (part, 1)
        cast_rows(flat[part], columns, scales[rows], inverses[rows], grid, codes[part], y[part])

    for_each_slice(cast_slice, flat.size, thread_count(None, flat.size))
    return codes.reshape(x.shape), y.reshape(x.shape)


def recast(y: Floats, scale: np.float32, inverse: np.float32, fmt: Format) -> Bits:
    """Return the codes of numbers, and write y in their place."""
    flat, grid = y.reshape(-1), grid_of(fmt)
    codes: Bits = np.empty(flat.size, code_dtype(fmt))
    for_each_slice(
        lambda part: cast_in_place(flat[part], scale, inverse, grid, codes[part]),
        flat.size,
        thread_count(None, flat.size),
    )
    return codes.reshape(y.shape)


# ---------------------------------------------------------------------- sums of ranks


@kernel
def codes_of_rank(x, scale, inverse, shared, grid, codes):
    """FLM-007 and FLM-008: codes with the own scale, or of y with the shared one, if there is."""
    use_full_vectors()
    for i in range(x.size):
        code, y = cast_number(_F(x[i] * scale), inverse, grid)
        if shared is not None:
            code, _ = cast_number(_F(y * shared), inverse, grid)
        codes[i] = code


@step
def add_rank(codes, layout, sums):
    """FLM-009: add the numbers of a rank to exact sums; a number that is not finite counts as NaN.

    binary64 holds each sum of up to 4,096 ranks.
    """
    use_full_vectors()
    for i in range(codes.size):
        bits = decoded(_U(codes[i]), layout)
        is_finite = _U(bits & _MAGNITUDE) < _INFINITY
        sums[i] += _D(float_of(bits) if is_finite else float_of(_NAN))


@step
def rounded_to_odd(total):
    """Return the binary32 number of a sum that is exact, or the odd one next to it.

    So the next rounding, to fewer bits, is that of the sum.
    """
    near = _F(total)
    below = _U(bits_of(near) - _U(abs(_D(near)) > abs(total)))
    return float_of(_U(below | _U(_D(near) != total)))


@step
def round_sums(sums, size, grid):
    """FLM-009: the numbers of the codes of sums."""
    use_full_vectors()
    for i in range(size):
        _, y = cast_number(rounded_to_odd(sums[i]), _F(1), grid)
        sums[i] = _D(y)


@step
def finish_sums(sums, back, grid, codes, y):
    """FLM-009: the codes of sums, and y."""
    use_full_vectors()
    for i in range(codes.size):
        codes[i], y[i] = cast_number(rounded_to_odd(sums[i]), back, grid)


@kernel
def sum_ranks(codes, first, last, layout, grid, by_rank, back, out, y):
    """FLM-009: the sums of some numbers of all ranks; with by_rank, a sum is rounded each time."""
    sums = np.empty(STRIP, _D)
    for left in range(first, last, STRIP):
        right = min(left + STRIP, last)
        sums[:] = 0
        for rank in range(codes.shape[0]):
            add_rank(codes[rank, left:right], layout, sums)
            if by_rank:
                round_sums(sums, right - left, grid)
        finish_sums(sums, back, grid, out[left:right], y[left:right])


def all_reduce(
    ranks: Sequence[Floats],
    scales: Sequence[tuple[np.float32, np.float32, np.float32 | None]],
    fmt: Format,
    sums: str,
    back: np.float32,
) -> tuple[Bits, Bits, Floats]:
    """Return the codes of each rank, and the codes and y of their sums.

    `scales` has the scale of each rank, its inverse, and the shared scale if it requantizes.
    """
    flat = [np.ascontiguousarray(tensor).reshape(-1) for tensor in ranks]
    size, layout, grid = flat[0].size, layout_of(fmt), grid_of(fmt)
    codes: Bits = np.empty((len(flat), size), code_dtype(fmt))
    out, y = np.empty(size, codes.dtype), np.empty(size, np.float32)

    def reduce_tile(first: int) -> None:
        last = min(first + _TILE, size)
        for x, factors, rank_codes in zip(flat, scales, codes, strict=True):
            codes_of_rank(x[first:last], *factors, grid, rank_codes[first:last])
        sum_ranks(codes, first, last, layout, grid, sums == "by_rank", back, out, y)

    for_each(reduce_tile, range(0, size, _TILE), thread_count(None, size))
    return codes, out, y


def sums_of(codes: Bits, fmt: Format, sums: str) -> Bits:
    """Return the codes of sums of ranks, whose codes are along the first axis."""
    flat = np.ascontiguousarray(codes).reshape(len(codes), -1)
    size = flat.shape[1]
    out, y = np.empty(size, flat.dtype), np.empty(size, np.float32)
    rules = layout_of(fmt), grid_of(fmt), sums == "by_rank", np.float32(1)
    sum_ranks(flat, 0, size, *rules, out, y)
    return out.reshape(codes.shape[1:])
