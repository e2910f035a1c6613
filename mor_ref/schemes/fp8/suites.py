"""FP8 of libraries: tensors in each profile."""

from collections.abc import Iterator

from mor_ref.definitions.blocks import Cut, word_of
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.schemes.fp8.definition import FP8_PROFILES, ROW_OF_128, fp8_parameters
from mor_ref.schemes.fp8.inputs import blocks_next_to_turns, blocks_of_rows

_SQUARE: Cut = (128, 128)


def _cases(size: Size) -> Iterator[Case]:
    turns, rows = blocks_next_to_turns(size), blocks_of_rows(size)
    for n, name in enumerate(FP8_PROFILES.specified):
        tile = FP8_PROFILES[name].tile
        yield _case(name, ROW_OF_128 if tile == "tensor" else tile, turns)
        yield _case(name, (tile, _SQUARE)[n % 2], rows)
    for tensor in beyond_tiles(size):
        yield _case("deepgemm", ROW_OF_128, tensor)


def _case(profile: str, tile: Cut, tensor: Tensor) -> Case:
    parameters = {**fp8_parameters(FP8_PROFILES[profile], tile), "source": tensor.source}
    return Case(f"{profile}.{word_of(tile)}.{tensor.name}", parameters, {"x": tensor.x})


TENSORS = suite(
    "fp8", "Tensors in the FP8 of libraries, with a decode scale for each tile", "fp8", (), _cases
)
