"""Selections: ways to choose the numbers of a tensor that keep more bits."""

from dataclasses import dataclass
from typing import Literal, get_args

from mor_ref.argument_checks import known_name, real_number
from mor_ref.definitions.before_blocks import OUTLIER, outlier_limit
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue

By = Literal["rank", "column"]
SELECTIONS = get_args(By)


def check_limit(by: str, limit: object) -> float:
    """Return the share of a rank, or the limit of outliers; refuse any other number.

    A share is from 0 to 1, and a limit is positive and finite in binary32.
    """
    known_name("by", by, SELECTIONS)
    if by == "column":
        return outlier_limit(limit)
    value = real_number("limit", limit, "0.9")
    if not 0 <= value <= 1:
        raise ValueError(f"limit has to be a share from 0 to 1 by rank: got {limit!r}; give 0.9")
    return value


@dataclass(frozen=True)
class Selection:
    """A selection with its usual limit, and the bits that numbers take (SEL-005).

    `bits` are those of a number that is not selected, and `high_bits` those of a selected one; 0 if
    it stays as it is. The scales take `row_bits` for each row, and `tensor_bits`.
    """

    name: str
    by: By
    limit: float
    bits: int
    high_bits: int
    row_bits: int
    tensor_bits: int = 0


KNOWN_SELECTIONS: Catalogue[Selection] = Catalogue(
    "selection",
    Selection,
    (
        Selection("pb_llm", "rank", 0.9, 1, 8, row_bits=32 + 8, tensor_bits=32),
        Selection("llm_int8", "column", OUTLIER, 8, 0, row_bits=32),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
)


def known_selection(selection: str) -> Selection:
    """Return the selection of that name."""
    return KNOWN_SELECTIONS[known_name("selection", selection, KNOWN_SELECTIONS)]
