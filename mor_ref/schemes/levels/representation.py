"""Rows of levels as representations."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name
from mor_ref.definitions.blocks import Cut, Partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.former_names import FormerAttribute, with_former_field
from mor_ref.representations.optional_members import Asked, StoredBits, Words, with_scales
from mor_ref.schemes.levels.definition import (
    LEVEL_KINDS,
    TERNARY_DIGITS,
    LevelKind,
    known_arithmetic,
    level_kind,
)

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element

_OF_THREE = 2  # bits of a code of three values that is not packed


@with_former_field("kind", "of")
@dataclass(frozen=True)
class LevelRows:
    """Levels of ParetoQ, with the first alpha of each row (MOR-007).

    >>> LevelRows("seq2").name, LevelRows("lsq4", "bf16").name
    ('seq2', 'lsq4_bf16')
    """

    of: str
    arithmetic: str = "f32"
    name: str = ""

    kind = FormerAttribute("of")

    def __post_init__(self) -> None:
        known_arithmetic(self.arithmetic)
        usual = self.rules.name.replace(".", "-")  # a name has no point
        usual = usual if self.arithmetic == "f32" else f"{usual}_{self.arithmetic}"
        object.__setattr__(self, "name", self.name or usual)
        check_name(self.name)

    @property
    def rules(self) -> LevelKind:
        """The rules of these levels."""
        return level_kind(self.of)

    @property
    def bits(self) -> int:
        """The bits of a code."""
        return self.rules.bits or _OF_THREE

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""
        del scaling
        scales = formats[self.arithmetic].bits * parts.rows
        if self.rules.bits:
            return with_scales(self.bits, parts, scales)
        return StoredBits(8 * parts.rows * -(-parts.columns // TERNARY_DIGITS), scales)  # LVL-008

    def rows_together(self, shape: tuple[int, ...]) -> int:
        """Return how many rows share scales."""
        del shape
        return 1

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `levels`."""
        del scaling, block, group
        given = {"kind": self.of, "arithmetic": self.arithmetic}
        return Asked("levels", {**given, "block": "row"})

    @property
    def words(self) -> Words:
        """The kind of recipe `levels`, and its fields."""
        return Words("levels", {"of": self.of}, {"arithmetic": self.arithmetic})

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.quantization import Element
        from mor_ref.schemes.levels.exact import level_row

        del scaling, parts
        rows = (level_row(row, self.rules, None, self.arithmetic) for row in x)
        return [[Element(e.ratio, e.code, e.y) for e in row.elements] for row in rows]

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.dequantization import values
        from mor_ref.schemes.levels.functions import levels

        quantized = levels(numbers, self.rules, None, self.arithmetic, threads)
        return values(numbers, quantized.y, blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y, as units may cut the rows."""
        from mor_ref.cuda.measuring import by_value
        from mor_ref.schemes.levels.cuda import first_alphas, quantize_levels

        del blocks
        alpha = first_alphas(device, x, self.rules, self.arithmetic)
        quantized = quantize_levels(device, x, alpha, self.rules, self.arithmetic)
        return by_value(device, quantized.y)


NAMES = LEVEL_KINDS
USUAL = LEVEL_KINDS.specified  # recipes to compare with others


def named(name: str) -> LevelRows | None:
    """Return the representation of a name, if it is one of them."""
    return LevelRows(name) if name in NAMES else None
