"""Large tensors, generated: ten lines in any language make the same bits."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mor_ref.argument_checks import whole_number
from mor_ref.golden.inputs.edges import bell_between, narrowed
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.parameters import LONGEST, PLACED, doublings_of

_AT_ONCE = 1 << 16  # elements, whose words fit the cache of a processor


def generated(recipe: Mapping[str, Any], source: str) -> Unsigned:
    """Return the tensor of a recipe (VEC-009): numbers of bell, some rows and columns larger."""
    rows, columns = (whole_number("side", side, 1, LONGEST) for side in recipe["shape"])
    for name, most in (("seed", 0xFFFF), ("stream", 0xFFFF)):
        whole_number(name, recipe[name], 0, most)
    step = max(_AT_ONCE // columns, 1)
    x: Unsigned = np.concatenate(
        [
            _rows(i, min(i + step, rows), (rows, columns), recipe, source)
            for i in range(0, rows, step)
        ]
    )
    for row, column, *bits in recipe.get(PLACED, ()):
        x[row, column : column + len(bits)] = np.array(bits, np.uint32).astype(x.dtype)
    return x


def _rows(
    first: int, last: int, shape: tuple[int, int], recipe: Mapping[str, Any], source: str
) -> Unsigned:
    """Return the rows from `first` to `last` of the tensor."""
    rows, columns = shape
    places = first * columns, last * columns, rows * columns
    bits = bell_between(*places, recipe["seed"], recipe["stream"]).reshape(-1, columns)
    i, j = np.arange(first, last)[:, None], np.arange(columns)[None, :]
    doublings = (i % 61 == 7) * doublings_of(recipe) + (j % 97 == 11) * 3
    larger = bits + (doublings << 23).astype(np.uint32)
    larger = np.where(bits & np.uint32(0x7FFFFFFF), larger, bits).astype(np.uint32)
    return narrowed(larger, source)
