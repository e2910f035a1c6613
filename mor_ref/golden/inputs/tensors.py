"""Tensors of odd shapes, with numbers of all kinds."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.formats import as_format
from mor_ref.golden.inputs.edges import (
    Bits,
    amaxes,
    bell,
    edges_of,
    narrowed,
    to_f16,
    upper_halves,
    wide,
)
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.random_words import random_words

_COUNT = 25  # tensors of a suite of the usual size


class Tensor(NamedTuple):
    """A named tensor: bit patterns in rows and columns, and their format."""

    name: str
    source: str
    x: Unsigned


def tensors(size: Size) -> Iterator[Tensor]:
    """Yield odd shapes, zeros, subnormal and huge numbers, and one non-finite element at a time."""
    for k, shape in enumerate([(1, 1), (1, 37), (33, 1), (5, 37), (24, 48)]):
        bits = _activations(shape, size, 60 + k, outlier=k % 4)
        if 1 in shape:  # a loop over whole fours leaves the last number out
            _exchange_largest_and_last(bits.reshape(-1))
        yield Tensor(f"{shape[0]}x{shape[1]}.f32", "f32", bits)
        yield Tensor(f"{shape[0]}x{shape[1]}.bf16", "bf16", upper_halves(bits))
    base = _activations((9, 40), size, 70, outlier=2)
    for name, pattern in (("nan", 0x7FC1), ("infinity", 0xFF80), ("nearly_infinite", 0x7F7F)):
        narrow = upper_halves(base)
        narrow[3, 17] = pattern
        yield Tensor(f"{name}.bf16", "bf16", narrow)
    base = base[:6]
    zeros = base.copy()
    zeros[:4] &= np.uint32(0x80000000)
    yield Tensor("zeros.f32", "f32", zeros)
    yield Tensor("tiny.f32", "f32", base & np.uint32(0x80FFFFFF))
    yield Tensor("subnormal.f32", "f32", base & np.uint32(0x807FFFFF))
    yield Tensor("huge.f32", "f32", base & np.uint32(0x80FFFFFF) | np.uint32(0x7E000000))
    signalling = base.copy()
    signalling[3, 17], signalling[5, 2] = 0x7F800001, 0xFFC12345
    yield Tensor("nan.f32", "f32", signalling)
    outlier = bell(16 * 40, size.seed, 71).reshape(16, 40) & np.uint32(0x9FFFFFFF)
    outlier[11, 11] = 0x7E123456  # every other number becomes 0, and the error sum exceeds 2^32
    yield Tensor("outlier.f32", "f32", outlier)
    edges = edges_of(as_format("e4m3"))
    finite = edges[(edges & 0x7F800000) != 0x7F800000]
    yield Tensor("edges.f32", "f32", finite[: finite.size // 64 * 64].reshape(-1, 64)[:12])
    patterns = wide(16 * 24, size.seed, 80).reshape(16, 24)
    yield Tensor("patterns.f32", "f32", patterns & np.uint32(0xBFFFFFFF))
    yield from _in_f16(size)
    yield from _random(size)


def _activations(shape: tuple[int, int], size: Size, stream: int, outlier: int) -> Bits:
    """Return numbers like activations; some rows and elements are larger by powers of two."""
    rows, columns = shape
    bits = bell(rows * columns, size.seed, stream).reshape(shape).copy()
    for i in range(0, rows, 5):
        bits[i] += np.uint32((i % 7) << 23)
    bits.reshape(-1)[:: max(1, bits.size // 9)] += np.uint32(outlier << 23)
    return bits


def _exchange_largest_and_last(bits: Bits) -> None:
    largest = int((bits & np.uint32(0x7FFFFFFF)).argmax())
    bits[[largest, -1]] = bits[[-1, largest]]


def _in_f16(size: Size) -> Iterator[Tensor]:
    """Yield binary16 numbers, the smallest and the largest, and one non-finite at a time."""
    base = to_f16(_activations((5, 37), size, 75, outlier=1))
    yield Tensor("5x37.f16", "f16", base)
    extremes = to_f16(_activations((4, 18), size, 76, outlier=2)) & np.uint16(0x83FF)
    extremes[1] |= np.uint16(0x7800)
    extremes[3, :4] = (0x0000, 0x8000, 0x0001, 0xFBFF)
    yield Tensor("extremes.f16", "f16", extremes)
    for name, pattern in (("nan", 0xFC01), ("infinity", 0x7C00)):
        wrong = base[:3, :19].copy()
        wrong[1, 17] = pattern
        yield Tensor(f"{name}.f16", "f16", wrong)


def _random(size: Size) -> Iterator[Tensor]:
    """Yield random tensors of odd shapes: as many as the others, for each factor above 1."""
    for n, word in enumerate(random_words(_COUNT * (size.factor - 1), size.seed, 81).tolist()):
        shape = (1 + word % 33, 1 + (word >> 8) % 49)
        source = ("f32", "bf16", "f16")[n % 3]
        bits = _activations(shape, size, 1000 + n, outlier=n % 4)
        yield Tensor(f"random_{n}.{source}", source, narrowed(bits, source))


def ladders(size: Size) -> Iterator[Tensor]:
    """Yield rows whose largest numbers are edges; the first row has a larger or a huge number."""
    edges = amaxes()
    for name, top in (("near", 0x3F9E3779), ("far", 0x7F7FFFFF)):
        chosen = edges[edges <= top][::7]
        bits = bell(chosen.size * 16, size.seed, 90).reshape(-1, 16).copy()
        bits = np.where(bits & 0x7FFFFFFF > chosen[:, None], chosen[:, None] >> 1, bits)
        bits[:, 5] = chosen
        bits[0, 0] = top
        yield Tensor(f"ladder_{name}.f32", "f32", bits.astype(np.uint32))


def bell_in_bf16(size: Size) -> Tensor:
    """Return bfloat16 numbers like activations, in whole tiles."""
    return Tensor("bell.bf16", "bf16", upper_halves(bell(8 * 64, size.seed, 91).reshape(8, 64)))
