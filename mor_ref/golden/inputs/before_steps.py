"""Tensors that steps before the blocks turn into given ones, and columns that are kept or not."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.before_blocks import Hadamard, KeptColumns, Step, kept_by
from mor_ref.exact.before_blocks import transformed_back
from mor_ref.golden.inputs.edges import bell, in_source, narrowed
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_array, numbers_of
from mor_ref.operations.random_words import random_words

_LOW = np.uint32(0xFFFF)
_SIGN, _MAGNITUDE, _INFINITY = (np.uint32(bits) for bits in (1 << 31, (1 << 31) - 1, 0x7F800000))
_ONE_BINADE = 1 << 23
_KEPT = 8  # every so many columns, large numbers stay
_ROWS = 5
_LARGEST = 1 << 14  # numbers of a tensor of runs


def before_steps(tensor: Tensor, before: Sequence[Step], *, keeps: bool) -> Tensor:
    """Return a tensor that steps turn into a given one, but for roundings and large numbers.

    Large numbers, for which columns would be kept, become less. If it `keeps` columns, large
    numbers stay in every eighth one; else rows as a whole become less, so that ties stay.
    """
    if not before:
        return tensor
    x, source, kept = tensor.x, tensor.source, kept_by(before)
    if kept is not None and not keeps:  # so that the way back does not overflow
        x = narrowed(_rows_lowered(f32_array(numbers_of(x, source)).reshape(x.shape), kept), source)
    for step in reversed(before):
        numbers = numbers_of(x, source)
        if isinstance(step, Hadamard):
            x = in_source(transformed_back(numbers, x.shape[1], step), source).reshape(x.shape)
        else:
            lowered = _lowered_but_some if keeps else _rows_lowered
            x = narrowed(lowered(f32_array(numbers).reshape(x.shape), step), source)
    return Tensor(tensor.name, source, x)


def _rows_lowered(bits: NDArray[np.uint32], step: KeptColumns) -> NDArray[np.uint32]:
    """Return numbers with each row times a power of two, so that all of it is below the limit."""
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        amax = np.max(np.abs(x), axis=1, keepdims=True, where=np.isfinite(x), initial=0)
        binades = np.frexp(amax)[1] - np.frexp(np.float32(step.limit))[1] + 1
        lowered = np.ldexp(x, np.where(amax < np.float32(step.limit), 0, -binades))
    return np.ascontiguousarray(lowered, np.float32).view(np.uint32)


def _lowered_but_some(bits: NDArray[np.uint32], step: KeptColumns) -> NDArray[np.uint32]:
    """Return numbers below the limit, but for some columns; NaN and infinities stay."""
    least = np.float32(step.limit).view(np.uint32)
    magnitude = bits & _MAGNITUDE
    over = (magnitude >= least) & (magnitude < _INFINITY)
    over[:, _KEPT // 2 :: _KEPT] = False
    binades = (magnitude >> 23) - (least >> 23) + 1
    lower = magnitude - np.minimum(binades, magnitude >> 23) * np.uint32(_ONE_BINADE)
    lowered: NDArray[np.uint32] = np.where(over, lower | bits & _SIGN, bits)
    return lowered


def in_runs(before: Sequence[Step], size: Size) -> Iterator[Tensor]:
    """Yield tensors of whole runs of Hadamard matrices, with and without more behind them.

    Special numbers and zeros make whole runs special. Sums of small integers are exact.
    """
    for step in dict.fromkeys(step for step in before if isinstance(step, Hadamard)):
        n, rows = step.size, max(1, min(_ROWS, _LARGEST // (5 * step.size // 2)))
        for k in range(size.factor):
            bits = _with_low_bits(bell(rows * 2 * n, size.seed, 540 + k), size, 520 + k)
            bits = bits.reshape(rows, 2 * n)
            yield Tensor(f"runs_of_{n}_{k}.f32", "f32", bits)
            yield Tensor(f"runs_of_{n}_{k}.bf16", "bf16", narrowed(bits, "bf16"))
            wide = bell(rows * (2 * n + n // 2), size.seed, 560 + k)
            more = _with_low_bits(wide, size, 530 + k).reshape(rows, -1)
            yield Tensor(f"run_and_more_{n}_{k}.f32", "f32", more)
            words = random_words(rows * n, size.seed, 580 + k).reshape(rows, n)
            integers = (words % np.uint64(9)).astype(np.float32) - np.float32(4)
            yield Tensor(f"integers_{n}_{k}.f32", "f32", integers.view(np.uint32))
        for name, special in (("nan", 0x7FC00000), ("infinity", 0xFF800000), ("huge", 0x7F7FFFFF)):
            one = bits.copy()
            one[-1, n + n // 2] = one[0, 0] = special
            yield Tensor(f"{name}_in_run_{n}.f32", "f32", one)
        yield Tensor(f"zeros_in_runs_{n}.f32", "f32", bits & _SIGN)


def _with_low_bits(bits: NDArray[np.uint32], size: Size, stream: int) -> NDArray[np.uint32]:
    """Return numbers with other low bits of their significands, so that sums are rounded."""
    words = random_words(bits.size, size.seed, stream).astype(np.uint32)
    return bits & ~_LOW | words & _LOW


def next_to_limits(before: Sequence[Step], size: Size) -> Iterator[Tensor]:
    """Yield tensors whose columns have the limit of kept columns as their amax, or are next to it.

    The other numbers are like activations. Of each column, one row has the amax.
    """
    step = kept_by(before)
    if step is None:
        return
    least = int(np.float32(step.limit).view(np.uint32))
    amaxes = [least, least - 1, least + 1, 0x7F800000, 0x7FC00000, least, 1, 0, least - 1]
    columns = 4 * len(amaxes)
    for n in range(size.factor):
        bits = bell(_ROWS * columns, size.seed, 530 + n).reshape(_ROWS, columns).copy()
        magnitude = bits & _MAGNITUDE
        bits = np.where(magnitude >= least, bits & _SIGN | np.uint32(least >> 1), bits)
        for column in range(columns):
            amax = amaxes[column % len(amaxes)] | (column % 2) << 31
            bits[column % _ROWS, column] = amax
        yield Tensor(f"kept_{n}.f32", "f32", _undone_to_step(bits, before))


def _undone_to_step(bits: NDArray[np.uint32], before: Sequence[Step]) -> NDArray[np.uint32]:
    """Return what earlier steps turn into these numbers, but for roundings."""
    earlier = before[: next(k for k, step in enumerate(before) if isinstance(step, KeptColumns))]
    return np.asarray(before_steps(Tensor("", "f32", bits), earlier, keeps=False).x, np.uint32)
