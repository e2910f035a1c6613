"""Recipes of the other representations: shared exponents, levels, integers, mixtures, any row."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mor_ref.argument_checks import known_name
from mor_ref.definitions.affine import AFFINE_PROFILES, affine_cut_in, affine_profile, as_affine_cut
from mor_ref.definitions.blocks import Cut, as_cut, cut_in
from mor_ref.definitions.levels import ARITHMETICS
from mor_ref.definitions.mixed import MIXTURES
from mor_ref.definitions.shared import SHARED_PROFILES
from mor_ref.recipes.floats import OneOf
from mor_ref.recipes.tensor_recipe import OfRow
from mor_ref.representations import (
    AffineBlocks,
    LevelRows,
    MixedFormats,
    Representation,
    SharedBlocks,
    as_representation,
    mixture,
)

_ZEROS = ("symmetric", "asymmetric")


class _OfKind(OfRow):
    """A recipe whose text begins with the kind of its representation."""

    of: str

    @property
    def head(self) -> str:
        """The kind."""
        return self.of


@dataclass(frozen=True)
class Row(_OfKind):
    """A representation by its name, such as a row of a user; scaling blocks are the tensor."""

    of: str = "nvfp4"
    name = "row"

    @property
    def row(self) -> Representation:
        """The representation."""
        return as_representation(self.of)


@dataclass(frozen=True)
class Shared(_OfKind):
    """Blocks of 16 along the rows that share an exponent."""

    of: str = "mx9"
    profile: str = "quark_torch"
    name = "shared"
    words: ClassVar = {"profile": OneOf(SHARED_PROFILES)}

    @property
    def row(self) -> SharedBlocks:
        """The blocks."""
        return SharedBlocks(self.of, self.profile)


@dataclass(frozen=True)
class Levels(_OfKind):
    """Rows of levels of ParetoQ, with the first alphas."""

    of: str = "seq2"
    arithmetic: str = "f32"
    name = "levels"
    words: ClassVar = {"arithmetic": OneOf(ARITHMETICS)}

    @property
    def row(self) -> LevelRows:
        """The rows."""
        return LevelRows(self.of, self.arithmetic)


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


@dataclass(frozen=True)
class Mixture(_OfKind):
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
