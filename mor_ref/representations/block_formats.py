"""Block formats as representations."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from mor_ref.definitions.before_blocks import kept_by
from mor_ref.definitions.block_formats import BlockFormat, parameters_of_blocks
from mor_ref.definitions.blocks import Cut, Partition, partition, rows_and_columns
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.representations.optional_members import Asked, StoredBits, with_scales

if TYPE_CHECKING:
    from mor_ref.api.block_formats import BlockQuantized
    from mor_ref.api.dequantization import OutcomeOfCodes, OutcomeOfValues
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element


@lru_cache
def _is_specified(name: str) -> bool:
    from mor_ref.schemes import in_schemes

    for _ in in_schemes("representation"):  # so that the names of each are known
        pass
    names = NAMES_OF_REPRESENTATIONS
    return names.is_specified(name) or re.fullmatch(names.reserved, name) is not None


@dataclass(frozen=True)
class FormulaBlocks:
    """A block format, whose formulas say each rounding.

    >>> from mor_ref import BlockFormat, BlockScale
    >>> scale = BlockScale("s", (1, 128), "amax / 448")
    >>> FormulaBlocks(BlockFormat("mine", "e4m3", (scale,), decode="s")).name
    'mine'
    """

    block_format: BlockFormat

    def __post_init__(self) -> None:
        """Refuse a name that recipes and tables have for something else (MOR-007)."""
        if _is_specified(self.block_format.name):
            raise ValueError(
                f"block format has the name {self.block_format.name!r}, which is that of a "
                "representation of the specification; give it another"
            )

    @property
    def name(self) -> str:
        """The name of the block format."""
        return self.block_format.name

    @property
    def bits(self) -> int:
        """The bits of an element."""
        return self.block_format.fmt.bits

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits | None:
        """Return the bits of all codes and of all scales (ERR-009); None if numbers decide."""
        del scaling
        if kept_by(self.block_format.before) is not None:
            return None
        return with_scales(self.bits, parts, self._bits_of_scales((parts.rows, parts.columns)))

    def stored_bits_of(self, numbers: "Numbers") -> StoredBits:
        """Return the bits of all codes and of all scales; kept columns have their own (BLF-013)."""
        rows, columns = rows_and_columns(numbers.shape)
        codes, step = self.bits * rows * columns, kept_by(self.block_format.before)
        if step is not None:
            from mor_ref.api.before_blocks import COLUMNS, stepped

            kept = stepped(numbers, self.block_format.before, None).kept[COLUMNS].size
            codes += (step.fmt.bits - self.bits) * rows * kept + columns
        return StoredBits(codes, self._bits_of_scales((rows, columns)))

    def _bits_of_scales(self, shape: tuple[int, int]) -> int:
        return sum(
            scale.fmt.bits * math.prod(partition(shape, scale.over).grid)
            for scale in self.block_format.scales
        )

    def rows_together(self, shape: tuple[int, ...]) -> int | None:
        """Return how many rows share scales; None if all do, or decide about columns."""
        del shape
        if kept_by(self.block_format.before) is not None:
            return None
        outermost = self.block_format.scales[0].over
        if isinstance(outermost, str):
            return 1 if outermost == "row" else None
        return outermost[0]

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `blocks`."""
        del scaling, block, group
        return Asked("blocks", parameters_of_blocks(self.block_format))

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.block_formats import elements

        del scaling, parts
        return elements(x, self.block_format)

    def formulas(self, scaling: Scaling, block: Cut, group: Cut) -> BlockFormat:
        """Return the block format."""
        del scaling, block, group
        return self.block_format

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfCodes[BlockQuantized] | OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.block_formats import block_quantized

        return block_quantized(numbers, self.block_format, blocks.parts, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y, which the host finds: there are no kernels of it."""
        from mor_ref.api.block_formats import block_quantized
        from mor_ref.api.decoding import decode
        from mor_ref.arrays import numbers_from
        from mor_ref.cuda.measuring import by_value

        sides = blocks.parts.rows, blocks.parts.columns
        numbers = numbers_from(decode(device.download(x.array), x.source).reshape(sides), "x")
        outcome = block_quantized(numbers, self.block_format, blocks.parts, None, None)
        y = outcome.record.dequantize()
        return by_value(device, device.upload(y.view("uint32")))
