"""Products of matrices in segments of K: each is a dot product, and is added times its scales."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.coded_blocks import CodedBlocks
from mor_ref.api.matmul_operands import Side
from mor_ref.argument_checks import known_name
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.matmul import TO_QUANTIZE

if TYPE_CHECKING:
    from mor_ref.engine.matmul import Piece

Numbers = NDArray[np.float32]


def check_format(fmt: Format, profile: DotProfile, what: str = "an operand") -> None:
    """Refuse a format that a profile does not have."""
    if profile.formats and fmt.name not in profile.formats:
        raise ValueError(
            f"{what} is of {fmt.name}, which {profile.name} does not take; give one of "
            f"{' or '.join(profile.formats)}"
        )


def check_array(side: Side, profile: DotProfile) -> None:
    """Refuse an array of a format that a profile does not have; a record passes (GEM-002)."""
    rung = side.rungs[0]
    if side.is_plain and rung is not None:
        check_format(rung.fmt, profile, "an array")


def in_segments(a: Side, b: Side, profile: DotProfile, threads: int | None) -> Numbers:
    """Return the sum over segments of K, each times its scales (GEM-003, GEM-004)."""
    for side in (a, b):
        _check_blocks(side)
        check_array(side, profile)
    units = sorted({0, a.shape[1], *a.ends_of_units, *b.ends_of_units})
    c = np.zeros((a.shape[0], b.shape[0]), np.float32)
    for first, last in pairwise(units):
        for rows_a, rung_a in _groups(a, first):
            for rows_b, rung_b in _groups(b, first):
                group_a, group_b = (a, rows_a, rung_a), (b, rows_b, rung_b)
                for where in pairwise(_places(group_a, group_b, first, last)):
                    _add(c, group_a, group_b, where, profile, threads)
    return c


def _places(a: "Group", b: "Group", first: int, last: int) -> list[int]:
    """Return where blocks that rows took end, from a place of K to another one (GEM-003)."""
    sides = {side.blocks_of(rung) for side, _, rung in (a, b)}
    ends = {k for side in sides for k in range(first - first % side + side, last, side)}
    return sorted({first, last} | ends)


def _check_blocks(side: Side) -> None:
    """Refuse scales that change at each place of K; units in bfloat16 have none."""
    for rung in map(side.rung, np.unique(side.choice).tolist()):
        if rung is not None and rung.tile[1] == 1 and side.shape[1] > 1:
            raise ValueError(
                "a record has a scale for each place of K, which no instruction takes; "
                f"{TO_QUANTIZE}"
            )


def _groups(side: Side, k: int) -> list[tuple[NDArray[np.intp], CodedBlocks | None]]:
    """Return the rows of each rung at a place of K, with the rung; None for bfloat16."""
    chosen = side.chosen(k)
    return [(np.flatnonzero(chosen == n), side.rung(n)) for n in np.unique(chosen).tolist()]


Group = tuple[Side, NDArray[np.intp], CodedBlocks | None]


def _add(
    c: Numbers,
    a: Group,
    b: Group,
    where: tuple[int, int],
    profile: DotProfile,
    threads: int | None,
) -> None:
    """Add the products of some rows of A and of B in a segment of K to c."""
    from mor_ref.engine.matmul import add_segment

    is_upcast = not all(_takes(group, profile) for group in (a, b))
    rule = _wide(a, b, profile) if is_upcast else profile
    piece_a, piece_b = (_piece(*group, where, rule, is_upcast) for group in (a, b))
    rows = np.ix_(a[1], b[1])
    sums = np.ascontiguousarray(c[rows])
    add_segment(piece_a, piece_b, sums, rule, threads)
    c[rows] = sums


def _takes(group: Group, profile: DotProfile) -> bool:
    rung = group[2]
    name = "bf16" if rung is None else rung.fmt.name
    return not profile.formats or name in profile.formats


def _wide(a: Group, b: Group, profile: DotProfile) -> DotProfile:
    """Return the profile that multiplies the blocks that are upcast (GEM-004)."""
    if not (a[0].is_mixed or b[0].is_mixed):
        for group in (a, b):
            if group[2] is not None:
                check_format(group[2].fmt, profile)
    if not profile.wide:
        raise ValueError(
            f"blocks are not all in {' or '.join(profile.formats)}, and the architecture of "
            f"{profile.name} does not multiply the others in bfloat16; give a profile of another "
            "architecture, such as hopper_fp8"
        )
    argument = f"wide of profile {profile.name!r}"
    wide_profile = DOT_PROFILES[known_name(argument, profile.wide, DOT_PROFILES)]
    if wide_profile.formats and "bf16" not in wide_profile.formats:
        raise ValueError(
            f"{argument} is {wide_profile.name!r}, which does not multiply bfloat16; give one "
            "that does, such as hopper_bf16"
        )
    return wide_profile


def _piece(
    side: Side,
    rows: NDArray[np.intp],
    rung: CodedBlocks | None,
    where: tuple[int, int],
    profile: DotProfile,
    is_upcast: bool,
) -> "Piece":
    """Return some rows in a segment of K, with their scales."""
    from mor_ref.engine.dot_operands import operand_of
    from mor_ref.engine.matmul import Piece

    part = slice(*where)
    if is_upcast or rung is None:
        codes = np.ascontiguousarray(side.as_bf16()[rows, part])
        ones = np.ones(rows.size, np.float32)
        return Piece(operand_of(codes, formats["bf16"], profile), ones)
    codes = np.ascontiguousarray(rung.codes[rows, part])
    scale = np.ones(len(rung.codes))
    if rung.scale is not None:
        scale = rung.spread_to_rows(rung.scale[:, where[0] // rung.tile[1]])
    with np.errstate(over="ignore"):
        factor = (scale * rung.overall_by_row().astype(np.float64)).astype(np.float32)
    return Piece(operand_of(codes, rung.fmt, profile), factor[rows])
