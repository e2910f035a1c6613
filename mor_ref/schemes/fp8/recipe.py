"""The recipe of the FP8 of a library."""

from dataclasses import dataclass
from typing import ClassVar

from mor_ref.definitions.blocks import Cut, cut_in
from mor_ref.recipes.tensor_recipe import OfKind
from mor_ref.schemes.fp8.representation import Fp8Tiles


@dataclass(frozen=True)
class Fp8(OfKind):
    """FP8 with a decode scale for each tile, as a library quantizes."""

    of: str = "deepgemm"
    tile: Cut = ""  # type: ignore[assignment]  # until the check: that of the profile
    name = "fp8"
    words: ClassVar = {"tile": cut_in}

    def check(self) -> None:
        """Check the profile and the tile, and take the tile as the representation has it."""
        object.__setattr__(self, "tile", self.row.tile)
        super().check()

    @property
    def row(self) -> Fp8Tiles:
        """The profile as a representation."""
        return Fp8Tiles(self.of, self.tile)


RECIPE = Fp8()
