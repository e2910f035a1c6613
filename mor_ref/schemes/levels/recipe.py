"""The recipe of rows of levels."""

from dataclasses import dataclass
from typing import ClassVar

from mor_ref.recipes.floats import OneOf
from mor_ref.recipes.tensor_recipe import OfKind
from mor_ref.schemes.levels.definition import ARITHMETICS
from mor_ref.schemes.levels.representation import LevelRows


@dataclass(frozen=True)
class Levels(OfKind):
    """Rows of levels of ParetoQ, with the first alphas."""

    of: str = "seq2"
    arithmetic: str = "f32"
    name = "levels"
    words: ClassVar = {"arithmetic": OneOf(ARITHMETICS)}

    @property
    def row(self) -> LevelRows:
        """The rows."""
        return LevelRows(self.of, self.arithmetic)


RECIPE = Levels()
