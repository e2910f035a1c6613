"""The recipe of the FP8 of a library."""

from dataclasses import dataclass

from mor_ref.definitions.blocks import Cut
from mor_ref.recipes.tensor_recipe import OfTiles
from mor_ref.schemes.fp8.representation import Fp8Tiles


@dataclass(frozen=True)
class Fp8(OfTiles):
    """FP8 with a decode scale for each tile, as a library quantizes."""

    of: str = "deepgemm"
    tile: Cut = ""  # type: ignore[assignment]  # until the check: that of the profile
    name = "fp8"

    @property
    def row(self) -> Fp8Tiles:
        """The profile as a representation."""
        return Fp8Tiles(self.of, self.tile)


RECIPE = Fp8()
