"""The FP8 of libraries as representations."""

from dataclasses import dataclass

from mor_ref.argument_checks import spelling
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.scales import Scaling
from mor_ref.representations.optional_members import Asked
from mor_ref.representations.profiles import ProfileTiles
from mor_ref.schemes.fp8.definition import (
    FP8_PROFILES,
    fp8_formulas,
    fp8_parameters,
    fp8_profile,
)


@dataclass(frozen=True)
class Fp8Tiles(ProfileTiles):
    """FP8 of a profile, with tiles of its own size or of another one (MOR-007, FPL-002).

    >>> Fp8Tiles("deepgemm").name, Fp8Tiles("deepgemm", (128, 128)).name
    ('deepgemm', 'deepgemm_128x128')
    """

    kind = "fp8"

    @property
    def usual_tile(self) -> Cut:
        """The tile of the profile."""
        return fp8_profile(self.of).tile

    def formulas_in(self, tile: Cut) -> BlockFormat:
        """Return the block format of the profile with tiles."""
        return fp8_formulas(fp8_profile(self.of), tile)

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `fp8`."""
        del scaling, block, group
        return Asked("fp8", fp8_parameters(fp8_profile(self.of), self.tile))


NAMES = FP8_PROFILES
OTHER_NAMES = {spelling(name): (row.name,) for row in FP8_PROFILES.values() for name in row.also}
USUAL = ("deepgemm", "deepgemm_ue8m0", "te_block", "vllm_token")  # recipes to compare with others


def named(name: str) -> Fp8Tiles | None:
    """Return the representation of a name, if it is one of them."""
    return Fp8Tiles(name) if name in NAMES else None
