"""The recipe of mixtures."""

from dataclasses import dataclass
from typing import ClassVar

from mor_ref.argument_checks import known_name
from mor_ref.definitions.blocks import Cut, as_cut, cut_in
from mor_ref.recipes.tensor_recipe import OfKind
from mor_ref.schemes.mixed.definition import MIXTURES
from mor_ref.schemes.mixed.representation import MixedFormats, mixture


@dataclass(frozen=True)
class Mixture(OfKind):
    """Blocks that take the candidate of the least squared error, as MoFQ has it."""

    of: str = "int8_or_e4m3"
    block: Cut = "tensor"
    name = "mixture"
    words: ClassVar = {"block": cut_in}

    def check(self) -> None:
        """Check the fields, and let lists of text be pairs."""
        known_name("of", self.of, MIXTURES)
        object.__setattr__(self, "block", as_cut("block", self.block))

    @property
    def row(self) -> MixedFormats:
        """The candidates."""
        return mixture(self.of, self.block)


RECIPE = Mixture()
