"""Packed codes: blocks that share an exponent, and rows of levels."""

from collections.abc import Iterator

from mor_ref.definitions.levels import LEVEL_KINDS
from mor_ref.definitions.shared import BLOCK, SHARED_KINDS
from mor_ref.golden.model.suite import Case, Size, Suite, expected, given
from mor_ref.operations.packed import random_blocks, random_rows
from mor_ref.operations.random_numbers import Draws

_COUNT = 24  # rows of a case
_WIDTHS = (1, 2, 3, 4, 5, 7, 8, 16, 41)


def _block_cases(size: Size) -> Iterator[Case]:
    for kind in SHARED_KINDS.specified:
        for width in (1, 2, 7, BLOCK):
            drawn = random_blocks({"kind": kind}, Draws(0, _COUNT * size.factor, size.seed, width))
            arrays = {name: array.astype("u1") for name, array in drawn.items()}
            yield Case(f"{kind}.{width}", {"kind": kind}, arrays)


def _row_cases(size: Size) -> Iterator[Case]:
    for kind in LEVEL_KINDS.specified:
        for width in _WIDTHS:
            drawn = random_rows({"kind": kind}, Draws(0, _COUNT * size.factor, size.seed, width))
            yield Case(f"{kind}.{width}", {"kind": kind}, {"code": drawn["code"].astype("u1")})


BLOCKS = Suite(
    "shared_packed",
    "Packed blocks with a shared exponent",
    "shared_packed",
    (),
    (
        given("code", "u8", "the codes of each block"),
        given("tau", "u8", "the shift of each pair"),
        given("shared_exponent", "u8", "E of each block"),
        expected("packed", "u8", "the bytes of each block", "SHX-007"),
    ),
    _block_cases,
)
ROWS = Suite(
    "levels_packed",
    "Packed rows of levels",
    "levels_packed",
    (),
    (
        given("code", "u8", "the codes of each row"),
        expected("packed", "u8", "the bytes of each row", "LVL-008"),
    ),
    _row_cases,
)
