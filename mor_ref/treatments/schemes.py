"""Treatments of the other schemes: shared exponents and levels."""

from dataclasses import dataclass
from typing import ClassVar

from mor_ref.definitions.levels import ARITHMETICS, known_arithmetic, level_kind
from mor_ref.definitions.shared import BLOCK, SHARED_PROFILES, shared_kind, shared_profile
from mor_ref.policies import Policy
from mor_ref.representations import LevelRows, SharedBlocks
from mor_ref.treatments.rows import alone, one_of
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
