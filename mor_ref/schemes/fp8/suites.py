"""FP8 of libraries: tensors in each profile."""

from collections.abc import Iterator

from mor_ref.definitions.block_formats import parameters_of_blocks
from mor_ref.definitions.blocks import Cut, word_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.schemes.fp8.definition import FP8_PROFILES, ROW_OF_128, Fp8Profile, fp8_formulas
from mor_ref.schemes.fp8.inputs import blocks_next_to_turns, blocks_of_rows

_SQUARE: Cut = (128, 128)


def _cases(size: Size) -> Iterator[Case]:
    turns, rows = blocks_next_to_turns(size), blocks_of_rows(size)
    for n, name in enumerate(FP8_PROFILES.specified):
        profile = FP8_PROFILES[name]
        tile = ROW_OF_128 if profile.tile == "tensor" else profile.tile
        yield _case(profile, tile, turns)
        yield _case(profile, (profile.tile, _SQUARE)[n % 2], rows)


def _case(profile: Fp8Profile, tile: Cut, tensor: Tensor) -> Case:
    parameters = parameters_of_blocks(fp8_formulas(profile, tile))
    name = f"{profile.name}.{word_of(tile)}.{tensor.name}"
    return Case(name, {**parameters, "source": tensor.source}, {"x": tensor.x})


TENSORS = suite(
    "fp8",
    "Tensors in the FP8 of libraries, with a decode scale for each tile",
    "blocks",
    ("FPL-001", "FPL-002", "FPL-003"),
    _cases,
    ("scale", "factor", "code", "y"),
    tested={"scale": ("BLF-003",), "y": ("BLF-004",)},
)
