"""Fields in a layout that moves entries, back in rows and columns."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.counts_in_words import counted
from mor_ref.golden.model.views import (
    SEPARATOR,
    VIEWS,
    is_padding_free,
    seen,
    sources,
    split,
)
from mor_ref.layouts import MOVING, parts_of
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import Field

_AXES = ("rows", "columns")


class MovedBack(NamedTuple):
    """A plain array, with the faults of the layout that it was in.

    `padding` counts the entries of padding that are not 0, and `unequal` the copies of entries that
    are not equal.
    """

    plain: NDArray[Any]
    padding: int
    layout: str
    unequal: int = 0

    @property
    def problem(self) -> str | None:
        """The problem of the layout, if the plain array is as expected."""
        if self.unequal:
            return (
                f"has {counted(self.unequal, 'entry')} unlike the other rows of the same tile; "
                "give each scale once for every row of its tile (VEC-007)"
            )
        if not self.padding:
            return None
        (*_, rule) = filter(None, (VIEWS[view].rule for view in split(self.layout)[1]))
        noun = "entry of padding that is" if self.padding == 1 else "entries of padding that are"
        return f"is as expected, but has {self.padding:,} {noun} not 0; write 0 there ({rule})"


def is_moving(name: str) -> bool:
    """Return whether the name of a field has views, and all of them only move entries."""
    views = name.split(SEPARATOR)[1:]
    return bool(views) and {*views} <= {*MOVING}


def moved_back(
    name: str, bits: NDArray[Any], shape: tuple[int, ...], parameters: Parameters
) -> MovedBack:
    """Return the plain array, of this shape, of a field that was given by a name."""
    _, *views = name.split(SEPARATOR)
    found = np.zeros(math.prod(shape), bits.dtype)
    padding = unequal = 0
    is_free = is_padding_free(views)
    for part, place in zip(parts_of(bits, views), sources(shape, views, parameters), strict=True):
        at, entries = place[place > 0] - 1, part[place > 0]
        found[at] = entries
        unequal += int(np.count_nonzero(found[at] != entries))
        padding += 0 if is_free else int(np.count_nonzero(part[place == 0]))
    return MovedBack(found.reshape(shape), padding, name, unequal)


def named_otherwise(field: Field, name: str, plain: Unsigned, actual: Any) -> str:
    """Say which other name the shape of an array is the shape of, after a problem; '' if none.

    The bits of an array that has no axes, or the shape that its name has, are another problem. So
    is a word that has several codes.
    """
    shape = np.shape(actual) if isinstance(actual, np.ndarray) else ()
    known = {field.name: plain.shape}
    if plain.ndim == len(_AXES) and SEPARATOR not in field.name:
        known |= {
            f"{field.name}{SEPARATOR}{view}": seen(
                np.zeros(plain.shape, np.uint8), [view], {}
            ).shape
            for view in field.views
            if view in MOVING
        }
    if not shape or known.get(name) == shape:
        return ""
    others = [other for other, own in known.items() if own == shape and other != name]
    if others:
        return f"; if it is {_layout(others[0])}, name it {others[0]}"
    return _of_words(known, plain, actual)


def _of_words(known: Mapping[str, tuple[int, ...]], plain: Unsigned, actual: NDArray[Any]) -> str:
    """Say what to do with words that have several codes each; '' if an array has none."""
    size = actual.dtype.itemsize
    if actual.dtype.kind not in "iu":
        return ""
    in_bytes = (*actual.shape[:-1], actual.shape[-1] * size)
    for name, shape in known.items():
        if "packed" in name and size > 1 and shape == in_bytes:
            return f"; if a word has {size} bytes of {name}, the first in the low bits, give uint8"
    if actual.shape[:-1] != plain.shape[:-1]:
        return ""
    has_nibbles = actual.shape[-1] * 2 * size == plain.shape[-1]
    return "; if a word has several codes, give an entry for each" if has_nibbles else ""


def _layout(name: str) -> str:
    return name.partition(SEPARATOR)[2] or "in rows and columns"
