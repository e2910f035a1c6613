"""The recipe of the FP4 of a library."""

from dataclasses import dataclass

from mor_ref.definitions.blocks import Cut
from mor_ref.recipes.tensor_recipe import OfTiles
from mor_ref.schemes.fp4.representation import Fp4Tiles


@dataclass(frozen=True)
class Fp4(OfTiles):
    """FP4, as a library quantizes."""

    of: str = "deepgemm_fp4"
    tile: Cut = ""  # type: ignore[assignment]  # until the check: that of the profile
    name = "fp4"

    @property
    def row(self) -> Fp4Tiles:
        """The profile as a representation."""
        return Fp4Tiles(self.of, self.tile)


RECIPE = Fp4()
