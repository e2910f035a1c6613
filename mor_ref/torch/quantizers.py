"""Treatments of operands as rows: the policy of each, its block and its scales."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, cast

from mor_ref.argument_checks import known_name, whole_number
from mor_ref.definitions.blocks import Cut, as_cut
from mor_ref.definitions.catalogue import Catalogue
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.scales import SCALINGS, Scaling, scaled_format
from mor_ref.metrics import Always
from mor_ref.policies import POLICIES, Policy, Rung
from mor_ref.representations import (
    GivenScale,
    MxBlocks,
    Nvfp4Tiles,
    RandomNvfp4,
    Representation,
    ScaledFormat,
)

Axis = Literal["row", "column"]
AXES: tuple[Axis, ...] = ("row", "column")
_TURNED = {"tensor": "tensor", "row": "column", "column": "row"}


class Situation(NamedTuple):
    """The part of a quantization that its tensor does not have.

    `scale` is that of a delayed treatment, and `purpose` that of random words (TRN-007).
    """

    scale: float = 1.0
    purpose: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)


class Treatment(ABC):
    """A treatment of an operand: the policy that decides about it, its block and its scales.

    A subclass is a frozen dataclass of texts, numbers and pairs of numbers, with a default for
    each. A user adds one to `TREATMENTS`, so that recipes are read from text.

    >>> Mx("e4m3", "rceil").text
    '{ kind = "mx", fmt = "e4m3", scale_rule = "rceil", block = 32 }'
    """

    name: ClassVar[str]
    is_delayed = False  # takes the scale of its situation
    is_random = False  # takes the random words of its situation
    hadamard: int | None = None  # how many numbers are transformed together before
    text: str  # as an inline table of TOML; made once, as torch.compile cannot trace it

    def __post_init__(self) -> None:
        self.check()
        given = {"kind": self.name, **self.arguments}
        shown = (f"{key} = {json.dumps(at)}" for key, at in given.items() if at is not None)
        object.__setattr__(self, "text", f"{{ {', '.join(shown)} }}")

    def check(self) -> None:  # noqa: B027 (a treatment without fields has nothing to check)
        """Refuse fields that do not go together, or bring them into one form."""

    @abstractmethod
    def policy_in(self, situation: Situation) -> Policy | None:
        """Return the policy of a situation; None leaves the tensor in bfloat16."""

    @property
    def cut(self) -> Cut:
        """The scaling block."""
        return "tensor"

    @property
    def scales(self) -> Scaling:
        """The kind of scales."""
        return "fp32"

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the integers that each quantization returns."""
        return _statistics(self)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields, as text has them."""
        return {field.name: getattr(self, field.name) for field in fields(cast("Any", self))}


@lru_cache
def _statistics(treatment: Treatment) -> tuple[str, ...]:
    policy = treatment.policy_in(Situation())
    if policy is None:
        return ()
    kinds = ("sum", "nonzero", "nonfinite")
    sums = (f"{kind} {one.name}" for one in policy.tried for kind in kinds)
    return ("units", "amax", "amin", *(f"choice {name}" for name in policy.names), *sums)


@dataclass(frozen=True)
class Unquantized(Treatment):
    """Rounded to bfloat16 and left so."""

    name = "unquantized"

    def policy_in(self, situation: Situation) -> None:
        """Return None."""
        del situation


class _InBlocks(Treatment):
    """A treatment whose block and kind of scales are fields."""

    block: Cut
    scaling: Scaling

    def check(self) -> None:
        """Check the block and the scales, and let lists of text be pairs."""
        known_name("scaling", self.scaling, SCALINGS)
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
    """MoR, as `mor_ref.mor` has it; `policy` is the name of a policy.

    >>> Mor("tensor", block="row").statistics[:4]
    ('units', 'amax', 'amin', 'choice e4m3')
    """

    policy: str = "tensor"
    block: Cut = (128, 128)
    scaling: Scaling = "gam"
    threshold: str = ""
    name = "mor"

    def check(self) -> None:
        """Check the fields."""
        known_name("policy", self.policy, POLICIES)
        super().check()
        object.__setattr__(self, "threshold", str(self.threshold))
        self.policy_in(Situation())

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy, with its threshold."""
        del situation
        rules = POLICIES[self.policy]
        return rules.with_threshold(self.threshold) if self.threshold else rules


@dataclass(frozen=True)
class Scaled(_InBlocks):
    """One scaled format, with scales of the tensor itself (current scaling)."""

    fmt: str = "e4m3"
    block: Cut = "tensor"
    scaling: Scaling = "fp32"
    name = "scaled"

    def check(self) -> None:
        """Check the fields."""
        scaled_format(self.fmt)
        super().check()

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of that format alone."""
        del situation
        return _alone(ScaledFormat(as_format(self.fmt)))


@dataclass(frozen=True)
class Delayed(Treatment):
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
        return _alone(GivenScale(as_format(self.fmt), situation.scale))


@dataclass(frozen=True)
class Mx(Treatment):
    """An MX format: blocks along the contraction share a power of two."""

    fmt: str = "e4m3"
    scale_rule: str = "floor"
    block: int = 32
    name = "mx"

    def check(self) -> None:
        """Check the fields."""
        self.policy_in(Situation())

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of that format alone."""
        del situation
        return _alone(MxBlocks(self.fmt, self.scale_rule, self.block))


@dataclass(frozen=True)
class Nvfp4(Treatment):
    """NVFP4, rounded to nearest ("rne") or at random ("sr"), after a Hadamard transform or not."""

    profile: str = "te"
    tile: tuple[int, int] = (1, 16)
    rounding: Literal["rne", "sr"] = "rne"
    hadamard: int | None = None
    name = "nvfp4"

    def check(self) -> None:
        """Check the fields."""
        known_name("rounding", self.rounding, ("rne", "sr"))
        if self.hadamard not in (None, 16):
            raise ValueError(f"hadamard is {self.hadamard!r}; give 16, or omit it")
        object.__setattr__(self, "tile", tuple(self.tile))
        self.policy_in(Situation())

    @property
    def is_random(self) -> bool:  # type: ignore[override]  # of a field here
        """Whether it takes random words."""
        return self.rounding == "sr"

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of NVFP4 alone."""
        if self.is_random:
            return _alone(RandomNvfp4(self.profile, self.tile, situation.purpose))
        return _alone(Nvfp4Tiles(self.profile, self.tile, name="nvfp4"))


def _alone(representation: Representation) -> Policy:
    """Return the policy of one representation that every tensor takes that loses nothing."""
    return Policy(representation.name, (Rung(representation, Always()),))


def turned(policy: Policy, cut: Cut) -> tuple[Policy, Cut] | None:
    """Return the policy and the block of the transpose; None if it has to be laid out anew."""
    if not all(isinstance(one, ScaledFormat | GivenScale) for one in policy.tried):
        return None
    return replace(policy, group=_turned(policy.group)), _turned(cut)


def _turned(cut: Cut) -> Any:
    return _TURNED[cut] if isinstance(cut, str) else cut[::-1]


TREATMENTS: Catalogue[Treatment] = Catalogue(
    "treatment", Treatment, (Unquantized(), Mor(), Scaled(), Delayed(), Mx(), Nvfp4())
)
