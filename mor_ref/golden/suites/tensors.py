"""Whole tensors: quantization with error sums for every partition, and the policies."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mor_ref.catalogue import as_format
from mor_ref.golden.bits import Unsigned
from mor_ref.golden.inputs import Bits, bell, edges_of, to_bf16, wide
from mor_ref.golden.suite import Case, Field, Size, Suite, expected, given
from mor_ref.partition import Cut
from mor_ref.recipes import SCALINGS, Scaling

Grid = tuple[int, int]


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


def _quantize_cases(size: Size) -> Iterator[Case]:
    blocks: list[tuple[Cut, Cut]] = [
        ("tensor", "tensor"), ("row", "tensor"), ("column", "tensor"), ((4, 8), "tensor"),
        ((128, 128), "tensor"), ((4, 8), (8, 16)), ("row", "row"),
    ]  # fmt: skip
    for k, tensor in enumerate(tensors(size)):
        for n, (block, group) in enumerate(blocks):
            for scaling in SCALINGS if group == "tensor" else ("gam",):
                fmt = ("e4m3", "e5m2", "e2m1")[(k + n) % 3]
                yield _quantized(tensor, fmt, scaling, block, group)


def _quantized(tensor: Tensor, fmt: str, scaling: Scaling, block: Cut, group: Cut) -> Case:
    parameters = {
        "format": fmt, "scaling": scaling, "block": _listed(block), "group": _listed(group),
        "source": tensor.source,
    }  # fmt: skip
    name = f"{tensor.name}.{fmt}.{scaling}.{_joined(block)}.{_joined(group)}"
    return Case(name, parameters, {"x": tensor.x})


def _listed(cut: Cut) -> str | list[int]:
    return cut if isinstance(cut, str) else list(cut)


def _joined(cut: Cut) -> str:
    return cut if isinstance(cut, str) else "x".join(map(str, cut))


def _policy_cases(size: Size) -> Iterator[Case]:
    blocks: list[Cut] = [(128, 128), (8, 16), "row"]
    for tensor in tensors(size):
        for k, policy in enumerate(("tensor", "two_way", "three_way", "nvfp4")):
            for block in blocks:
                yield _mixed(tensor, policy, block, SCALINGS[k % 3] if block == "row" else "gam")


def _mixed(tensor: Tensor, policy: str, block: Cut, scaling: Scaling) -> Case:
    parameters = {
        "policy": policy, "scaling": scaling, "block": _listed(block), "source": tensor.source,
    }  # fmt: skip
    name = f"{tensor.name}.{policy}.{scaling}.{_joined(block)}"
    return Case(name, parameters, {"x": tensor.x})


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
SUITES = (
    Suite(
        "quantize",
        "Tensors quantized with scales of every kind and partition",
        "quantize",
        (*(f"BLK-{k:03}" for k in range(1, 5)), "GAM-006", "QNT-004"),
        (
            given("x", "source", "the tensor"),
            *SCALE_FIELDS,
            *ELEMENT_FIELDS,
            *sum_fields(),
        ),
        _quantize_cases,
    ),
    Suite(
        "policies",
        "Tensors under the four policies",
        "mor",
        ("MOR-005",),
        (
            given("x", "source", "the tensor"),
            expected("amax", "f32", "for each unit", "SCL-001"),
            expected("amin", "f32", "for each unit", "MOR-004"),
            *(
                field
                for name in ("e4m3", "e5m2", "nvfp4")
                for field in sum_fields(f"{name}.", f", under {name}")
            ),
            expected("choice", "u8", "for each unit, the rung that it takes", "MOR-001"),
            expected("output", "bf16", "the tensor that comes out", "MOR-006", "QNT-003"),
        ),
        _policy_cases,
    ),
)
