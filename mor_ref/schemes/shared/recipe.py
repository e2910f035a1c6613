"""The recipe of blocks that share an exponent."""

from dataclasses import dataclass
from typing import ClassVar

from mor_ref.recipes.floats import OneOf
from mor_ref.recipes.tensor_recipe import OfKind
from mor_ref.schemes.shared.definition import SHARED_PROFILES
from mor_ref.schemes.shared.representation import SharedBlocks


@dataclass(frozen=True)
class Shared(OfKind):
    """Blocks of 16 along the rows that share an exponent."""

    of: str = "mx9"
    profile: str = "quark_torch"
    name = "shared"
    words: ClassVar = {"profile": OneOf(SHARED_PROFILES)}

    @property
    def row(self) -> SharedBlocks:
        """The blocks."""
        return SharedBlocks(self.of, self.profile)


RECIPE = Shared()
