"""Tiles of NVFP4 at the ends of large tensors, found by a search, that expose wrong kernels.

`found_late.json` lists them by profile, tile and case, each under the largest number of its tensor
or row, without the zeros that a tile ends in. Cases of few numbers are whole tensors.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.golden.inputs.found_few import rows_of
from mor_ref.golden.inputs.found_files import contents_of
from mor_ref.golden.inputs.placed import Entry

_COLUMNS = 16
_HALVED = {"f32": 1 << 23, "f16": 1 << 10, "bf16": 1 << 7}  # the last bit of the exponent


def _of(profile: Nvfp4Profile, tile: tuple[int, int]) -> Mapping[str, Any]:
    of_tiles: Mapping[str, Any] = contents_of("late").get(profile.name, {})
    found: Mapping[str, Any] = of_tiles.get(f"{tile[0]}x{tile[1]}", {})
    return found


def late_tiles(
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    case: str,
    shape: tuple[int, int],
    *,
    before_last: bool,
) -> list[Entry]:
    """Return the tiles of a case, from the last whole ones up, each with its largest number.

    That is the last one of the tensor, or of a row if rows have global scales, or the one before.
    """
    entries: list[Entry] = []
    height = (shape[0] - 1) % tile[0] + 1  # of the last tile
    across = shape[1] // _COLUMNS
    for number, (largest, texts) in enumerate(_of(profile, tile).get(case, {}).items()):
        last = shape[0] - number
        for place, text in enumerate(texts):
            up, left = divmod(place, across)
            first = last - (up + 1) * height
            entries += _placed(text, first, height, (across - 1 - left) * _COLUMNS)
        entries.append([last - 1, shape[1] - 1 - before_last, int(largest, 16)])
        if across > 1 and height < tile[0] < last:  # half of it is in the corner of a whole tile
            half = int(largest, 16) - _HALVED[case.rpartition(".")[2]]
            entries.append([last - height - 1, across * _COLUMNS - 1, half])
    return entries


def _placed(text: str, first: int, height: int, column: int) -> Iterator[Entry]:
    """Yield the rows of a tile."""
    (numbers,) = rows_of(text)
    numbers += [0] * (height * _COLUMNS - len(numbers))
    for row in range(height):
        yield [first + row, column, *numbers[row * _COLUMNS : (row + 1) * _COLUMNS]]


def tensors_of_few(
    profile: Nvfp4Profile, tile: tuple[int, int]
) -> Iterator[tuple[str, list[list[int]]]]:
    """Yield the source and the rows of each tensor of few numbers."""
    for name, texts in _of(profile, tile).items():
        word, _, source = name.partition(".")
        if word == "few":
            yield from ((source, rows_of(text)) for text in texts)
