"""Amaxes and scales that are given: one number, or one for each block, group, row or part."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.decoding import decode
from mor_ref.api.encoding import encode
from mor_ref.argument_checks import binary32_number, known_name, positive_binary32
from mor_ref.arrays import numbers_from
from mor_ref.definitions.block_formats import (
    BlockFormat,
    BlockScale,
    percentiles_of,
    place_of_amax,
    reads_amax,
    scale_named,
)
from mor_ref.definitions.blocks import Partition, partition, rows_and_columns
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import Nvfp4Profile, given_in
from mor_ref.definitions.scales import (
    AmaxOrScale,
    GivenScales,
    Scaling,
    check_scale_given,
    given_amax,
    given_for,
    given_scale,
)

_EXAMPLE = "0.25"
# One number, or one for each place: flat, or in rows and columns.
Given = SupportsFloat | Sequence[SupportsFloat] | Sequence[Sequence[SupportsFloat]]
GivenOfScales = Given | Mapping[str, Given]  # those of the outermost scale, or by name


def given_for_blocks(
    scaling: Scaling,
    amax: Given | None,
    scale: Given | None,
    cut: Partition,
) -> AmaxOrScale:
    """Return a given amax or scale of blocks (SCL-006, SCL-007); with gam an amax is of groups."""
    if not _are_several(amax, scale):
        return given_for(scaling, amax, scale)  # type: ignore[arg-type]  # which is found out
    check_scale_given(scaling, amax, scale)
    if scale is not None:
        return AmaxOrScale(scale=_one_for_each("scale", scale, cut.grid, "blocks", given_scale))
    grid, places = (cut.group_grid, "groups") if scaling == "gam" else (cut.grid, "blocks")
    return AmaxOrScale(_one_for_each("amax", amax, grid, places, given_amax))


def given_for_rows(
    profile: Nvfp4Profile,
    amax: Given | None,
    global_scale: Given | None,
    shape: tuple[int, ...],
) -> AmaxOrScale:
    """Return a given amax or global scale of NVFP4; a profile by rows takes one for each row."""
    if not profile.per_row or not _are_several(amax, global_scale):
        return given_in(profile, amax, global_scale)  # type: ignore[arg-type]  # as above
    if amax is not None and global_scale is not None:
        raise ValueError("amax and global_scale are both given; give one of them")
    name, numbers = ("amax", amax) if global_scale is None else ("global_scale", global_scale)
    check = given_amax if global_scale is None else given_scale
    rows, _ = rows_and_columns(shape)
    each = _one_for_each(name, numbers, (rows, 1), "rows", check).reshape(rows)
    return AmaxOrScale(each) if global_scale is None else AmaxOrScale(scale=each)


def given_by_name(
    block_format: BlockFormat,
    amax: GivenOfScales | None,
    scale: GivenOfScales | None,
    shape: tuple[int, ...],
) -> GivenScales:
    """Return the given amaxes and scales of a block format by the names of its scales (BLF-008).

    Without a name, they are of the outermost scale.
    """
    given: dict[str, AmaxOrScale] = {}
    for name, own in _by_name("amax", amax, block_format).items():
        _check_amax_counts(block_format, name)
        given[name] = AmaxOrScale(
            _part_numbers("amax", own, scale_named(block_format, name), shape, given_amax)
        )
    for name, own in _by_name("scale", scale, block_format).items():
        if name in given:
            raise ValueError(f"amax and scale of {name!r} are both given; give one of them")
        place = place_of_amax(block_format, name)
        if place:
            raise ValueError(f"scale of {name!r} is given, but {place} has its amax; give amax")
        stored = scale_named(block_format, name)
        check = given_scale if stored.fmt == formats["f32"] else _given_number
        numbers = _part_numbers("scale", own, stored, shape, check)
        _check_numbers_of(stored.fmt, numbers)
        given[name] = AmaxOrScale(scale=numbers)
    return given


def _check_amax_counts(block_format: BlockFormat, name: str) -> None:
    """Refuse an amax that no formula reads: a scale may have percentiles alone (BLF-007)."""
    stored = scale_named(block_format, name)
    if percentiles_of(block_format, stored) and not reads_amax(block_format, stored):
        raise ValueError(
            f"amax of {name!r} is given, but its formula has percentiles and no amax; give scale"
        )


def _by_name(argument: str, given: Any, block_format: BlockFormat) -> Mapping[str, Any]:
    if given is None:
        return {}
    names = [scale.name for scale in block_format.scales]
    if not isinstance(given, Mapping):
        return {names[0]: given}
    for name in given:
        known_name(f"a name of {argument}", name, names)
    return given


def _part_numbers(
    argument: str,
    given: Any,
    scale: BlockScale,
    shape: tuple[int, ...],
    check: Callable[[str, object], float],
) -> Any:
    """Return one number, or that of each part of a scale."""
    if not _are_several(given):
        return check(argument, given)
    grid = partition(shape, scale.over).grid
    return _one_for_each(argument, given, grid, f"parts of {scale.name}", check)


def _given_number(argument: str, value: object) -> float:
    return positive_binary32(argument, value, _EXAMPLE)


def _check_numbers_of(fmt: Format, given: Any) -> None:
    """Refuse a number that the format of a scale does not have."""
    numbers = np.asarray(given, np.float32).reshape(-1)
    nearest = decode(encode(numbers, fmt), fmt)
    for number, other in zip(numbers[numbers != nearest], nearest[numbers != nearest], strict=True):
        raise ValueError(
            f"scale is {float(number)!r}, which is not a number of {fmt.name}; the nearest is "
            f"{float(other)!r}"
        )


def _are_several(*arguments: Any) -> bool:
    """Return whether an argument is a list or an array of some dimension."""
    return any(
        isinstance(argument, list | tuple) or getattr(argument, "shape", ()) != ()
        for argument in arguments
    )


def _one_for_each(
    argument: str,
    given: Any,
    grid: tuple[int, int],
    places: str,
    check: Callable[[str, object], float],
) -> NDArray[np.float32]:
    """Return the number of each place of a grid, in its shape; a row of them may be flat."""
    values, shape = finite_binary32(argument, given)
    count = math.prod(grid)
    if shape not in (grid, (count,)):
        sides = "x".join(map(str, shape))
        raise ValueError(
            f"{argument} has the shape {sides}; give one number, or one for each of the "
            f"{grid[0]}x{grid[1]} {places}"
        )
    if count:
        check(argument, float(values.min()))
    return values.reshape(grid)


def finite_binary32(argument: str, given: Any) -> tuple[NDArray[np.float32], tuple[int, ...]]:
    """Return numbers in a row, and their shape; refuse one that is no finite number of binary32."""
    numbers = numbers_from(given, argument, widest=np.float64)
    values = numbers.bits.view(numbers.dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        binary32 = values.astype(np.float32)
    for lost in values[~(np.isfinite(binary32) & (binary32 == values))][:1]:
        binary32_number(argument, float(lost), _EXAMPLE)
    return binary32, numbers.shape
