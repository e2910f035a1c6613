"""Treatments of the other schemes: shared exponents, levels, integers, mixtures of formats."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from mor_ref.argument_checks import known_name
from mor_ref.definitions.affine import AFFINE_PROFILES, affine_profile
from mor_ref.definitions.blocks import Cut, as_cut, cut_in
from mor_ref.definitions.levels import ARITHMETICS, known_arithmetic, level_kind
from mor_ref.definitions.mixed import MIXTURES
from mor_ref.definitions.shared import BLOCK, SHARED_PROFILES, shared_kind, shared_profile
from mor_ref.policies import Policy
from mor_ref.representations import AffineBlocks, LevelRows, SharedBlocks, mixture
from mor_ref.treatments.rows import alone, in_parameters, one_of
from mor_ref.treatments.treatment import Asked, Situation, Treatment


@dataclass(frozen=True)
class Shared(Treatment):
    """Blocks of 16 along the rows that share an exponent."""

    of: str = "mx9"
    profile: str = "quark_torch"
    name = "shared"
    words: ClassVar = {"profile": one_of(SHARED_PROFILES)}

    @property
    def asked(self) -> Asked:
        """The operation `shared`."""
        return Asked("shared", {"kind": self.of, "profile": self.profile, "block": BLOCK})

    def check(self) -> None:
        """Check the fields."""
        shared_kind(self.of)
        shared_profile(self.profile)

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of these blocks alone."""
        del situation
        return alone(SharedBlocks(self.of, self.profile))


@dataclass(frozen=True)
class Levels(Treatment):
    """Rows of levels of ParetoQ, with the first alphas."""

    of: str = "seq2"
    arithmetic: str = "f32"
    name = "levels"
    words: ClassVar = {"arithmetic": one_of(ARITHMETICS)}

    @property
    def asked(self) -> Asked:
        """The operation `levels`."""
        given = {"kind": self.of, "arithmetic": self.arithmetic}
        return Asked("levels", {**given, "block": "row"})

    def check(self) -> None:
        """Check the fields."""
        level_kind(self.of)
        known_arithmetic(self.arithmetic)

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of these levels alone."""
        del situation
        return alone(LevelRows(self.of, self.arithmetic))


@dataclass(frozen=True)
class Integers(Treatment):
    """Integers with a scale for each block; without a block, it is that of the profile."""

    grid: str = "int8"
    profile: str = "torch_fake_tensor"
    block: Cut | Literal[""] = ""
    zeros: Literal["symmetric", "asymmetric"] = "symmetric"
    name = "integers"
    words: ClassVar = {
        "profile": one_of(AFFINE_PROFILES),
        "block": cut_in,
        "zeros": one_of(("symmetric", "asymmetric")),
    }

    @property
    def asked(self) -> Asked:
        """The operation `affine`."""
        given = {"grid": self.grid, "profile": self.profile, "symmetric": self._is_symmetric}
        return Asked("affine", {**given, "block": in_parameters(self.block or "tensor")})

    def check(self) -> None:
        """Check the fields."""
        known_name("zeros", self.zeros, ("symmetric", "asymmetric"))
        block = affine_profile(self.profile).cut if self.block == "" else self.block
        object.__setattr__(self, "block", as_cut("block", block))
        self.policy_in(Situation())

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of these integers alone."""
        del situation
        block = as_cut("block", self.block or "tensor")
        return alone(AffineBlocks(self.grid, self.profile, block, symmetric=self._is_symmetric))

    @property
    def _is_symmetric(self) -> bool:
        return self.zeros == "symmetric"


@dataclass(frozen=True)
class Mixture(Treatment):
    """Blocks that take the candidate of the least squared error, as MoFQ has it."""

    of: str = "int8_or_e4m3"
    block: Cut = "tensor"
    name = "mixture"
    words: ClassVar = {"block": cut_in}

    @property
    def asked(self) -> Asked:
        """The operation `mix`."""
        block = self.block if isinstance(self.block, str) else list(self.block)
        return Asked("mix", {"mixture": self.of, "block": block})

    def check(self) -> None:
        """Check the fields, and let lists of text be pairs."""
        known_name("of", self.of, MIXTURES)
        object.__setattr__(self, "block", as_cut("block", self.block))

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of this mixture alone."""
        del situation
        return alone(mixture(self.of, self.block))
