"""MX formats as representations."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name, known_name, whole_number
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.block_formulas import mx_formulas
from mor_ref.definitions.blocks import Cut, Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES, mx_element
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.former_names import FormerAttribute
from mor_ref.representations.optional_members import Asked, StoredBits, Words, with_scales

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfCodes
    from mor_ref.api.mx import Mx
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element

# The names of MX formats in OCP's standard, by their elements.
STANDARD_NAMES = {
    "e4m3": "mxfp8_e4m3",
    "e5m2": "mxfp8_e5m2",
    "e2m3": "mxfp6_e2m3",
    "e3m2": "mxfp6_e3m2",
    "e2m1": "mxfp4",
    "int8_mx": "mxint8",
}
_USUAL_BLOCK = 32


@dataclass(frozen=True)
class MxBlocks:
    """An MX format, with blocks along the rows of the tensor (MOR-007).

    >>> MxBlocks("e2m1").name, MxBlocks("e4m3", "rceil", 16).name
    ('mxfp4', 'mxfp8_e4m3_rceil_16')
    """

    fmt: str | Format
    scale_rule: str = "floor"
    block: int = _USUAL_BLOCK
    name: str = ""

    def __post_init__(self) -> None:
        known_name("scale_rule", self.scale_rule, SCALE_RULES)
        object.__setattr__(self, "block", whole_number("block", self.block, 1, 1 << 62))
        object.__setattr__(self, "fmt", mx_element(self.fmt))
        object.__setattr__(self, "name", self.name or self._usual_name)
        check_name(self.name)

    @property
    def element(self) -> Format:
        """The format of elements."""
        return mx_element(self.fmt)

    @property
    def _usual_name(self) -> str:
        fmt = self.element.name
        rule = "" if self.scale_rule == "floor" else f"_{self.scale_rule}"
        block = "" if self.block == _USUAL_BLOCK else f"_{self.block}"
        return f"{STANDARD_NAMES.get(fmt, f'mx_{fmt}')}{rule}{block}"

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return self.element.bits

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""
        del scaling
        blocks = partition((parts.rows, parts.columns), (1, self.block))
        return with_scales(self.bits, parts, formats["e8m0"].bits * math.prod(blocks.grid))

    def rows_together(self, shape: tuple[int, ...]) -> int:
        """Return how many rows share scales."""
        del shape
        return 1

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `mx`."""
        del scaling, block, group
        given = {"format": self.element.name, "scale_rule": self.scale_rule}
        return Asked("mx", {**given, "block": self.block})

    @property
    def words(self) -> Words:
        """The kind of recipe `mx`, and its fields."""
        others = {"scale_rule": self.scale_rule, "block": self.block}
        return Words("mx", {"fmt": self.element.name}, others)

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.mx import mx

        del scaling, parts
        return mx(x, self.element, self.scale_rule, self.block).elements

    scheme = FormerAttribute("formulas")

    def formulas(self, scaling: Scaling, block: Cut, group: Cut) -> BlockFormat:
        """Return it as a block format."""
        del scaling, block, group
        return mx_formulas(self.element, self.scale_rule, self.block)

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfCodes[Mx]":
        """Quantize with the engine."""
        from mor_ref.api.mx import mx

        return mx(numbers, self.element, self.scale_rule, self.block, blocks.parts, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y, as units may cut the blocks of MX."""
        from mor_ref.cuda.measuring import by_value
        from mor_ref.cuda.mx import dequantize, mx

        del blocks
        quantized = mx(device, x, self.element, self.scale_rule, self.block)
        return by_value(device, dequantize(device, quantized, self.element, self.block))
