"""Quantization with scales of every kind: single numbers, blocks and tensors."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import SCALINGS, Scaling
from mor_ref.golden.inputs.amaxes_at_thresholds import nearly_equal_mantissas
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.every_code import SPECIALS, every_value
from mor_ref.golden.inputs.extremes import (
    SOME_TOPS,
    largest_at_the_end,
    rows_of_tops,
    specials,
    tops,
)
from mor_ref.golden.inputs.found_narrow import found_cases
from mor_ref.golden.inputs.hard_numbers import hard_rows
from mor_ref.golden.inputs.scaled_numbers import scaled_numbers
from mor_ref.golden.inputs.single_blocks import (
    LARGEST,
    WIDTH,
    amaxes_near_turns,
    extremes,
    filled,
    repeats,
    spread_pairs_of_gam,
    with_specials,
)
from mor_ref.golden.inputs.tensors import Tensor, tensors
from mor_ref.golden.inputs.tensors_at_thresholds import rows_at_turns
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.scales import SCALED
from mor_ref.golden.suites.tensor_cases import each_once, tensor_case

_WIDER_THAN_A_WARP = 40
_ONE_AND_A_HALF = 0x3FC00000
# Blocks and groups, of all tensors and of some.
_CUTS: tuple[tuple[Cut, Cut], ...] = (
    ("tensor", "tensor"), ("row", "tensor"), ("column", "tensor"), ((4, 8), "tensor"),
    ((128, 128), "tensor"), ((4, 8), (8, 16)), ("row", "row"),
)  # fmt: skip
_OTHER_CUTS: tuple[tuple[Cut, Cut], ...] = (
    ("column", "column"), ((4, 1), "column"), ((1, 8), "row"), ("row", (2, 64)), ((2, 4), (4, 8)),
)  # fmt: skip
# Tensors that are cut in other ways, and quantized to other formats.
_IN_SIX_BITS = (
    "subnormal.f32", "huge.f32", "nan.f32", "infinity.bf16", "nearly_infinite.bf16",
    "extremes.f16", "nan.f16", "infinity.f16",
)  # fmt: skip
# Found cases whose tensors are quantized to every format with every kind of scales.
_IN_EVERY_FORMAT = (
    "found_.bf16.e4m3.fp32.row.tensor", "fused.bf16.e4m3.fp32.row.tensor",
    "found.f16.e4m3.e8m0.row.tensor", "found.f16.e3m2.fp32.row.tensor",
    "found.bf16.e2m3.gam.row.2x6", "found.bf16.e3m2.gam.row.2x6",
)  # fmt: skip
# More cases of some tensors, each the only one to show a mistake in its format and kind of scales.
_ALONE: dict[str, list[tuple[str, Scaling, Cut, Cut]]] = {
    "5x37.f16": [("e2m3", "gam", (2, 4), (4, 8))],
    "tiny.f32": [("e2m1", "fp32", "column", "tensor")],
    "nearly_infinite.bf16": [("e4m3", "fp32", (4, 8), "tensor")],
}
_WITH_LONG_TABLES = ("e4m3", "e5m2")  # the codes of the other formats are in all tensors
# Large tensors are cut in some ways alone; so are small ones, which most cuts leave whole.
_OF_WAYS = {
    "edges.f32": 2, "24x48.f32": 4, "24x48.bf16": 4,
    "1x1.f32": 2, "1x1.bf16": 2, "1x37.f32": 2, "1x37.bf16": 2, "33x1.f32": 2, "33x1.bf16": 2,
}  # fmt: skip
_IN_ONE_BLOCK = "outlier.f32"  # so that its sums need more than 32 bits
_IN_OTHER_CUTS = ("5x37.f32", "5x37.f16", "zeros.f32", "tiny.f32")


def _step_cases(size: Size) -> Iterator[Case]:
    for name in SCALED:
        x, scale = scaled_numbers(formats[name], size)
        yield Case(name, {"format": name}, {"x": x, "scale": scale})


def _block_cases(size: Size) -> Iterator[Case]:
    for k, name in enumerate(SCALED):
        groups, blocks = (
            np.append(amaxes, np.uint32(_ONE_AND_A_HALF))
            for amaxes in spread_pairs_of_gam(64 * repeats(size))
        )
        x = with_specials(filled(formats[name], blocks, WIDTH, size, 120 + k))
        extreme, of_groups = extremes(x[20])
        x = np.concatenate([x, [LARGEST], extreme])
        groups = np.concatenate([groups, LARGEST[:1], of_groups])
        for scaling in SCALINGS:
            whole, near = amaxes_near_turns(formats[name], scaling)
            turning = filled(formats[name], near, WIDTH, size, 150 + k)
            parameters = {"format": name, "scaling": scaling, "source": "f32"}
            yield Case(
                f"{name}.{scaling}",
                parameters,
                {"x": np.concatenate([x, turning]), "group_amax": np.append(groups, whole)},
            )
            wide = filled(formats[name], blocks[5::11], _WIDER_THAN_A_WARP, size, 190 + k)
            yield Case(
                f"{name}.{scaling}.{_WIDER_THAN_A_WARP}",
                parameters,
                {
                    "x": np.roll(wide, 33, axis=1),
                    "group_amax": groups[: blocks.size][5::11],
                },
            )


def _tensor_cases(size: Size) -> Iterator[Case]:
    yield from _cut_as_usual(size)
    yield from _cut_otherwise(size)
    for fmt, scaling in itertools.product(SCALED, SCALINGS):
        for tensor in rows_at_turns(formats[fmt], scaling):
            yield tensor_case(tensor, format=fmt, scaling=scaling, block="row", group="tensor")
        pair, group = {"format": fmt, "scaling": scaling}, "row" if scaling == "gam" else "tensor"
        yield tensor_case(rows_of_tops(), **pair, block="row", group=group)
        for tensor in tops(SOME_TOPS):
            yield tensor_case(tensor, **pair, block="tensor", group="tensor")
    for fmt, scaling in itertools.product(_WITH_LONG_TABLES, SCALINGS):
        values = every_value(formats[fmt])
        yield tensor_case(values, format=fmt, scaling=scaling, block="tensor", group="tensor")
    nearly, last = nearly_equal_mantissas(), largest_at_the_end(size)
    for fmt in SCALED:
        yield tensor_case(nearly, format=fmt, scaling="gam", block="row", group=(2, 2))
    for scaling in SCALINGS:
        yield tensor_case(last, format="e4m3", scaling=scaling, block="tensor", group="tensor")
    yield from _in_every_format(size)
    yield from found_cases("quantize")
    for tensor in beyond_tiles(size):
        gam = {"format": "e4m3", "scaling": "gam"}
        yield tensor_case(tensor, **gam, block=(4, 16), group="tensor")


def _cut_as_usual(size: Size) -> Iterator[Case]:
    for k, tensor in enumerate(tensors(size)):
        for n, (block, group) in enumerate(_CUTS):
            if tensor.name == _IN_ONE_BLOCK and block not in ("tensor", (128, 128)):
                continue
            if (k + n) % _OF_WAYS.get(tensor.name, 1):
                continue
            fmt = SCALED[(k + n) % 3]
            other = "e8m0" if (k // 3 + n) % 2 == 0 else "fp32"
            yield tensor_case(tensor, format=fmt, scaling="gam", block=block, group=group)
            if group == "tensor":
                yield tensor_case(tensor, format=fmt, scaling=other, block=block, group=group)
        for fmt, scaling, block, group in _ALONE.get(tensor.name, ()):
            yield tensor_case(tensor, format=fmt, scaling=scaling, block=block, group=group)


def _cut_otherwise(size: Size) -> Iterator[Case]:
    """Yield some tensors in more cuts and formats."""
    usual = list(tensors(Size(seed=size.seed)))
    for k, tensor in enumerate(tensor for tensor in usual if tensor.name in _IN_OTHER_CUTS):
        for n, (block, group) in enumerate(_OTHER_CUTS):
            fmt = SCALED[(k + n) % 5]
            yield tensor_case(tensor, format=fmt, scaling="gam", block=block, group=group)
        for fmt, scaling in itertools.product(("e2m3", "e3m2"), SCALINGS):
            yield tensor_case(tensor, format=fmt, scaling=scaling, block=(4, 8), group="tensor")
    for k, tensor in enumerate(tensor for tensor in usual if tensor.name in _IN_SIX_BITS):
        for n, fmt in enumerate(("e2m3", "e3m2")):
            one, other = SCALINGS[(k + n) % 3], SCALINGS[(k + n + 1) % 3]
            yield tensor_case(tensor, format=fmt, scaling=one, block=(4, 8), group="tensor")
            yield tensor_case(tensor, format=fmt, scaling=other, block="tensor", group="tensor")


def _in_every_format(size: Size) -> Iterator[Case]:
    """Yield some tensors in every format with every kind of scales, in case a kernel has one."""
    usual = {tensor.name: tensor for tensor in tensors(size)}
    few = np.concatenate([usual["zeros.f32"].x[:8, :15], specials("f32").x])
    few_zeros = Tensor("few_zeros.f32", "f32", few)
    few_edges = Tensor("few_edges.f32", "f32", usual["edges.f32"].x[::3])
    hard = {fmt: [_with_hard_rows(fmt, source) for source in SPECIALS] for fmt in SCALED}
    for fmt, scaling in itertools.product(SCALED, SCALINGS):
        pair, group = {"format": fmt, "scaling": scaling}, "row" if scaling == "gam" else "tensor"
        for tensor in (few_zeros, few_edges):
            yield tensor_case(tensor, **pair, block=(4, 8), group="tensor")
        yield tensor_case(usual["extremes.f16"], **pair, block="row", group="tensor")
        for tensor in hard[fmt]:
            yield tensor_case(tensor, **pair, block="row", group=group)
        for case in (one for one in found_cases("quantize") if one.name in _IN_EVERY_FORMAT):
            name = f"{case.name}.in.{fmt}.{scaling}"
            if scaling == "gam" or case.parameters["group"] == "tensor":
                yield replace(case, name=name, parameters={**case.parameters, **pair})


def _with_hard_rows(fmt: str, source: str) -> Tensor:
    special = specials(source)
    return special._replace(x=np.concatenate([special.x, hard_rows(formats[fmt], source)]))


STEPS = suite(
    "quantize_steps",
    "One number, scaled, encoded and restored",
    "quantize_element",
    (),
    _step_cases,
)
BLOCKS = suite(
    "quantize_blocks",
    "Single blocks quantized with scales of every kind",
    "quantize_block",
    (),
    _block_cases,
)
TENSORS = suite(
    "quantize",
    "Tensors quantized with scales of every kind and partition",
    "quantize",
    tuple(f"BLK-{k:03}" for k in range(1, 5)),
    lambda size: each_once(_tensor_cases(size)),
)
