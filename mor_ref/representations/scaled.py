"""Scaled formats as representations: a scale for each scaling block of the policy."""

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.block_formulas import scaled_formulas
from mor_ref.definitions.blocks import Cut, Partition, in_parameters
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import STORED_IN, Scaling, ScalingBlocks, scaled_format
from mor_ref.former_names import FormerAttribute
from mor_ref.representations.optional_members import Asked, StoredBits, Words, with_scales

if TYPE_CHECKING:
    from collections.abc import Callable

    from mor_ref.api.dequantization import OutcomeOfCodes
    from mor_ref.api.quantization import Quantized
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element

_MANTISSA_BITS = formats["f32"].mantissa_bits  # of the mantissa that a group shares


@cache
def _quantized() -> "Callable[..., OutcomeOfCodes[Quantized]]":
    from mor_ref.api.quantization import quantized  # imports NumPy

    return quantized


@dataclass(frozen=True)
class ScaledFormat:
    """A format that the numbers of each scaling block are scaled to (MOR-007).

    >>> from mor_ref import formats
    >>> ScaledFormat(formats["e4m3"]).name
    'e4m3'
    """

    fmt: Format
    uses_blocks = True
    is_turnable = True

    def __post_init__(self) -> None:
        scaled_format(self.fmt)

    @property
    def name(self) -> str:
        """The name of the format."""
        return self.fmt.name

    @property
    def bits(self) -> int:
        """The bits of the format."""
        return self.fmt.bits

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""
        mantissas = math.prod(parts.group_grid) if scaling == "gam" else 0
        scales = STORED_IN[scaling].bits * math.prod(parts.grid) + _MANTISSA_BITS * mantissas
        return with_scales(self.bits, parts, scales)

    def rows_together(self, shape: tuple[int, ...]) -> int:
        """Return how many rows share scales."""
        del shape
        return 1  # but for the scaling blocks

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `quantize`."""
        cuts = {"block": in_parameters(block), "group": in_parameters(group)}
        return Asked("quantize", {"format": self.name, "scaling": scaling, **cuts})

    @property
    def words(self) -> Words:
        """The kind of recipe `scaled`, and its fields."""
        return Words("scaled", {"fmt": self.name}, {})

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.quantization import scaled_elements

        return scaled_elements(x, self.fmt, scaling, parts).elements

    scheme = FormerAttribute("formulas")

    def formulas(self, scaling: Scaling, block: Cut, group: Cut) -> BlockFormat:
        """Return it as a block format."""
        return scaled_formulas(self.fmt, scaling, block, group)

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfCodes[Quantized]":
        """Quantize with the engine."""
        return _quantized()(numbers, self.fmt, blocks, out, threads, blocks.given.scaled)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with the scales of the blocks."""
        from mor_ref.cuda.measuring import by_scale
        from mor_ref.cuda.scales import scales

        del x
        block_scales = scales(device, blocks.scaling, blocks.amax, self.fmt, blocks.parts)
        return by_scale(device, block_scales.scale, self.fmt)
