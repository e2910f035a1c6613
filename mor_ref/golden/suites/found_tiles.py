"""Tiles at which wrong ways to NVFP4 show, as a search has found them.

Their scales and errors fall within a step or two of a tie: where another order of the operations, a
fused multiply-add, an approximate reciprocal or a wider intermediate result gives something else.
`found_tiles.json` has them for each profile: the amax of a tensor, and the sixteen numbers.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mor_ref.golden.inputs import Bits
from mor_ref.golden.suites.tensors import Tensor

_FILE = Path(__file__).with_name("found_tiles.json")
_TILE = 16


@functools.cache
def _found() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(_FILE.read_text(encoding="ascii"))
    return found


def found_tiles(profile: str, of: Literal["blocks", "tensors"]) -> tuple[Bits, Bits]:
    """The amaxes of tensors, and a tile of each."""
    rows = [[int(bits, 16) for bits in row.split()] for row in _found()[profile][of]]
    amaxes, tiles = np.split(np.array(rows, np.uint32), [1], axis=1)
    return amaxes.ravel(), tiles


def found_tensors(profile: str) -> Iterator[Tensor]:
    """A tensor for each amax: a row is a tile of the amax and zeros, and then a tile found."""
    amaxes, tiles = found_tiles(profile, "tensors")
    for amax in np.unique(amaxes):
        own = tiles[amaxes == amax]
        first = np.zeros((len(own), _TILE), np.uint32)
        first[:, 0] = amax
        yield Tensor(f"found_{amax:08x}.f32", "f32", np.concatenate([first, own], axis=1))
