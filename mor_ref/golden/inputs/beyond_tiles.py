"""Tensors beyond one tile of 128x4 scales, and tensors with one number behind the last vector.

One tile of `swizzled_128x4` does not show in which order tiles lie. Where a size is 1 mod 16, one
number is left behind vectors of 2, 4, 8 and 16.
"""

from collections.abc import Iterator

from mor_ref.definitions.blocks import word_of
from mor_ref.golden.inputs.generated import generated
from mor_ref.golden.inputs.placed import End, ends_of, regions_of
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.parameters import PLACED

SOURCE = "bf16"  # the fewest bytes
ENDS = (End.LARGEST,)  # so that all blocks depend on the last number, or that of their row
# Two rows of tiles of scales and two columns of them, with blocks of 16 and of 32.
BEYOND_TILES = (130, 160)
BEHIND_VECTORS = (3, 27)
STREAMS = {BEYOND_TILES: 604, BEHIND_VECTORS: 605}


def beyond_tiles(size: Size) -> Iterator[Tensor]:
    """Yield a tensor of 130x160 numbers, and one of 81. The last number is the largest.

    Larger suites have more rows.
    """
    for (rows, columns), stream in STREAMS.items():
        shape = rows * size.factor, columns
        recipe = {"shape": list(shape), "seed": size.seed, "stream": stream}
        (whole,) = regions_of(shape)
        placed = list(ends_of(generated(recipe, SOURCE), SOURCE, whole, ENDS))
        x = generated({**recipe, PLACED: placed}, SOURCE)
        yield Tensor(f"{word_of((rows, columns))}.{SOURCE}", SOURCE, x)
