"""Profiles of libraries as representations: a block format, with tiles of a size."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Cut, as_cut, word_of
from mor_ref.representations.block_formats import FormulaBlocks
from mor_ref.representations.optional_members import Words


@dataclass(frozen=True)
class ProfileTiles(FormulaBlocks):
    """A profile of a library, with tiles of its own size or of another one (MOR-007)."""

    kind: ClassVar[str]  # of recipe
    block_format: BlockFormat = field(init=False, repr=False)
    of: str
    tile: Cut = ""  # type: ignore[assignment]  # until the check: that of the profile

    def __post_init__(self) -> None:
        usual = self.usual_tile  # refuses a name that is not known
        tile = usual if self.tile == "" else as_cut("tile", self.tile)  # type: ignore[comparison-overlap]  # as above
        object.__setattr__(self, "tile", tile)
        object.__setattr__(self, "block_format", self.formulas_in(tile))

    @property
    @abstractmethod
    def usual_tile(self) -> Cut:
        """The tile of the profile."""

    @abstractmethod
    def formulas_in(self, tile: Cut) -> BlockFormat:
        """Return the block format of the profile with tiles."""

    @property
    def name(self) -> str:
        """The name of the profile, with the tile if it is another than the usual one."""
        return self.of if self.tile == self.usual_tile else f"{self.of}_{word_of(self.tile)}"

    @property
    def words(self) -> Words:
        """The kind of recipe, and its fields; the tile of the profile needs no word."""
        other = {} if self.tile == self.usual_tile else {"tile": self.tile}
        return Words(self.kind, {"of": self.of}, other)
