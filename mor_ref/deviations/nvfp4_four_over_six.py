"""Errors of the candidates of 4 over 6, added in another order (NVF-006)."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import NVFP4_4OVER6
from mor_ref.exact import nvfp4
from mor_ref.exact.arithmetic import total
from mor_ref.exact.blocks import Rows

Reference = Callable[..., float]

_IN_TILES = (*NVFP4_4OVER6, "nvfp4_large")


def _has_rows(_profile: Nvfp4Profile, tile: Rows, *_: Any) -> bool:
    return len(tile) > 1


def _of_rows(reference: Reference, profile: Nvfp4Profile, tile: Rows, *rest: Any) -> list[float]:
    """Return the error of each row."""
    return [reference(profile, [row], *rest) for row in tile]


@deviation(
    nvfp4.candidate_error,
    rules=("NVF-006",),
    domain=("nvfp4_blocks", *_IN_TILES),
)
def errors_summed_from_the_right(
    reference: Reference, profile: Nvfp4Profile, tile: Rows, *rest: Any
) -> float:
    """The errors of a row of a tile are added from right to left."""
    return reference(profile, [row[::-1] for row in tile], *rest)


_of_sums_of_rows = deviation(
    nvfp4.candidate_error,
    where=_has_rows,
    rules=("NVF-006",),
    domain=_IN_TILES,
)


@_of_sums_of_rows
def rows_summed_one_by_one(reference: Reference, *arguments: Any) -> float:
    """The sums of the rows of a tile are added from first to last, not in halves."""
    return reduce(total, _of_rows(reference, *arguments))


@_of_sums_of_rows
def rows_summed_in_pairs(reference: Reference, *arguments: Any) -> float:
    """The sums of the rows of a tile are added in pairs of neighbours, not in halves."""
    rows = _of_rows(reference, *arguments)
    rows += [0.0] * (16 - len(rows))
    while len(rows) > 1:
        rows = [total(a, b) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    return rows[0]


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
