"""The FP8 of libraries as representations."""

from dataclasses import dataclass, field

from mor_ref.argument_checks import spelling
from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Cut, as_cut, word_of
from mor_ref.definitions.scales import Scaling
from mor_ref.representations.block_formats import FormulaBlocks
from mor_ref.representations.optional_members import Asked, Words
from mor_ref.schemes.fp8.definition import (
    FP8_PROFILES,
    fp8_formulas,
    fp8_parameters,
    fp8_profile,
)


@dataclass(frozen=True)
class Fp8Tiles(FormulaBlocks):
    """FP8 of a profile, with tiles of its own size or of another one (MOR-007, FPL-002).

    >>> Fp8Tiles("deepgemm").name, Fp8Tiles("deepgemm", (128, 128)).name
    ('deepgemm', 'deepgemm_128x128')
    """

    block_format: BlockFormat = field(init=False, repr=False)
    of: str
    tile: Cut = ""  # type: ignore[assignment]  # until the check: that of the profile

    def __post_init__(self) -> None:
        profile = fp8_profile(self.of)
        tile = profile.tile if self.tile == "" else as_cut("tile", self.tile)  # type: ignore[comparison-overlap]  # as above
        object.__setattr__(self, "tile", tile)
        object.__setattr__(self, "block_format", fp8_formulas(profile, tile))

    @property
    def name(self) -> str:
        """The name of the profile, with the tile if it is another than the usual one."""
        return self.of if self._has_usual_tile else f"{self.of}_{word_of(self.tile)}"

    @property
    def _has_usual_tile(self) -> bool:
        return self.tile == FP8_PROFILES[self.of].tile

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked:
        """Return the operation `fp8`."""
        del scaling, block, group
        return Asked("fp8", fp8_parameters(fp8_profile(self.of), self.tile))

    @property
    def words(self) -> Words:
        """The kind of recipe `fp8`, and its fields; the tile of the profile needs no word."""
        return Words("fp8", {"of": self.of}, {} if self._has_usual_tile else {"tile": self.tile})


NAMES = FP8_PROFILES
OTHER_NAMES = {spelling(name): (row.name,) for row in FP8_PROFILES.values() for name in row.also}
USUAL = ("deepgemm", "deepgemm_ue8m0", "te_block", "vllm_token")  # recipes to compare with others


def named(name: str) -> Fp8Tiles | None:
    """Return the representation of a name, if it is one of them."""
    return Fp8Tiles(name) if name in NAMES else None
