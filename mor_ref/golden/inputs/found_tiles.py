"""Tiles of NVFP4, found by a search, that expose wrong implementations.

Their scales and errors are within a step or two of a tie. There another order of the operations, a
fused multiply-add, an approximate reciprocal or a wider intermediate result changes the result.
`found_tiles.json` lists, for each profile, the amax of a tensor and the numbers of a tile. A tile
of `squares` has 16 rows and columns. A tile of `lines` is 16 x 16 as well, but the tensor has one
row. All others have 16 numbers.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from mor_ref.golden.inputs.edges import Bits
from mor_ref.golden.inputs.found_files import contents_of, numbers_of
from mor_ref.golden.inputs.tensors import Tensor

_TILE = 16
Kind = Literal["blocks", "tensors", "squares", "lines"]


def found_tiles(profile: str, of: Kind) -> tuple[Bits, Bits]:
    """Return the amaxes of tensors, and one tile for each."""
    rows = numbers_of(contents_of("tiles").get(profile, {}).get(of, ()))
    if not rows:
        return np.zeros(0, np.uint32), np.zeros((0, _TILE), np.uint32)
    amaxes, tiles = np.split(np.array(rows, np.uint32), [1], axis=1)
    return amaxes.ravel(), tiles


def found_tensors(profile: str) -> Iterator[Tensor]:
    """Yield a tensor for each amax: each row is a tile of the amax and zeros, and a found tile."""
    amaxes, tiles = found_tiles(profile, "tensors")
    for amax in np.unique(amaxes):
        own = tiles[amaxes == amax]
        first = np.zeros((len(own), _TILE), np.uint32)
        first[:, 0] = amax
        yield Tensor(f"found_{amax:08x}.f32", "f32", np.concatenate([first, own], axis=1))


def found_squares(profile: str) -> Iterator[Tensor]:
    """Yield a tensor for each amax: a tile of the amax and zeros, and the found tiles."""
    amaxes, tiles = found_tiles(profile, "squares")
    for amax in np.unique(amaxes):
        first = np.zeros((_TILE, _TILE), np.uint32)
        first[0, 0] = amax
        own = tiles[amaxes == amax].reshape(-1, _TILE, _TILE)
        yield Tensor(f"squares_{amax:08x}.f32", "f32", np.concatenate([first, *own], axis=1))


def found_lines(profile: str) -> Iterator[Tensor]:
    """Yield a tensor of one row for each amax: the amax and zeros, and the found tiles."""
    amaxes, tiles = found_tiles(profile, "lines")
    for amax in np.unique(amaxes):
        first = np.zeros(_TILE, np.uint32)
        first[0] = amax
        row = np.concatenate([first, *tiles[amaxes == amax]])
        yield Tensor(f"lines_{amax:08x}.f32", "f32", row[None, :])
