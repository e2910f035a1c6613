"""Whole tensors: quantization with error sums for every partition, and the policies."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.catalogue import as_format
from mor_ref.exact import policies, quantization
from mor_ref.golden.bits import Unsigned, codes_array, f32_array, numbers_of
from mor_ref.golden.inputs import Bits, bell, edges_of, to_bf16, wide
from mor_ref.golden.suite import Case, Field, Size, Suite, expected, given
from mor_ref.partition import Cut, partition
from mor_ref.recipes import SCALINGS, Scaling, as_policy

Grid = tuple[int, int]


class Tensor(NamedTuple):
    """A tensor of a suite: bit patterns of rows and columns, and what they are of."""

    name: str
    source: str
    x: Unsigned

    @property
    def rows(self) -> list[list[float]]:
        """The numbers, for the exact model."""
        flat, columns = numbers_of(self.x, self.source), self.x.shape[1]
        return [flat[i * columns : (i + 1) * columns] for i in range(self.x.shape[0])]


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
    yield Tensor("huge.f32", "f32", base & np.uint32(0x80FFFFFF) | np.uint32(0x7E000000))
    for name, pattern in (("nan", 0x7FC1), ("infinity", 0xFF80), ("nearly_infinite", 0x7F7F)):
        narrow = to_bf16(base)
        narrow[3, 17] = pattern
        yield Tensor(f"{name}.bf16", "bf16", narrow)
    edges = edges_of(as_format("e4m3"))
    finite = edges[(edges & 0x7F800000) != 0x7F800000]
    yield Tensor("edges.f32", "f32", finite[: finite.size // 64 * 64].reshape(-1, 64)[:12])
    patterns = wide(16 * 24, size.seed, 80).reshape(16, 24)
    yield Tensor("patterns.f32", "f32", patterns & np.uint32(0xBFFFFFFF))


def _stored(found: dict[Grid, Any], grid: Grid, entry: Any) -> list[list[Any]]:
    return [[entry(found[i, j]) for j in range(grid[1])] for i in range(grid[0])]


def sums_of(found: dict[Grid, quantization.ErrorSum], grid: Grid) -> dict[str, NDArray[np.uint64]]:
    """The three sums of each unit."""
    return {
        name: np.array(_stored(found, grid, lambda e, n=name: getattr(e, n)), np.uint64).reshape(
            grid
        )
        for name in ("sum", "nonzero", "nonfinite")
    }


def floats_of(found: dict[Grid, Any], grid: Grid, entry: Any) -> Bits:
    """A binary32 number for each place of a grid."""
    return f32_array(v for row in _stored(found, grid, entry) for v in row).reshape(grid)


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
    cut = partition(tensor.x.shape, block, group)
    target = as_format(fmt)
    found = quantization.quantize(tensor.rows, target, scaling, cut)
    elements = [e for row in found.elements for e in row]
    arrays: dict[str, Unsigned] = {
        "x": tensor.x,
        "code": codes_array([e.code for e in elements], target).reshape(tensor.x.shape),
        "y": f32_array(e.y for e in elements).reshape(tensor.x.shape),
        "amax": floats_of(found.amax, cut.grid, lambda a: a),
        "scale": floats_of(found.scale, cut.grid, lambda s: s.value),
        "exponent": np.array(
            _stored(found.scale, cut.grid, lambda s: s.exponent_code or 0), np.uint8
        ).reshape(cut.grid),
        "mantissa": np.array(
            _stored(found.mantissa, cut.group_grid, lambda m: m if scaling == "gam" else 0),
            np.uint32,
        ).reshape(cut.group_grid),
        **sums_of(found.error, cut.grid),
    }
    parameters = {
        "format": fmt, "scaling": scaling, "block": _listed(block), "group": _listed(group),
        "source": tensor.source,
    }  # fmt: skip
    name = f"{tensor.name}.{fmt}.{scaling}.{_joined(block)}.{_joined(group)}"
    return Case(name, parameters, arrays)


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
    rules = as_policy(policy)
    cut = partition(tensor.x.shape, block)
    own = tensor.x.tolist()
    kept = (lambda i, j: own[i][j]) if tensor.source == "bf16" else None
    found = policies.mix(tensor.rows, rules, scaling, cut, kept)
    grid = cut.grid if rules.unit == "block" else cut.group_grid
    arrays: dict[str, Unsigned] = {
        "x": tensor.x,
        "choice": np.array(_stored(found.decisions, grid, lambda d: d.choice), np.uint8).reshape(
            grid
        ),
        "output": np.array(found.output, np.uint16).reshape(tensor.x.shape),
        "amax": floats_of(found.decisions, grid, lambda d: d.amax),
        "amin": floats_of(found.decisions, grid, lambda d: d.amin),
    }
    for name in found.tried:
        errors = {unit: decision.errors[name] for unit, decision in found.decisions.items()}
        arrays |= {f"{name}.{field}": sums for field, sums in sums_of(errors, grid).items()}
    parameters = {
        "policy": policy, "scaling": scaling, "block": _listed(block), "source": tensor.source,
    }  # fmt: skip
    return Case(f"{tensor.name}.{policy}.{scaling}.{_joined(block)}", parameters, arrays)


SUM_FIELDS: tuple[Field, ...] = (
    expected("sum", "u64", "the sum of u over a unit"),
    expected("nonzero", "u64", "how many elements of it count"),
    expected("nonfinite", "u64", "how many elements of it are lost"),
)
SUITES = (
    Suite(
        "quantize",
        "Tensors quantized with scales of every kind and partition",
        "quantize",
        (
            *(f"BLK-{k:03}" for k in range(1, 5)),
            "SCL-001",
            "GAM-006",
            "QNT-001",
            "QNT-002",
            "QNT-004",
            "ERR-002",
            "ERR-003",
            "ERR-004",
        ),
        (
            given("x", "source", "the tensor"),
            expected("code", "format", "the codes"),
            expected("y", "f32", "what they stand for"),
            expected("amax", "f32", "for each block"),
            expected("scale", "f32", "for each block"),
            expected("exponent", "e8m0", "for each block; 0 under fp32"),
            expected("mantissa", "u32", "for each group; 0 but under gam"),
            *SUM_FIELDS,
        ),
        _quantize_cases,
    ),
    Suite(
        "policies",
        "Tensors under the four policies",
        "mor",
        ("MOR-001", "MOR-005", "MOR-006", "QNT-003"),
        (
            given("x", "source", "the tensor"),
            expected("choice", "u8", "for each unit, the rung that it takes"),
            expected("output", "bf16", "the tensor that comes out"),
            expected("amax", "f32", "for each unit"),
            expected("amin", "f32", "for each unit"),
            *(
                expected(f"{name}.{field.name}", field.format, f"{field.meaning}, under {name}")
                for name in ("e4m3", "e5m2", "nvfp4")
                for field in SUM_FIELDS
            ),
        ),
        _policy_cases,
    ),
)
