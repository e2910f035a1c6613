"""Views: the same bits in the other layouts that kernels write, or as digests of tiles.

`FIELD@VIEW` names a view of a field, and `FIELD@VIEW@VIEW` a view of a view (VEC-003).
"""

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.argument_checks import known_name
from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import quotient
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned, f32_array, numbers_of
from mor_ref.operations.block_formats import block_format_in
from mor_ref.operations.call import Parameters
from mor_ref.operations.fields import AXES, Axes

SEPARATOR = "@"
DIGEST_TILE, DIGEST_BYTES = 128, 32
DIGEST = f"sha256_{DIGEST_TILE}x{DIGEST_TILE}"
_OF_DIGESTS = Axes(("digest rows", "digest columns", "bytes"))


@dataclass(frozen=True)
class View:
    """Another layout: how it comes from the plain array, whose case has these parameters.

    `code_bits` is how many bits the codes have that it is a layout of, if not of any. `whence` is
    given the places of plain entries, and returns those that entries of the view come from: an
    array for each that goes into one. Without it, the function only moves entries, and so their
    places. `rule` says what its padding is.
    """

    function: Callable[[Unsigned, Parameters], Unsigned]
    meaning: str
    code_bits: int | None = None
    whence: Callable[[Unsigned], tuple[Unsigned, ...]] | None = None
    rule: str = ""  # of its padding
    is_padding_free: bool = False


def transposed(array: Unsigned, _: Parameters) -> Unsigned:
    """VEC-004: columns before rows."""
    return np.ascontiguousarray(array.T)


def packed(codes: Unsigned, _: Parameters) -> Unsigned:
    """VEC-005: two codes of 4 bits in a byte."""
    rows = codes.reshape(-1, codes.shape[-1])
    even = np.zeros((len(rows), -(-rows.shape[1] // 2) * 2), np.uint8)
    even[:, : rows.shape[1]] = rows
    pairs: NDArray[np.uint8] = even[:, ::2] | even[:, 1::2] << np.uint8(4)
    return pairs.reshape(*codes.shape[:-1], -1)


def _halves(places: Unsigned) -> tuple[Unsigned, Unsigned]:
    """Return the places of the low and of the high nibbles; 0 for nibbles without a code."""
    high = np.zeros_like(places[..., ::2])
    high[..., : places.shape[-1] // 2] = places[..., 1::2]
    return places[..., ::2], high


def reciprocal(scale: Unsigned, _: Parameters) -> Unsigned:
    """VEC-006: RN32(1 / scale) of each scale."""
    return f32_array(quotient(1.0, x) for x in numbers_of(scale, "f32")).reshape(scale.shape)


def replicated(scale: Unsigned, parameters: Parameters) -> Unsigned:
    """VEC-007: each scale once for every row of its tile."""
    return np.repeat(scale, parameters["tile"][0], axis=0)


def swizzled_128x4(scale: Unsigned, _: Parameters) -> Unsigned:
    """VEC-008: the flat layout of scales that tensor cores read, in tiles of 128x4."""
    whole = in_whole_tiles(scale, 128, 4)
    tiles = whole.reshape(len(whole) // 128, 4, 32, whole.shape[1] // 4, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)).reshape(-1)


def padded_4(scale: Unsigned, _: Parameters) -> Unsigned:
    """VEC-015: rows that end with zeros, so that their length is a multiple of 4."""
    return in_whole_tiles(scale, 1, 4)


def mn_major(scale: Unsigned, _: Parameters) -> Unsigned:
    """VEC-016: columns before rows, each padded to a multiple of 4."""
    return in_whole_tiles(np.ascontiguousarray(scale.T), 1, 4)


def mn_major_packed(scale: Unsigned, _: Parameters) -> Unsigned:
    """VEC-017: the bytes of words that have four columns of a row."""
    whole = in_whole_tiles(scale, 4, 4)
    words = whole.reshape(len(whole), -1, 4).transpose(1, 0, 2)
    return np.ascontiguousarray(words).reshape(len(words), -1)


def shuffled_32x8(scale: Unsigned, _: Parameters) -> Unsigned:
    """VEC-018: scales in tiles of 32x8, as matrix cores of AMD read them."""
    whole = in_whole_tiles(scale, 256, 8)
    tiles = whole.reshape(len(whole) // 32, 2, 16, whole.shape[1] // 8, 2, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 5, 2, 4, 1)).reshape(whole.shape)


def shuffled_16x32(codes: Unsigned, _: Parameters) -> Unsigned:
    """VEC-019: bytes in tiles of 16x32, as matrix cores of AMD read them."""
    whole = in_whole_tiles(codes, 16, 32)
    tiles = whole.reshape(len(whole) // 16, 16, whole.shape[1] // 32, 2, 16)
    return np.ascontiguousarray(tiles.transpose(0, 2, 3, 1, 4)).reshape(whole.shape)


def in_whole_tiles(array: Unsigned, height: int, width: int) -> Unsigned:
    """Return an array with zeros around it, so that its sides are multiples of these.

    >>> in_whole_tiles(np.ones((1, 3), np.uint8), 2, 2).shape
    (2, 4)
    """
    rows, columns = array.shape
    whole = np.zeros((-(-rows // height) * height, -(-columns // width) * width), array.dtype)
    whole[:rows, :columns] = array
    return whole


def sha256_128x128(array: Unsigned, _: Parameters) -> Unsigned:
    """VEC-010: the SHA-256 of each tile of 128x128 entries."""
    side = DIGEST_TILE
    grid = [
        [_digest(array[i : i + side, j : j + side]) for j in range(0, array.shape[1], side)]
        for i in range(0, array.shape[0], side)
    ]
    return np.array(grid, np.uint8)


def _digest(tile: NDArray[Any]) -> list[int]:
    return list(hashlib.sha256(tile.astype("<u8").tobytes()).digest())


VIEWS: dict[str, View] = {
    "transposed": View(transposed, "columns before rows"),
    "packed": View(
        packed,
        "two codes of 4 bits in a byte, the even one in the low nibble; a row of odd length ends "
        "with a high nibble of 0",
        code_bits=4,
        whence=_halves,
        rule="VEC-005",
    ),
    "reciprocal": View(
        reciprocal,
        "RN32(1 / scale), as kernels that divide store it",
        whence=lambda places: (places,),
    ),
    "replicated": View(replicated, "a scale for each row of its tile, rows of padding included"),
    "swizzled_128x4": View(
        swizzled_128x4,
        "flat, in tiles of 128 rows and 4 columns: the entry of row r and column c is at "
        "((r // 128) * ceil(C / 4) + c // 4) * 512 + (r % 32) * 16 + (r // 32 % 4) * 4 + c % 4; "
        "padding to whole tiles is 0",
        rule="VEC-008",
    ),
    "padded_4": View(
        padded_4, "each row ends with zeros, up to a multiple of 4 entries", rule="VEC-015"
    ),
    "mn_major": View(
        mn_major,
        "columns before rows; each column goes on up to a multiple of 4 entries, and this padding "
        "can be anything",
        is_padding_free=True,
    ),
    "mn_major_packed": View(
        mn_major_packed,
        "the bytes of words of 32 bits, with four columns of a row each, the first in the low "
        "byte: the entry of row r and column c is at [c // 4, 4 * r + c % 4]; rows and columns are "
        "padded to multiples of 4, and the padding can be anything",
        is_padding_free=True,
    ),
    "shuffled_32x8": View(
        shuffled_32x8,
        "in tiles of 32 rows and 8 columns, one after the other: the entry of row r and column c "
        "of a tile is at (c % 4) * 64 + (r % 16) * 4 + c // 4 * 2 + r // 16; rows are padded to a "
        "multiple of 256 and columns to one of 8, and the padding can be anything",
        is_padding_free=True,
    ),
    "shuffled_16x32": View(
        shuffled_16x32,
        "in tiles of 16 rows and 32 bytes, one after the other: byte c of row r of a tile is at "
        "c // 16 * 256 + r * 16 + c % 16; padding to whole tiles is 0",
        rule="VEC-019",
    ),
    DIGEST: View(
        sha256_128x128,
        "the SHA-256 of each tile of 128 rows and columns, row by row, each entry as eight bytes, "
        "little-endian",
        whence=lambda places: (
            np.repeat(places[::DIGEST_TILE, ::DIGEST_TILE, np.newaxis], DIGEST_BYTES, axis=2),
        ),
    ),
}


def axes_of(operation: str, field: str) -> Axes:
    """Return the axes of a field of an operation, or of the digests of its tiles."""
    if SEPARATOR in field:
        return _OF_DIGESTS
    return AXES[OPERATIONS[operation].field(field).axes]


def digests_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the digests of the tiles of an array (VEC-010)."""
    return (*(-(-side // DIGEST_TILE) for side in shape), DIGEST_BYTES)


def split(name: str) -> tuple[str, list[str]]:
    """Split the name of a view into its field and its views, in turn."""
    field, *views = name.split(SEPARATOR)
    return field, [known_name("view", view, VIEWS) for view in views]


def unsuited(views: list[str], parameters: Parameters) -> str | None:
    """Return the reason why the codes of a case have no such view, or None."""
    if "block_format" in parameters:
        fmt = block_format_in(parameters["block_format"]).fmt
    else:
        fmt = formats[parameters.get("format", "e2m1")]
    for view in views:
        bits = VIEWS[view].code_bits
        if bits not in (None, fmt.bits):
            return f"{view} is of codes of {bits} bits, and {fmt.name} has {fmt.bits}"
    return None


def seen(array: Unsigned, views: list[str], parameters: Parameters) -> Unsigned:
    """Return an array in other layouts, one after the other."""
    for view in views:
        array = VIEWS[view].function(array, parameters)
    return array


def is_padding_free(views: Iterable[str]) -> bool:
    """Return whether the padding of an array in these views can be anything."""
    return any(VIEWS[view].is_padding_free for view in views)


def sources(shape: tuple[int, ...], views: list[str], parameters: Parameters) -> list[Unsigned]:
    """Return the entries of a plain array that go into each entry of a view, counted from 1.

    0 is padding. If several entries go into one, there is an array for each of them.
    """
    found: list[Unsigned] = [np.arange(1, math.prod(shape) + 1, dtype=np.uint64).reshape(shape)]
    for view in views:
        found = [place for places in found for place in _whence(VIEWS[view], places, parameters)]
    return found


def _whence(view: View, places: Unsigned, parameters: Parameters) -> tuple[Unsigned, ...]:
    return view.whence(places) if view.whence else (view.function(places, parameters),)
