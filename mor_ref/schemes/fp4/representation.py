"""The FP4 of libraries as representations."""

from dataclasses import dataclass

from mor_ref.argument_checks import spelling
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Cut
from mor_ref.representations.profiles import ProfileTiles
from mor_ref.schemes.fp4.definition import FP4_PROFILES, fp4_formulas, fp4_profile


@dataclass(frozen=True)
class Fp4Tiles(ProfileTiles):
    """FP4 of a profile, with tiles of its own size or of another one (FPF-002).

    >>> Fp4Tiles("deepgemm_fp4").name, Fp4Tiles("deepgemm_fp4", (1, 32)).name
    ('deepgemm_fp4', 'deepgemm_fp4_1x32')
    """

    kind = "fp4"

    @property
    def usual_tile(self) -> Cut:
        """The tile of the profile."""
        return fp4_profile(self.of).tile

    def formulas_in(self, tile: Cut) -> BlockFormat:
        """Return the block format of the profile with tiles."""
        return fp4_formulas(fp4_profile(self.of), tile)


NAMES = FP4_PROFILES
OTHER_NAMES = {
    **{spelling(name): (row.name,) for row in FP4_PROFILES.values() for name in row.also},
    **dict.fromkeys(map(spelling, ("flashinfer_strict", "trtllm_strict")), ("te",)),
    spelling("te_ocp"): ("mxfp8",),
}
USUAL = ("deepgemm_fp4_ue8m0", "fbgemm_mx4_ceil", "flashinfer_nvfp4")  # to compare with others


def named(name: str) -> Fp4Tiles | None:
    """Return the representation of a name, if it is one of them."""
    return Fp4Tiles(name) if name in NAMES else None
