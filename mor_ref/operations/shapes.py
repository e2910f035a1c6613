"""The part of the first input that an entry of a field belongs to, and so each field's shape."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.blocks import partition
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.unit_sums import WORDS
from mor_ref.operations.parameters import as_cut, group_of
from mor_ref.recipes import as_policy

Shape = tuple[int, ...]
Sides = tuple[int, ...]  # rows and columns of the first input; rows alone if it has no columns

_ONE_SIZE = ("n", "ends")


def sides_of(first: str, parameters: Mapping[str, Any], shape: Shape) -> dict[str, Sides]:
    """Return, for each kind of axes, the sides of the part that an entry belongs to (VEC-012).

    `first` is the kind of the first input, and `shape` its shape. An input that cannot be cut into
    blocks raises ValueError or TypeError.
    """
    if first == "n":
        return {"n": (1,)}
    if first == "nk":
        return {
            "n": (1, shape[1]),
            "nk": (1, 1),
            "nb": (1, parameters.get("scale_block", shape[1])),
            "pair": (1, 2),
            "bytes": (1, shape[1]),
            "words": (1, shape[1]),
        }
    if "groups" in parameters:  # each depends on the order, and the order on the whole tensor
        tensor_sides = dict.fromkeys(("grid", "groups", "order"), shape)
        return {"rc": (1, 1), "columns": (shape[0], 1), **tensor_sides}
    block = parameters.get("tile", parameters.get("block", "tensor"))
    cut = partition(
        shape,
        (1, block) if isinstance(block, int) else as_cut(block),
        group_of(parameters),
    )
    whole = "policy" in parameters and as_policy(parameters["policy"]).unit == "tensor"
    per_row = "tile" in parameters and PROFILES[parameters["profile"]].per_row
    return {
        "rc": (1, 1),
        "grid": cut.block,
        "group": cut.group,
        "unit": cut.regrouped("tensor").group if whole else cut.block,
        "ends": (1 if per_row else shape[0], shape[1]),
        "pair": (1, 2),
        "pairs": (1, 2),
    }


def shapes_of(first: str, parameters: Mapping[str, Any], shape: Shape) -> dict[str, Shape]:
    """Return, for each kind of axes, the shape of a field for a first input of this shape."""
    shapes = {}
    for axes, sides in sides_of(first, parameters, shape).items():
        sizes = tuple(_parts(size, side) for size, side in zip(shape, sides, strict=True))
        shapes[axes] = sizes[:1] if axes in _ONE_SIZE else sizes
    if "groups" in parameters:
        shapes |= {"groups": (1, parameters["groups"]), "order": (1, shape[1])}
    if "words" in shapes:
        shapes["words"] = (shape[0], WORDS)
    if "bytes" in shapes and "kind" in parameters:
        (kind,) = NAMES_OF_REPRESENTATIONS.rows_named(parameters["kind"])
        shapes["bytes"] = (shape[0], kind.row_bytes(shape[1]))
    return shapes


def _parts(size: int, side: int) -> int:
    """Return how many parts of a side there are; all of a side without numbers is one part."""
    return -(-size // side) if side else 1


def groups_of_columns(place: NDArray[Any], parameters: Mapping[str, Any]) -> NDArray[Any]:
    """Return the group of each column, given its place in the order of ranges (AFF-010)."""
    group: NDArray[Any] = place // (place.size // parameters["groups"])
    return group


def spread_to_numbers(
    entries: NDArray[Any], sides: Sequence[int], shape: Sequence[int]
) -> NDArray[Any]:
    """Return for each number of a tensor the entry of its block.

    >>> spread_to_numbers(np.array([[1, 2]]), (2, 2), (1, 3))
    array([[1, 1, 2]])
    """
    rows = np.repeat(entries, sides[0], axis=0)[: shape[0]]
    return np.repeat(rows, sides[1], axis=1)[:, : shape[1]]
