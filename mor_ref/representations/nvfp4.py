"""NVFP4 as a representation, in each of its profiles."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.argument_checks import check_name
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import Cut, Partition, partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE, tile_of
from mor_ref.definitions.scales import NOTHING_GIVEN, Scaling, ScalingBlocks
from mor_ref.former_names import FormerAttribute
from mor_ref.representations.optional_members import Asked, StoredBits, Words, with_scales

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfCodes
    from mor_ref.api.nvfp4 import Nvfp4
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element


@dataclass(frozen=True)
class Nvfp4Tiles:
    """NVFP4 of a profile, with tiles of the tensor and one global scale (MOR-007).

    >>> Nvfp4Tiles("te_2_13").name, Nvfp4Tiles("te", (16, 16)).name
    ('te_2_13', 'te_16x16')
    """

    profile: str
    tile: tuple[int, int] = ROW_TILE
    name: str = ""

    def __post_init__(self) -> None:
        tile = tile_of(PROFILES[self.profile], self.tile)
        tiles = "" if tile == ROW_TILE else f"_{tile[0]}x{tile[1]}"
        object.__setattr__(self, "tile", tile)
        object.__setattr__(self, "name", self.name or f"{self.profile}{tiles}")
        check_name(self.name)

    @property
    def bits(self) -> int:
        """The bits of e2m1."""
        return formats["e2m1"].bits

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""
        del scaling
        tiles = partition((parts.rows, parts.columns), self.tile)
        whole = parts.rows if PROFILES[self.profile].per_row else 1
        scales = formats["e4m3"].bits * math.prod(tiles.grid) + formats["f32"].bits * whole
        return with_scales(self.bits, parts, scales)

    def rows_together(self, shape: tuple[int, ...]) -> int:
        """Return how many rows share scales."""
        del shape
        return self.tile[0]

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `nvfp4`."""
        del scaling, block, group
        return Asked("nvfp4", {"profile": self.profile, "tile": list(self.tile)})

    @property
    def words(self) -> Words:
        """The kind of recipe `nvfp4`, and its fields."""
        return Words("nvfp4", {"profile": self.profile}, {"tile": self.tile})

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.nvfp4 import nvfp4

        del scaling, parts
        return nvfp4(x, PROFILES[self.profile], self.tile).elements

    scheme = FormerAttribute("formulas")

    def formulas(self, scaling: Scaling, block: Cut, group: Cut) -> BlockFormat:
        """Return it as a block format."""
        del scaling, block, group
        return nvfp4_formulas(PROFILES[self.profile], self.tile)

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfCodes[Nvfp4]":
        """Quantize with the engine."""
        from mor_ref.api.nvfp4 import nvfp4

        profile = PROFILES[self.profile]
        given = NOTHING_GIVEN if profile.per_row else blocks.given.nvfp4
        return nvfp4(numbers, profile, self.tile, blocks.parts, out, threads, given)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with the scales of the tiles."""
        from mor_ref.cuda.nvfp4 import by_tile, global_scales, tile_scales

        del blocks
        profile = PROFILES[self.profile]
        whole = global_scales(device, x, profile)
        scales = tile_scales(device, x, profile, self.tile, whole)
        return by_tile(device, x, self.tile, profile, scales)
