"""Tensors quantized with scales of every kind and partition."""

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.catalogue import formats
from mor_ref.format import Format
from mor_ref.golden.suite import Case, Size, Suite, given
from mor_ref.golden.suites.extremes import largest_at_the_end, tops
from mor_ref.golden.suites.found_narrow import found_cases
from mor_ref.golden.suites.scaling import SCALED
from mor_ref.golden.suites.tensors import (
    ELEMENT_FIELDS,
    SCALE_FIELDS,
    Tensor,
    joined,
    listed,
    sum_fields,
    tensors,
)
from mor_ref.golden.suites.thresholds import (
    LOGARITHMS,
    SOME_BINADES,
    SOME_STEPS,
    around,
    found_pairs_of_gam,
    pairs_of_gam,
)
from mor_ref.partition import Cut
from mor_ref.recipes import SCALINGS, Scaling

# Tensors that are cut in more ways, and quantized to more formats.
_IN_SIX_BITS = (
    "subnormal.f32", "huge.f32", "nan.f32", "infinity.bf16", "nearly_infinite.bf16",
    "extremes.f16", "nan.f16", "infinity.f16",
)  # fmt: skip
_IN_OTHER_CUTS = ("5x37.f32", "5x37.f16", "zeros.f32", "tiny.f32")


def _quantize_cases(size: Size) -> Iterator[Case]:
    blocks: list[tuple[Cut, Cut]] = [
        ("tensor", "tensor"), ("row", "tensor"), ("column", "tensor"), ((4, 8), "tensor"),
        ((128, 128), "tensor"), ((4, 8), (8, 16)), ("row", "row"),
    ]  # fmt: skip
    for k, tensor in enumerate(tensors(size)):
        for n, (block, group) in enumerate(blocks):
            fmt = ("e4m3", "e5m2", "e2m1")[(k + n) % 3]
            other: Scaling = "e8m0" if (k // 3 + n) % 2 == 0 else "fp32"
            yield _quantized(tensor, fmt, "gam", block, group)
            if group == "tensor":
                yield _quantized(tensor, fmt, other, block, group)
    yield from _cut_otherwise(size)
    for fmt, scaling in itertools.product(SCALED, SCALINGS):
        for tensor in _turning(formats[fmt], scaling):
            yield _quantized(tensor, fmt, scaling, "row", "tensor")
    for fmt, tensor in itertools.product(SCALED, tops()):
        yield _quantized(tensor, fmt, "gam", "tensor", "tensor")
        yield _quantized(tensor, fmt, "fp32", "tensor", "tensor")
    for fmt in SCALED:
        yield _quantized(_nearly_equal_mantissas(), fmt, "gam", "row", (2, 2))
    for scaling in SCALINGS:
        yield _quantized(largest_at_the_end(size), "e4m3", scaling, "tensor", "tensor")
    yield from found_cases("quantize")


def _cut_otherwise(size: Size) -> Iterator[Case]:
    """Some tensors in more cuts and formats."""
    some = [tensor for tensor in tensors(Size(seed=size.seed)) if tensor.name in _IN_OTHER_CUTS]
    cuts: list[tuple[Cut, Cut]] = [
        ("column", "column"), ((4, 1), "column"), ((1, 8), "row"), ("row", (2, 64)),
        ((2, 4), (4, 8)),
    ]  # fmt: skip
    for k, tensor in enumerate(some):
        for n, (block, group) in enumerate(cuts):
            yield _quantized(tensor, SCALED[(k + n) % 5], "gam", block, group)
        for fmt in ("e2m3", "e3m2"):
            for scaling in SCALINGS:
                yield _quantized(tensor, fmt, scaling, (4, 8), "tensor")
    others = [tensor for tensor in tensors(Size(seed=size.seed)) if tensor.name in _IN_SIX_BITS]
    for k, tensor in enumerate(others):
        for n, fmt in enumerate(("e2m3", "e3m2")):
            yield _quantized(tensor, fmt, SCALINGS[(k + n) % 3], (4, 8), "tensor")
            yield _quantized(tensor, fmt, SCALINGS[(k + n + 1) % 3], "tensor", "tensor")


def _nearly_equal_mantissas() -> Tensor:
    """Pairs of rows: the first has the amax of their group, the second that of a block in it."""
    amaxes = np.stack(found_pairs_of_gam(), axis=1).reshape(-1, 1)
    return Tensor("mantissas.f32", "f32", np.concatenate([amaxes, amaxes - amaxes // 64], axis=1))


def _turning(fmt: Format, scaling: Scaling) -> Iterator[Tensor]:
    """Tensors whose rows have amaxes next to which scales turn, the first that of the tensor."""
    largest = Fraction(fmt.largest)
    turns = [*around(largest, SOME_BINADES, SOME_STEPS), *around(largest, LOGARITHMS, (0,))]
    amaxes = {"largest": np.array([max(turns), *turns], np.uint32)}
    if scaling == "gam":
        groups, blocks = pairs_of_gam(fmt)
        for group in np.unique(groups)[1::6]:
            amaxes[f"{group:08x}"] = np.append(group, blocks[groups == group])
    for name, found in amaxes.items():
        x = np.stack([found | np.uint32(0x80000000), found - found // 64], axis=1)
        yield Tensor(f"turning_{name}.f32", "f32", x)


def _quantized(tensor: Tensor, fmt: str, scaling: Scaling, block: Cut, group: Cut) -> Case:
    parameters = {
        "format": fmt, "scaling": scaling, "block": listed(block), "group": listed(group),
        "source": tensor.source,
    }  # fmt: skip
    name = f"{tensor.name}.{fmt}.{scaling}.{joined(block)}.{joined(group)}"
    return Case(name, parameters, {"x": tensor.x})


SUITES = (
    Suite(
        "quantize",
        "Tensors quantized with scales of every kind and partition",
        "quantize",
        tuple(f"BLK-{k:03}" for k in range(1, 5)),
        (
            given("x", "source", "the tensor"),
            *SCALE_FIELDS,
            *ELEMENT_FIELDS,
            *sum_fields(),
        ),
        _quantize_cases,
    ),
)
