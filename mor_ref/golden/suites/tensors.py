"""Tensors of odd shapes, with numbers of all kinds, and the fields of what is quantized."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.formats import as_format
from mor_ref.golden.inputs.edges import Bits, bell, edges_of, narrowed, to_bf16, to_f16, wide
from mor_ref.golden.model.suite import Field, Size, expected
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.random_words import random_words

Grid = tuple[int, int]
_OTHERS = 25  # tensors of a suite of the usual size


class Tensor(NamedTuple):
    """A tensor of a suite: bit patterns of rows and columns, and what they are of."""

    name: str
    source: str
    x: Unsigned


def _blend(shape: Grid, size: Size, stream: int, outlier: int) -> Bits:
    """Numbers like activations, some rows and single elements larger by powers of two."""
    rows, columns = shape
    bits = bell(rows * columns, size.seed, stream).reshape(shape).copy()
    for i in range(0, rows, 5):
        bits[i] += np.uint32((i % 7) << 23)
    bits.reshape(-1)[:: max(1, bits.size // 9)] += np.uint32(outlier << 23)
    return bits


def tensors(size: Size) -> Iterator[Tensor]:
    """Odd shapes, zeros, subnormal and huge numbers, and one non-finite element at a time."""
    for k, shape in enumerate([(1, 1), (1, 37), (33, 1), (5, 37), (24, 48)]):
        bits = _blend(shape, size, 60 + k, outlier=k % 4)
        yield Tensor(f"{shape[0]}x{shape[1]}.f32", "f32", bits)
        yield Tensor(f"{shape[0]}x{shape[1]}.bf16", "bf16", to_bf16(bits))
    base = _blend((9, 40), size, 70, outlier=2)
    zeros = base.copy()
    zeros[:4] &= np.uint32(0x80000000)
    yield Tensor("zeros.f32", "f32", zeros)
    yield Tensor("tiny.f32", "f32", base & np.uint32(0x80FFFFFF))
    yield Tensor("subnormal.f32", "f32", base & np.uint32(0x807FFFFF))
    yield Tensor("huge.f32", "f32", base & np.uint32(0x80FFFFFF) | np.uint32(0x7E000000))
    for name, pattern in (("nan", 0x7FC1), ("infinity", 0xFF80), ("nearly_infinite", 0x7F7F)):
        narrow = to_bf16(base)
        narrow[3, 17] = pattern
        yield Tensor(f"{name}.bf16", "bf16", narrow)
    signalling = base.copy()
    signalling[3, 17], signalling[5, 2] = 0x7F800001, 0xFFC12345
    yield Tensor("nan.f32", "f32", signalling)
    outlier = bell(24 * 48, size.seed, 71).reshape(24, 48) & np.uint32(0x9FFFFFFF)
    outlier[11, 11] = 0x7E123456  # every other number becomes 0, and the error sum exceeds 2^32
    yield Tensor("outlier.f32", "f32", outlier)
    edges = edges_of(as_format("e4m3"))
    finite = edges[(edges & 0x7F800000) != 0x7F800000]
    yield Tensor("edges.f32", "f32", finite[: finite.size // 64 * 64].reshape(-1, 64)[:12])
    patterns = wide(16 * 24, size.seed, 80).reshape(16, 24)
    yield Tensor("patterns.f32", "f32", patterns & np.uint32(0xBFFFFFFF))
    yield from _in_f16(size)
    yield from _more(size)


def _in_f16(size: Size) -> Iterator[Tensor]:
    """Numbers of binary16, its smallest and largest, and one non-finite element at a time."""
    base = to_f16(_blend((5, 37), size, 75, outlier=1))
    yield Tensor("5x37.f16", "f16", base)
    extremes = to_f16(_blend((4, 18), size, 76, outlier=2)) & np.uint16(0x83FF)
    extremes[1] |= np.uint16(0x7800)
    extremes[3, :4] = (0x0000, 0x8000, 0x0001, 0xFBFF)
    yield Tensor("extremes.f16", "f16", extremes)
    for name, pattern in (("nan", 0xFC01), ("infinity", 0x7C00)):
        wrong = base[:3, :19].copy()
        wrong[1, 17] = pattern
        yield Tensor(f"{name}.f16", "f16", wrong)


def _more(size: Size) -> Iterator[Tensor]:
    """As many random tensors for each more time as there are others, of odd shapes."""
    for n, word in enumerate(random_words(_OTHERS * (size.factor - 1), size.seed, 81).tolist()):
        shape = (1 + word % 33, 1 + (word >> 8) % 49)
        source = ("f32", "bf16", "f16")[n % 3]
        bits = _blend(shape, size, 1000 + n, outlier=n % 4)
        yield Tensor(f"random_{n}.{source}", source, narrowed(bits, source))


def listed(cut: Cut) -> str | list[int]:
    """A cut as parameters have it."""
    return cut if isinstance(cut, str) else list(cut)


def joined(cut: Cut) -> str:
    """A cut as names of cases have it."""
    return cut if isinstance(cut, str) else "x".join(map(str, cut))


def sum_fields(prefix: str = "", of: str = "") -> tuple[Field, ...]:
    """The three sums, for each unit."""
    meanings = {
        "sum": ("the sum of u over a unit", ("ERR-002", "ERR-004")),
        "nonzero": ("how many elements of it count", ("ERR-002",)),
        "nonfinite": ("how many elements of it are lost", ("ERR-003",)),
    }
    return tuple(
        expected(f"{prefix}{name}", "u64", f"{meaning}{of}", *rules)
        for name, (meaning, rules) in meanings.items()
    )


SCALE_FIELDS = (
    expected("amax", "f32", "for each block", "SCL-001"),
    expected("mantissa", "u32", "for each group; 0 but under gam", "GAM-001"),
    expected(
        "exponent", "e8m0", "for each block; 0 under fp32", "SCL-005",
        *(f"GAM-{k:03}" for k in range(2, 6)), views=("transposed",),
    ),
    expected(
        "scale", "f32", "for each block", "SCL-002", "SCL-004", "GAM-005",
        views=("transposed", "reciprocal"),
    ),
)  # fmt: skip
ELEMENT_FIELDS = (
    expected("xs", "f32", "each number under its scale", "QNT-001"),
    expected("code", "format", "the codes", "QNT-001", views=("transposed",)),
    expected("y", "f32", "what they stand for", "QNT-002"),
    expected("d", "f32", "the distance of x and y; 0 where x does not count", "ERR-001"),
    expected("r", "f32", "d / |x|, at most 1", "ERR-001"),
    expected("u", "u32", "r * 2^23 as an integer", "ERR-001"),
)
