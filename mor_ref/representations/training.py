"""Representations for training: with a scale that is given, and NVFP4 rounded at random."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES, tile_of
from mor_ref.definitions.scales import AmaxOrScale, Scaling, ScalingBlocks
from mor_ref.representations.nvfp4 import Nvfp4Tiles
from mor_ref.representations.optional_members import StoredBits, with_scales

if TYPE_CHECKING:
    from mor_ref.api.dequantization import OutcomeOfCodes, OutcomeOfValues
    from mor_ref.api.quantization import Quantized
    from mor_ref.arrays import Bits, Numbers
    from mor_ref.cuda import launching, measuring
    from mor_ref.exact.blocks import Rows
    from mor_ref.exact.quantization import Element


@dataclass(frozen=True)
class GivenScale:
    """A format with a scale that is known before the tensor is (TRN-006)."""

    fmt: Format
    scale: float
    is_turnable = True  # one scale

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
        del scaling
        return with_scales(self.bits, parts, formats["f32"].bits)

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.training import elements_with_scale

        del scaling, parts
        return elements_with_scale(x, self.fmt, self.scale)

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfCodes[Quantized]":
        """Quantize with the engine."""
        from mor_ref.api.quantization import quantized

        in_one = blocks._replace(scaling="fp32")
        return quantized(numbers, self.fmt, in_one, out, threads, AmaxOrScale(scale=self.scale))

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with the same scale for each block."""
        import numpy as np

        from mor_ref.cuda.measuring import by_scale

        del x
        scales = np.full(blocks.parts.grid, self.scale, np.float32).view(np.uint32)
        return by_scale(device, device.upload(scales), self.fmt)


@dataclass(frozen=True)
class RandomNvfp4:
    """NVFP4 whose elements are rounded at random (TRN-008).

    `purpose` is the seed, the step, the call, the layer and the use of the random words (TRN-007).
    """

    profile: str
    tile: tuple[int, int]
    purpose: tuple[int, int, int, int, int]
    name: str = "nvfp4"

    def __post_init__(self) -> None:
        profile = PROFILES[self.profile]
        tile_of(profile, self.tile)
        if profile.divides:
            raise ValueError(
                f"profile is {self.profile!r}, which divides by its scales; give rounding 'rne', "
                "or a profile of Transformer Engine such as 'te'"
            )

    @property
    def bits(self) -> int:
        """The bits of e2m1."""
        return 4

    def stored_bits(self, scaling: Scaling, parts: Partition) -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""
        return Nvfp4Tiles(self.profile, self.tile).stored_bits(scaling, parts)

    def exact(self, x: "Rows", scaling: Scaling, parts: Partition) -> "list[list[Element]]":
        """Quantize with the exact model."""
        from mor_ref.exact.training import Purpose, nvfp4_at_random

        del scaling, parts
        return nvfp4_at_random(x, PROFILES[self.profile], self.tile, Purpose(*self.purpose))

    def engine(
        self, numbers: "Numbers", blocks: ScalingBlocks, out: "Bits | None", threads: int | None
    ) -> "OutcomeOfValues":
        """Quantize with the engine."""
        from mor_ref.api.training import nvfp4_at_random

        profile = PROFILES[self.profile]
        return nvfp4_at_random(numbers, profile, self.tile, self.purpose, blocks, out, threads)

    def cuda(
        self, device: "launching.Device", x: "launching.Bits", blocks: ScalingBlocks
    ) -> "measuring.ErrorRule":
        """Return the rule of kernels, with y; the random words are made on the host."""
        from mor_ref.api.training import random_words
        from mor_ref.cuda.measuring import by_value
        from mor_ref.cuda.nvfp4 import at_random

        del blocks
        words = device.upload(random_words(self.purpose, x.size).reshape(x.array.shape))
        return by_value(device, at_random(device, x, PROFILES[self.profile], self.tile, words))
