"""The recipe of integers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mor_ref.argument_checks import known_name
from mor_ref.definitions.blocks import Cut
from mor_ref.recipes.floats import OneOf
from mor_ref.recipes.tensor_recipe import OfRow
from mor_ref.schemes.affine.definition import (
    AFFINE_PROFILES,
    affine_cut_in,
    affine_profile,
    as_affine_cut,
)
from mor_ref.schemes.affine.representation import AffineBlocks

_ZEROS = ("symmetric", "asymmetric")


@dataclass(frozen=True)
class Integers(OfRow):
    """Integers with a scale for each block; without a block, it is that of the profile.

    `block` can be permuted groups of columns, such as "4_permuted_groups".
    """

    grid: str = "int8"
    profile: str = "torch_fake_tensor"
    block: Cut | str = ""
    zeros: Literal["symmetric", "asymmetric"] = "symmetric"
    name = "integers"
    words: ClassVar = {
        "profile": OneOf(AFFINE_PROFILES),
        "block": affine_cut_in,
        "zeros": OneOf(_ZEROS),
    }

    def check(self) -> None:
        """Check the fields."""
        known_name("zeros", self.zeros, _ZEROS)
        block = affine_profile(self.profile).cut if self.block == "" else self.block
        object.__setattr__(self, "block", as_affine_cut(block))
        super().check()

    @property
    def head(self) -> str:
        """The grid."""
        return self.grid

    @property
    def row(self) -> AffineBlocks:
        """The blocks of integers."""
        symmetric = self.zeros == "symmetric"
        return AffineBlocks(self.grid, self.profile, self.block, symmetric=symmetric)


RECIPE = Integers()
