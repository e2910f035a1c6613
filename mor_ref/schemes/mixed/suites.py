"""Mixtures of formats: units with y under two candidates, and tensors."""

import itertools
from collections.abc import Iterator

from mor_ref.definitions.blocks import Cut
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.found_few import found_few
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.inputs.tensors import tensors
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.golden.suites.large import LargeCase, digested, large_beyond_tiles, large_suite, of_few
from mor_ref.golden.suites.tensor_cases import tensor_case
from mor_ref.schemes.mixed.definition import MIXTURES
from mor_ref.schemes.mixed.inputs import layers_with_values, rows_with_values, tensors_of_units
from mor_ref.schemes.mixed.operation import MIX

_RANDOM, _LAYERS = 256, 128  # rows
_LOST = (End.NAN, End.INFINITY)
_CUTS: tuple[Cut, ...] = ("tensor", "row", "column", (4, 8), (3, 5))


def _step_cases(size: Size) -> Iterator[Case]:
    yield Case("all", {"source": "f32"}, dict(rows_with_values(size, _RANDOM)))


def _layer_cases(size: Size) -> Iterator[Case]:
    yield Case("all", {"source": "f32"}, dict(layers_with_values(size, _LAYERS)))


def _tensor_cases(size: Size) -> Iterator[Case]:
    """Yield tensors of units under every mixture, and the usual ones under one each."""
    for name, tensor in itertools.product(MIXTURES.specified, tensors_of_units(size)):
        yield tensor_case(tensor, mixture=name, block=(4, 8))
    pairs = itertools.cycle(itertools.product(MIXTURES.specified, _CUTS))
    for tensor in tensors(size):
        for _ in range(2):
            name, block = next(pairs)
            yield tensor_case(tensor, mixture=name, block=block)
        next(pairs)
    for tensor in beyond_tiles(size):
        yield tensor_case(tensor, mixture="int8_or_e4m3", block="tensor")


def _large_cases() -> Iterator[LargeCase]:
    """Yield units beyond a thread block, under every mixture, with special numbers at the ends."""
    for n, name in enumerate(MIXTURES.specified):
        of, source, ends = {"mixture": name}, ("bf16", "f32", "f16")[n % 3], (End.LARGEST,)
        wide, tall = {**of, "block": "row"}, {**of, "block": "column"}
        yield LargeCase(f"wide.{name}", source, (1, 2101), 500 + n, wide, ends=ends)
        yield LargeCase(f"tall.{name}", source, (2101, 1), 510 + n, tall, ends=ends)
        late = {**of, "block": "tensor" if n % 2 else [16, 24]}
        yield LargeCase(f"late.{name}", source, (37, 61), 520 + n, late, ends=ends)
        shape, block = (((1, 2101), "row"), ((2101, 1), "column"), ((37, 61), "tensor"))[n // 2 % 3]
        lost = {**of, "block": block}
        yield LargeCase(f"lost.{name}", source, shape, 530 + n, lost, ends=(*ends, *_LOST))
    yield from (of_few(*few) for few in found_few("mix"))
    of = {"mixture": "e4m3_or_e5m2_or_int8", "block": "tensor"}
    yield from large_beyond_tiles("e4m3_or_e5m2_or_int8", of)


STEPS = suite(
    "mixed_steps",
    "Squared errors of units, and the choice between two candidates",
    "mix_errors",
    (),
    _step_cases,
)
LAYERS = suite(
    "mixed_layers", "The choice for two tensors together", "mix_layers", (), _layer_cases
)
_FIELDS = tuple(MIX.outputs)
TENSORS = suite(
    "mixed", "Tensors under mixtures of formats", "mix", ("MFQ-001",), _tensor_cases, _FIELDS
)
LARGE = large_suite(
    "mixed_large",
    "Larger tensors under mixtures of formats",
    "mix",
    tuple(_large_cases()),
    digested(*_FIELDS),
)
