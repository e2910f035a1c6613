"""The protocol of a recipe, and the parts that every recipe has."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

from mor_ref.definitions.before_blocks import Hadamard
from mor_ref.definitions.block_formats import inline_toml
from mor_ref.definitions.blocks import Cut, cut_in
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS
from mor_ref.definitions.code_digest import code_digest
from mor_ref.definitions.roles import Role
from mor_ref.definitions.scales import Scaling
from mor_ref.metrics import Always
from mor_ref.policies import Policy, Rung
from mor_ref.representations import Asked, Representation, asked_of

REPRESENTATION = "representation"  # the key of a table that says which recipe it is


class Situation(NamedTuple):
    """The part of a quantization that its tensor does not have.

    `scale` is that of a delayed recipe, and `purpose` that of random words (TRN-007). `role` is
    what the tensor is in a model, if it is known (MOR-015).
    """

    scale: float = 1.0
    purpose: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    role: Role | None = None


class TensorRecipe(ABC):
    """A recipe of an operand: the policy that decides about it, its block and its scales.

    A subclass is a frozen dataclass of texts, numbers and pairs of numbers, with a default for
    each. A user adds one to `TENSOR_RECIPES`, so that recipes are read from text.

    >>> from mor_ref.recipes import Mx
    >>> str(Mx("e4m3", "rceil"))
    '{ representation = "mx", fmt = "e4m3", scale_rule = "rceil", block = 32 }'
    """

    name: ClassVar[str]
    # What a word of a short text can say: fields, and how each reads a word; None refuses it.
    words: ClassVar[Mapping[str, Callable[[str], object]]] = {}
    is_delayed = False  # takes the scale of its situation
    is_random = False  # takes the random words of its situation
    hadamard: int | Hadamard | None = None  # how many numbers are transformed together before
    asks_functions = False  # a metric is a function, which sees the role of a tensor
    remembers = False  # a function has a state between steps (MOR-016)
    text: str  # as an inline table of TOML; made once, as torch.compile cannot trace it

    def __str__(self) -> str:
        """Return the text, which is read as an equal recipe."""
        return self.text

    @property
    def needs_steps(self) -> bool:
        """Whether it needs the steps of a training: their scales, random words or signs."""
        return self.is_delayed or self.is_random or isinstance(self.hadamard, int)

    def for_tensor(self, role: Role) -> "TensorRecipe":
        """Return the recipe for a tensor of this role, without thresholds for others (MOR-015)."""
        del role
        return self

    @property
    def to_nearest(self) -> "TensorRecipe":
        """The recipe with the same scales that needs no random words (TRN-008)."""
        return self

    @property
    def takes(self) -> tuple[str, ...]:
        """The parameters that may be given with each tensor: amax, scale, random words."""
        return ()

    def __post_init__(self) -> None:
        self.check()
        given = {REPRESENTATION: self.name, **self.arguments}
        shown = {key: value for key, value in given.items() if value is not None}
        object.__setattr__(self, "text", inline_toml(shown))

    def check(self) -> None:  # noqa: B027 (a recipe without fields has nothing to check)
        """Refuse fields that do not go together, or bring them into one form."""

    @abstractmethod
    def policy_in(self, situation: Situation) -> Policy | None:
        """Return the policy of a situation; None leaves the tensor in bfloat16."""

    @property
    def asked(self) -> Asked:
        """The operation of the suites that it is."""
        raise self.without_operation

    @property
    def without_operation(self) -> ValueError:
        """The error that no operation of the suites is this recipe."""
        return ValueError(
            f"recipe is {self.text}, but no operation of the suites computes it; give a recipe of "
            "representation scaled, mx or mor, or nvfp4 that is rounded to nearest"
        )

    @property
    def head(self) -> str:
        """The first word of the short text."""
        return self.name

    @property
    def cut(self) -> Cut:
        """The scaling block."""
        return "tensor"

    @property
    def scales(self) -> Scaling:
        """The kind of scales."""
        return "fp32"

    @property
    def title(self) -> str:
        """The name in tables, if the text would be too long for one."""
        return ""

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the integers that each quantization returns."""
        return _statistics(self)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The fields, as text has them."""
        return {field.name: getattr(self, field.name) for field in fields(cast("Any", self))}


class OfRow(TensorRecipe):
    """A recipe by one representation alone, which every tensor takes that loses nothing."""

    @property
    @abstractmethod
    def row(self) -> Representation:
        """The representation."""

    def check(self) -> None:
        """Refuse fields that no representation has."""
        self.policy_in(Situation())

    def policy_in(self, situation: Situation) -> Policy:
        """Return the policy of the representation alone."""
        del situation
        return alone(self.row)

    @property
    def asked(self) -> Asked:
        """The operation of the representation."""
        found = asked_of(self.row, self.scales, self.cut, "tensor")
        if found is None and NAMES_OF_REPRESENTATIONS.is_specified(self.head):
            raise self.without_operation
        if found is None:
            raise ValueError(
                f"recipe is {self.head}, but representation {self.row.name!r} has no operation: "
                "its method asked is missing or returns None; give it a method that returns an "
                "Asked"
            )
        return found


class OfKind(OfRow):
    """A recipe whose text begins with the kind of its representation."""

    of: str

    @property
    def head(self) -> str:
        """The kind."""
        return self.of


class OfTiles(OfKind):
    """A recipe of a library's profile, with tiles of its own size or of another one."""

    tile: Cut
    words: ClassVar = {"tile": cut_in}

    def check(self) -> None:
        """Check the profile and the tile, and take the tile as the representation has it."""
        object.__setattr__(self, "tile", cast("Any", self.row).tile)
        super().check()


def checked_digest(row: object | None, name: str, given: str) -> str:
    """Return the digest of a row of a user, empty without one; refuse another one (MOR-017)."""
    digest = "" if row is None else code_digest(row)
    if given and given != digest:
        there = f"{name!r} has {digest}" if digest else f"{name!r} is no row of a user"
        raise ValueError(
            f"code is {given}, but here {there}: its code or its fields changed since the recipe "
            "was written; give the code of then, or a recipe without code"
        )
    return digest


def alone(representation: Representation) -> Policy:
    """Return the policy of one representation that every tensor takes that loses nothing."""
    return Policy(representation.name, (Rung(representation, Always()),))


@lru_cache
def _statistics(tensor_recipe: TensorRecipe) -> tuple[str, ...]:
    policy = tensor_recipe.policy_in(Situation())
    if policy is None:
        return ()
    kinds = ("sum", "nonzero", "nonfinite")
    sums = (f"{kind} {one.name}" for one in policy.tried for kind in kinds)
    return ("units", "amax", "amin", *(f"choice {name}" for name in policy.names), *sums)
