"""Recipes with floating-point formats: one alone, or several mixed by a policy."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from mor_ref.argument_checks import known_name, whole_number
from mor_ref.definitions.before_blocks import STEP, Hadamard, step_of
from mor_ref.definitions.blocks import Cut, as_cut, cut_in, in_parameters, sides_in
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE
from mor_ref.definitions.roles import Role
from mor_ref.definitions.scales import (
    SCALINGS,
    USUAL_SCALING,
    Scaling,
    check_scaling,
    scaled_format,
)
from mor_ref.policies import MEANT_BY_THRESHOLD, POLICIES, Policy
from mor_ref.recipes.policy_text import (
    in_texts,
    policy_text,
    table_of_policy,
    with_thresholds_in_texts,
)
from mor_ref.recipes.tensor_recipe import OfRow, Situation, TensorRecipe, alone, checked_digest
from mor_ref.representations import (
    Asked,
    GivenScale,
    MxBlocks,
    Nvfp4Tiles,
    RandomNvfp4,
    ScaledFormat,
)

BITS = "n_random_bits"  # of the random words that round elements (QNT-005)


@dataclass(frozen=True)
class OneOf:
    """A reader of words that are among these names."""

    names: Collection[str]

    def __call__(self, word: str) -> str | None:
        """Return the word if it is one of the names."""
        return word if word in self.names else None


def _number(word: str) -> str | None:
    return word if re.fullmatch(r"[0-9]*\.?[0-9]+", word) else None


def _whole_number(word: str) -> int | None:
    return int(word) if re.fullmatch("[0-9]{1,20}", word) else None


_BLOCKS_AND_SCALES: Mapping[str, Callable[[str], object]] = {
    "scaling": OneOf(SCALINGS),
    "block": cut_in,
}


@dataclass(frozen=True)
class Unquantized(TensorRecipe):
    """Rounded to bfloat16 and left so."""

    name = "unquantized"

    def policy_in(self, situation: Situation) -> None:
        """Return None."""
        del situation


class _InBlocks(TensorRecipe):
    """A recipe whose block and kind of scales are fields."""

    block: Cut
    scaling: Scaling

    def check(self) -> None:
        """Check the block, and let a list of text be a pair."""
        object.__setattr__(self, "block", as_cut("block", self.block))

    @property
    def cut(self) -> Cut:
        """The scaling block."""
        return self.block

    @property
    def scales(self) -> Scaling:
        """The kind of scales."""
        return self.scaling


@dataclass(frozen=True)
class Mor(_InBlocks):
    """MoR, as `mor_ref.mor` has it; `policy` is a policy, or its name.

    Without a block, it is that of the policy. Without `scaling`, scales are "gam"; it stays empty
    if the representations of the policy have their own. `threshold` is for the rung of e4m3, or a
    table by the names of rungs; each may be a table by kinds of tensors and patterns of layers.
    `code` is the digest of a policy of a user (MOR-017). It is found if it is not given.

    >>> Mor("tensor", block="row").statistics[:4], Mor("tensor").block
    (('units', 'amax', 'amin', 'choice e4m3'), (128, 128))
    """

    policy: str | Policy = "tensor"
    block: Cut = ""  # type: ignore[assignment]  # until the check: the policy has one
    scaling: Scaling = ""  # type: ignore[assignment]  # until the check: not every policy has one
    threshold: str | Mapping[str, str | Mapping[str, str]] = ""
    code: str = ""
    name = "mor"
    words: ClassVar = {
        "policy": OneOf(POLICIES), **_BLOCKS_AND_SCALES, "threshold": _number,
    }  # fmt: skip

    def check(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "policy", _name_or_policy(self.policy))
        if self.block == "":  # type: ignore[comparison-overlap]  # as above
            object.__setattr__(self, "block", self.rules.block)
        super().check()
        scaling = self.rules.scaling_for(self.scaling or None)
        if self.rules.uses_scaling:
            object.__setattr__(self, "scaling", scaling)
        object.__setattr__(self, "threshold", in_texts(self.threshold))
        is_of_user = isinstance(self.policy, str) and self.policy not in POLICIES.specified
        row, name = self.rules if is_of_user else None, self.rules.name
        object.__setattr__(self, "code", checked_digest(row, name, self.code))
        self.policy_in(Situation())

    @property
    def scales(self) -> Scaling:
        """The kind of scales; gam, which does not matter, if there are none of the policy."""
        return self.scaling or USUAL_SCALING

    @property
    def rules(self) -> Policy:
        """The policy, without the thresholds of the recipe."""
        return POLICIES[self.policy] if isinstance(self.policy, str) else self.policy

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields, as text has them: a digest if there is one."""
        own = {} if isinstance(self.policy, str) else {"policy": table_of_policy(self.policy)}
        optional = {"scaling": self.scaling or None, "code": self.code or None}
        return {**super().arguments, **own, **optional}

    @property
    def title(self) -> str:
        """The name of a policy that is not named in the text."""
        return "" if isinstance(self.policy, str) else f"{self.name}:{self.policy.name}"

    @property
    def asked(self) -> Asked:
        """The operation `mor`."""
        if self.threshold:
            raise ValueError(
                f"threshold is {self.threshold!r}, but suites have policies by name; add a policy "
                "with this threshold as a row, with mor-ref --rows MODULE"
            )
        cut = {"scaling": self.scales, "block": in_parameters(self.block)}
        policy = self.policy if isinstance(self.policy, str) else policy_text(self.policy)
        return Asked("mor", {"policy": policy, **cut})

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy with its thresholds, for the role of a tensor if it is known."""
        rules = self.rules
        rules = rules.with_threshold(self.threshold) if self.threshold != "" else rules
        return rules if situation.role is None else rules.for_tensor(situation.role)

    def for_tensor(self, role: Role) -> "Mor":
        """Return the recipe for a tensor of this role, whose rungs have one threshold each."""
        policy = self.policy_in(Situation())
        chosen = policy.thresholds_for(role) if policy.depends_on_role else {}
        if not chosen:
            return self
        own = self.threshold
        named = dict(own) if isinstance(own, Mapping) else {MEANT_BY_THRESHOLD: own} if own else {}
        return replace(self, threshold={**named, **{name: str(t) for name, t in chosen.items()}})

    @property
    def asks_functions(self) -> bool:  # type: ignore[override]  # of the policy here
        """Whether a metric of the policy is a function."""
        return self.rules.asks_functions

    @property
    def remembers(self) -> bool:  # type: ignore[override]  # as above
        """Whether a function of the policy has a state."""
        return self.rules.has_state


def _name_or_policy(given: object) -> str | Policy:
    """Return the name of a policy that is a row, and any other policy as its text has it."""
    if not isinstance(given, Policy):
        return known_name("policy", given, POLICIES)
    row = POLICIES.known(given.name)
    is_row = row is not None and (row == given or table_of_policy(row) == table_of_policy(given))
    return given.name if is_row else with_thresholds_in_texts(given)


@dataclass(frozen=True)
class Scaled(_InBlocks, OfRow):
    """One scaled format, with scales of the tensor itself (current scaling)."""

    fmt: str = "e4m3"
    block: Cut = "tensor"
    scaling: Scaling = "fp32"
    name = "scaled"
    words: ClassVar = _BLOCKS_AND_SCALES

    def check(self) -> None:
        """Check the fields."""
        scaled_format(self.fmt)
        check_scaling(self.scaling)
        super().check()

    @property
    def takes(self) -> tuple[str, ...]:
        """An amax, a scale of fp32, and random words."""
        return ("amax", BITS, *(["scale"] if self.scaling == "fp32" else []))

    @property
    def head(self) -> str:
        """The format."""
        return self.fmt

    @property
    def row(self) -> ScaledFormat:
        """The format as a representation."""
        return ScaledFormat(as_format(self.fmt))


@dataclass(frozen=True)
class Delayed(TensorRecipe):
    """One scaled format, with a scale from the amaxes of earlier steps (TRN-005).

    `history` is the number of steps, `amax` says which of their amaxes counts, and `scaling`
    whether the scale is any number of binary32, or a power of two. The scale is lowered by
    2^margin.
    """

    fmt: str = "e4m3"
    history: int = 1024
    amax: Literal["max", "most_recent"] = "max"
    scaling: Literal["fp32", "e8m0"] = "fp32"
    margin: int = 0
    name = "delayed"
    is_delayed = True

    def check(self) -> None:
        """Check the fields."""
        scaled_format(self.fmt)
        whole_number("history", self.history, 1, 1 << 20)
        known_name("amax", self.amax, ("max", "most_recent"))
        known_name("scaling", self.scaling, ("fp32", "e8m0"))
        whole_number("margin", self.margin, 0, 126)

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of that format alone, with the scale of the situation."""
        return alone(GivenScale(as_format(self.fmt), situation.scale))


@dataclass(frozen=True)
class Mx(OfRow):
    """An MX format: blocks along the contraction share a power of two."""

    fmt: str = "e4m3"
    scale_rule: str = "floor"
    block: int = 32
    name = "mx"
    words: ClassVar = {"scale_rule": OneOf(SCALE_RULES), "block": _whole_number}

    @property
    def takes(self) -> tuple[str, ...]:
        """Random words."""
        return (BITS,)

    @property
    def head(self) -> str:
        """The name of the MX format, without a scale rule and a block."""
        return MxBlocks(self.fmt).name

    @property
    def row(self) -> MxBlocks:
        """The MX format as a representation."""
        return MxBlocks(self.fmt, self.scale_rule, self.block)


def _hadamard(given: object) -> int | Hadamard | None:
    """Return the transform of a recipe (TRN-009), also of the table that its text has."""
    step = step_of({STEP: Hadamard.name, **given}) if isinstance(given, Mapping) else given
    if step is None or step == 16:
        return step
    if not isinstance(step, Hadamard) or (step.size, step.fmt.name) != (16, "bf16"):
        raise ValueError(
            f"hadamard is {given!r}; give 16, which draws signs, or "
            "Hadamard(16, signs=0xd7e8, stored='bf16'), or omit it"
        )
    return step


@dataclass(frozen=True)
class Nvfp4(OfRow):
    """NVFP4, rounded to nearest ("rne") or at random ("sr"), after a Hadamard transform or not.

    `hadamard` is 16 if each step draws its signs, or a `Hadamard` with signs that stay (TRN-009).

    >>> Nvfp4(hadamard=Hadamard(16, signs=0xD7E8, stored="bf16")).text.partition("hadamard")[2]
    ' = { size = 16, signs = "0xd7e8", stored = "bf16" } }'
    """

    profile: str = "te"
    tile: tuple[int, int] = ROW_TILE
    rounding: Literal["rne", "sr"] = "rne"
    hadamard: int | Hadamard | None = None
    name = "nvfp4"
    words: ClassVar = {"profile": OneOf(PROFILES), "tile": sides_in}

    @property
    def to_nearest(self) -> "Nvfp4":
        """The recipe with the same scales that needs no random words (TRN-008)."""
        return replace(self, rounding="rne")

    @property
    def takes(self) -> tuple[str, ...]:
        """An amax, a global scale if the profile takes one, and random words."""
        own = PROFILES[self.profile].takes_global_scale
        return ("amax", BITS, *(["global_scale"] if own else []))

    @property
    def asked(self) -> Asked:
        """The operation `nvfp4`, if it is rounded to nearest without a transform."""
        if self.is_random or self.hadamard:
            raise self.without_operation
        return super().asked

    def check(self) -> None:
        """Check the fields."""
        known_name("rounding", self.rounding, ("rne", "sr"))
        object.__setattr__(self, "hadamard", _hadamard(self.hadamard))
        given: object = self.tile
        object.__setattr__(self, "tile", tuple(given) if isinstance(given, list) else given)
        self.policy_in(Situation())

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields, as text has them: a table for signs that stay."""
        step = self.hadamard
        if not isinstance(step, Hadamard):
            return super().arguments
        table = {"size": step.size, "signs": f"0x{step.signs:x}", "stored": step.fmt.name}
        return {**super().arguments, "hadamard": table}

    @property
    def is_random(self) -> bool:  # type: ignore[override]  # of a field here
        """Whether it takes random words."""
        return self.rounding == "sr"

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of NVFP4 alone."""
        if self.is_random:
            return alone(
                RandomNvfp4(self.profile, self.tile, situation.purpose, name=self.row.name)
            )
        return super().policy_in(situation)

    @property
    def row(self) -> Nvfp4Tiles:
        """NVFP4 as a representation, rounded to nearest; only the usual profile is "nvfp4"."""
        name = self.name if self.profile == Nvfp4.profile else ""
        return Nvfp4Tiles(self.profile, self.tile, name=name)
