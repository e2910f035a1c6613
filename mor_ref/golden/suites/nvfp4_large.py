"""Large tensors in NVFP4, in each of its profiles, and tensors of few numbers."""

import functools
from collections.abc import Iterator
from typing import Any

from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.golden.inputs.found_late import late_tiles, tensors_of_few
from mor_ref.golden.inputs.placed import End
from mor_ref.golden.suites.large import (
    LARGEST_LATE,
    LAST_IN_TALLER,
    LAST_IN_WIDER,
    TALLER,
    WIDER,
    LargeCase,
    digested,
    large_beyond_tiles,
    large_suite,
    name_with,
    of_few,
)
from mor_ref.golden.suites.nvfp4 import SOURCES, is_normative

_TE = {"profile": "te", "tile": [1, 16]}
_LARGE = (
    LargeCase("te.1x16", "bf16", (150, 170), 246, _TE),
    LargeCase("te_4over6_mse.16x16", "f32", (130, 140), 225,
              {"profile": "te_4over6_mse", "tile": [16, 16]}),
    LargeCase("wider.te.1x16", "bf16", WIDER, LAST_IN_WIDER, _TE),
    LargeCase("taller.te.1x16", "bf16", TALLER, LAST_IN_TALLER, _TE),
)  # fmt: skip


# Tall tensors for tiles of 1 and of 16 rows. Their streams have the largest number behind 2,048
# rows and 2^16 numbers. No stream below 4,000 shows all orders of operations of 16x16: te_2_13 has
# another.
_TALL = {1: ((2100, 34), 1676), 16: ((2100, 66), 366)}
_TALL_OF_TE_2_13 = {**_TALL, 16: ((2100, 66), 295)}


# An infinity is the amax, behind 512 columns or 512 rows. Rows are odd.
_LOST = {"lost_wide": (1, 545), "lost_tall": (513, 17)}


def _every_profile_and_tile() -> Iterator[LargeCase]:
    """Yield each profile and tile, with more than 2^16 numbers and 512 tiles of 16x16."""
    for profile in map(PROFILES.__getitem__, PROFILES.specified):
        tall = _TALL_OF_TE_2_13 if profile.name == "te_2_13" else _TALL
        for tile in profile.tiles:
            case = functools.partial(_with_late_tiles, profile, tile)
            sides = {"wide": ((tile[0] + 1, 2100), LARGEST_LATE), "tall": tall[tile[0]]}
            for word, (shape, stream) in sides.items():
                yield from (case(word, source, shape, stream) for source in SOURCES)
            for word, shape in _LOST.items():
                yield case(word, "bf16", shape, LARGEST_LATE)
            yield from _of_few(profile, tile)


def _with_late_tiles(
    profile: Nvfp4Profile,
    tile: tuple[int, int],
    word: str,
    source: str,
    shape: tuple[int, int],
    stream: int,
) -> LargeCase:
    """Return a case that ends in tiles that were found, its largest number and a NaN."""
    ends = [End.NAN] if is_normative(profile) and word not in _LOST else []
    placed = late_tiles(profile, tile, f"{word}.{source}", shape, before_last=bool(ends))
    ends = ends if placed else [End.LARGEST, *ends]
    name, parameters = _named(word, profile, tile, source)
    return LargeCase(name, source, shape, stream, parameters, ends=ends, placed=placed)


def _of_few(profile: Nvfp4Profile, tile: tuple[int, int]) -> Iterator[LargeCase]:
    """Yield tensors of few numbers, such as the smallest ones."""
    for number, (source, rows) in enumerate(tensors_of_few(profile, tile)):
        name, parameters = _named(f"few_{number}", profile, tile, source)
        yield of_few(name, rows, {**parameters, "source": source})


def _named(
    word: str, profile: Nvfp4Profile, tile: tuple[int, int], source: str
) -> tuple[str, dict[str, Any]]:
    """Return the name of a case, and its parameters without the source."""
    parameters = {"profile": profile.name, "tile": list(tile)}
    return name_with(f"{word}.{profile.name}.{tile[0]}x{tile[1]}", source), parameters


LARGE = large_suite(
    "nvfp4_large",
    "Larger tensors in NVFP4, and tensors of few numbers",
    "nvfp4",
    (*_LARGE, *_every_profile_and_tile(), *large_beyond_tiles("te.1x16", _TE)),
    (*digested("block_scale", "code", "packed", "y"), "global_encode_scale", "global_decode_scale"),
)
