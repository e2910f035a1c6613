"""Levels: the kinds of ParetoQ, from one bit to four, and the arithmetic that they are made in."""

from dataclasses import dataclass
from typing import Literal

from mor_ref.argument_checks import known_name
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue

Grid = Literal["integers", "thirds", "quarters", "signs"]
ARITHMETICS = ("f32", "bf16")
SMALLEST_ALPHA = 1e-5  # before it is rounded (LVL-003)
CLIP = 0.99  # of a ratio, before it is rounded (LVL-005)
TERNARY_DIGITS = 5  # of a packed byte (LVL-008)


@dataclass(frozen=True)
class LevelKind:
    """A grid of levels, and the numbers of its rules.

    `lowest` and `highest` limit a ratio, and stand for it in the gradient of alpha. `steps` and
    `shift` take a ratio to an integer (LVL-005). `divisor` divides the maximum of a row; there is
    none for the mean (LVL-002). `bits` are those of a packed code, 0 for digits to the base 3.
    """

    name: str
    grid: Grid
    lowest: float
    highest: float
    steps: float
    shift: float
    divisor: int
    gradient_divisor: int
    bits: int

    def row_bytes(self, columns: int) -> int:
        """Return the bytes of a packed row (LVL-008)."""
        return -(-columns * self.bits // 8) if self.bits else -(-columns // TERNARY_DIGITS)


LEVEL_KINDS: Catalogue[LevelKind] = Catalogue(
    "kind",
    LevelKind,
    (
        LevelKind("lsq4", "integers", -8, 7, 1, 0, 7, 7, 4),
        LevelKind("lsq3", "integers", -4, 3, 1, 0, 3, 3, 3),
        LevelKind("seq2", "quarters", -0.75, 0.75, 2, 0.5, 1, 1, 2),
        LevelKind("seq1.58", "thirds", -1, 1, 1.5, 0, 1, 1, 0),
        LevelKind("elastic1", "signs", -1, 1, 1, 0, 0, 1, 0),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
)


def level_kind(kind: str) -> LevelKind:
    """Return the kind of that name."""
    return LEVEL_KINDS[known_name("representation", kind, LEVEL_KINDS)]


def known_arithmetic(arithmetic: str) -> str:
    """Return the name of an arithmetic; refuse any other (LVL-001)."""
    return known_name("arithmetic", arithmetic, ARITHMETICS)
