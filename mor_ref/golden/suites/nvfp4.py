"""NVFP4 in each of its profiles: single tiles and tensors."""

import functools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES, Nvfp4Profile
from mor_ref.golden.inputs.amaxes_at_thresholds import pairs_of_tiles
from mor_ref.golden.inputs.beyond_tiles import beyond_tiles
from mor_ref.golden.inputs.edges import bell
from mor_ref.golden.inputs.every_scale import (
    every_scale,
    infinite_errors,
    infinite_tiles,
    lost_scale,
    nan_and_four,
    tiles_of_scales,
    unordered_errors,
)
from mor_ref.golden.inputs.found_narrow import found_in_sources
from mor_ref.golden.inputs.found_tiles import found_lines, found_squares, found_tensors, found_tiles
from mor_ref.golden.inputs.nvfp4_tiles import (
    infinite_amax,
    largest_in_corners,
    scales_near_ties,
    scales_of_powers_of_two,
    subnormal_row,
    tied_candidates,
)
from mor_ref.golden.inputs.single_blocks import (
    WIDTH,
    filled,
    repeats,
    spread_pairs_of_gam,
    with_specials,
)
from mor_ref.golden.inputs.tensors import Tensor, bell_in_bf16, ladders, tensors
from mor_ref.golden.model.suite import Case, Size, Suite, suite
from mor_ref.golden.suites.tensor_cases import tensor_case

SOURCES = ("bf16", "f16", "f32")


def is_normative(profile: Nvfp4Profile) -> bool:
    """Return whether a profile is of kernels; another library's quantizer takes no NaN."""
    return profile.scales.takes_nan


def _has_errors(profile: Nvfp4Profile) -> bool:
    """Return whether a profile takes the one of two candidates that has the smaller error."""
    return profile.scales.error is not None


def _tiles(size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Return tiles, and the amax of the tensor of each."""
    count = 64 * repeats(size)
    groups, blocks = spread_pairs_of_gam(count)
    x = with_specials(filled(formats["e2m1"], blocks, WIDTH, size, 130))
    usual = bell(count // 4 * WIDTH, size.seed, 131).reshape(-1, WIDTH)
    # 1.5 times the scale of this one rounds to 480, above the largest.
    high = np.minimum(bell(WIDTH, size.seed, 172) & np.uint32(0x7FFFFFFF), np.uint32(0x3F000000))
    high[3] = 0x3F333333
    near, also_near = (tensor.x for tensor in scales_near_ties(size))
    x = np.concatenate([x, usual, [high, near[8], also_near[13]]])
    rest = np.array([0x3F800000, near[0, 0], also_near[0, 0]], np.uint32)
    largest = np.concatenate([groups, np.full(len(usual), 0x40400000 + 0x1234, np.uint32), rest])
    is_infinite = ((x & 0x7FFFFFFF) == 0x7F800000).any(axis=1)
    return x, np.where(is_infinite, np.uint32(0x7F800000), largest)


def _block_cases(size: Size) -> Iterator[Case]:
    x, amax = _tiles(size)
    is_nan = ((x & 0x7FFFFFFF) > 0x7F800000).any(axis=1)
    for name in PROFILES.specified:
        profile = PROFILES[name]
        usable = is_normative(profile) | ~is_nan
        whole, near = pairs_of_tiles(Fraction(profile.range) / 6)
        turning = filled(formats["e2m1"], near, WIDTH, size, 160)
        parts = [
            (amax[usable], x[usable]),
            (whole, turning),
            found_tiles(name, "blocks"),
            found_tiles(name, "tensors"),
            tiles_of_scales(profile),
        ]
        if _has_errors(profile):
            parts.append(infinite_tiles(profile))
        amaxes, tiles = (np.concatenate(side) for side in zip(*parts, strict=True))
        yield Case(name, {"profile": name, "source": "f32"}, {"x": tiles, "amax": amaxes})


def _tensors(profile: Nvfp4Profile, tile: tuple[int, int], size: Size) -> Iterator[Tensor]:
    """Yield the tensors that a profile quantizes with one of its tiles, those of any profile."""
    for tensor in tensors(size):
        if is_normative(profile) or not tensor.name.startswith(("nan", "patterns")):
            yield tensor
    yield from (bell_in_bf16(size), *scales_of_powers_of_two(size))
    yield from (subnormal_row(), infinite_amax(size))
    rows = [*ladders(size), *scales_near_ties(size)]
    yield from rows if tile[0] == 1 else map(_as_line, rows[:-1])


def _as_line(tensor: Tensor) -> Tensor:
    """Return the rows as one row, so that each is a tile if tiles have sixteen rows."""
    return tensor._replace(x=tensor.x.reshape(1, -1))


def _of_scales(profile: Nvfp4Profile, tile: tuple[int, int]) -> Iterator[Tensor]:
    """Yield the tensors with every scale, and those with infinite errors or errors of NaN."""
    is_line = tile[0] > 1 or profile.per_row
    for source in SOURCES:
        of_some = is_line and source != "f32"  # a line has sixteen numbers for each scale
        yield (lost_scale if of_some else every_scale)(profile, tile, source)
    for source in SOURCES if _has_errors(profile) else ("f16",):
        yield unordered_errors(tile, source)
    if _has_errors(profile):
        for source in ("bf16", "f32"):
            yield infinite_errors(profile, tile, source)
        for source in SOURCES:
            yield nan_and_four(tile, source)


def _found(profile: Nvfp4Profile) -> Iterator[tuple[Tensor, tuple[int, int]]]:
    """Yield the tensors that searches have found, and their tiles."""
    yield from ((tensor, (1, 16)) for tensor in found_tensors(profile.name))
    yield from ((tensor, (16, 16)) for tensor in found_squares(profile.name))
    yield from ((tensor, (16, 16)) for tensor in found_lines(profile.name))
    for tile in profile.tiles:
        yield from ((tensor, tile) for tensor in found_in_sources(profile.name, tile))


def _tensor_cases(profile: Nvfp4Profile, size: Size) -> Iterator[Case]:
    case = functools.partial(tensor_case, profile=profile.name)
    for tile in profile.tiles:
        for tensor in (*_tensors(profile, tile, size), *_of_scales(profile, tile)):
            yield case(tensor, tile=tile)
    if (16, 16) in profile.tiles:
        for tensor in largest_in_corners(size):
            yield case(tensor, tile=(16, 16))
    for tensor, tile in _found(profile):
        yield case(tensor, tile=tile)
    if _has_errors(profile):
        for tile in profile.tiles:
            yield case(tied_candidates(profile, tile), tile=tile)
    for tensor in beyond_tiles(size):
        yield case(tensor, tile=(1, 16))


BLOCKS = suite(
    "nvfp4_blocks",
    "Single tiles in NVFP4, a case for each profile",
    "nvfp4_block",
    ("NVF-002", "NVF-003"),
    _block_cases,
)


def _tensor_suite(profile: Nvfp4Profile) -> Suite:
    own = profile.scales.id
    whole = ("NVF-003" if is_normative(profile) else own,)
    return suite(
        f"nvfp4_{profile.name}",
        f"Tensors in NVFP4, profile {profile.name}",
        "nvfp4",
        ("NVF-001", "NVF-012") if profile.per_row else ("NVF-001",),
        functools.partial(_tensor_cases, profile),
        tested={
            "global_encode_scale": whole,
            "global_decode_scale": whole,
            "block_scale": ("NVF-002", own),
        },
        normative=is_normative(profile),
    )


TENSORS = tuple(_tensor_suite(PROFILES[name]) for name in PROFILES.specified)
