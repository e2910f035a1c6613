"""Scales in a wrong layout: the swizzle is forgotten, made twice, or not asked for."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.golden.model.views import in_whole_tiles, swizzled_128x4
from mor_ref.layouts import plain
from mor_ref.operations import OPERATIONS
from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.entries import Entries

Scales = NDArray[Any]
_SWIZZLE = "swizzled_128x4"
Layout = Callable[[Scales], Scales]  # from plain scales to scales as they are read


def other_layouts(e: Entries) -> Iterator[Alternative]:
    """Yield scales as they are read if a swizzle is forgotten, made twice, or not asked for."""
    given = {one.layouts.get(e.field, "") for one in e.samples if one.pairs[e.field].differs.any()}
    arrays = [one.pairs[e.field].expected for one in e.samples]
    kinds = {OPERATIONS[one.operation].axes_of(e.field) for one in e.samples}
    is_of_blocks = kinds == {"grid"} and arrays[0].ndim == 2
    if not is_of_blocks or len(given) > 1 or max(array.size for array in arrays) > _MOST:
        return
    known = {_SWIZZLE: _OF_SWIZZLED, "": _OF_ROWS}.get(given.pop(), ())
    for words, read in known:
        values = np.concatenate([read(array).ravel() for array in arrays]).astype(np.uint64)
        yield Alternative(words, values, np.ones(e.size, bool), e)


def _in_whole_tiles(scale: Scales) -> Scales:
    """Return scales with padding to whole tiles, in rows and columns."""
    return in_whole_tiles(scale, 128, 4)


def _undone(flat: Scales, like: Scales) -> Scales:
    return plain(flat, _SWIZZLE, like.shape)


def _in_rows(scale: Scales) -> Scales:
    return _undone(_in_whole_tiles(scale).ravel(), scale)


def _in_rows_without_padding(scale: Scales) -> Scales:
    flat = np.zeros(_in_whole_tiles(scale).size, scale.dtype)
    flat[: scale.size] = scale.ravel()
    return _undone(flat, scale)


def _swizzled_twice(scale: Scales) -> Scales:
    once = swizzled_128x4(scale, {}).reshape(_in_whole_tiles(scale).shape)
    return _undone(swizzled_128x4(once, {}), scale)


def _tiles_column_by_column(scale: Scales) -> Scales:
    rows, columns = _in_whole_tiles(scale).shape
    tiles = swizzled_128x4(scale, {}).reshape(rows // 128, columns // 4, 512)
    return _undone(tiles.transpose(1, 0, 2).reshape(-1), scale)


def _rows_of_a_tile_in_order(scale: Scales) -> Scales:
    """Return the scales of tiles stored row by row: the 32 rows are not interleaved."""
    whole = _in_whole_tiles(scale)
    tiles = whole.reshape(len(whole) // 128, 128, whole.shape[1] // 4, 4)
    return _undone(np.ascontiguousarray(tiles.transpose(0, 2, 1, 3)).reshape(-1), scale)


def _swizzled(scale: Scales) -> Scales:
    return swizzled_128x4(scale, {})[: scale.size].reshape(scale.shape)


_FORGOTTEN = "the swizzle is forgotten: the scales are row by row"
_OF_SWIZZLED: tuple[tuple[str, Layout], ...] = (
    (f"{_FORGOTTEN}, with padding", _in_rows),
    (f"{_FORGOTTEN}, without padding", _in_rows_without_padding),
    ("the scales are swizzled twice", _swizzled_twice),
    ("the tiles of the swizzle follow each other column by column", _tiles_column_by_column),
    (
        "each tile of the swizzle is row by row: its rows are not interleaved",
        _rows_of_a_tile_in_order,
    ),
)
_OF_ROWS: tuple[tuple[str, Layout], ...] = (
    ("the scales are swizzled_128x4, where rows and columns are expected", _swizzled),
    ("the scales are read as swizzled_128x4, and are row by row", _in_rows_without_padding),
)
_MOST = 1 << 18  # scales of a tensor
