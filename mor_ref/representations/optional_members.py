"""Optional members of representations: a protocol of each, and a function that reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from mor_ref.definitions.block_formats import BlockFormat
from mor_ref.definitions.blocks import Cut, Partition
from mor_ref.definitions.scales import Scaling
from mor_ref.representations.representation import Representation

if TYPE_CHECKING:
    from mor_ref.arrays import Numbers


class StoredBits(NamedTuple):
    """The bits of all codes of a tensor, and of all its scales."""

    codes: int
    scales: int


@runtime_checkable
class Stored(Protocol):
    """A representation that says the bits that a tensor takes."""

    def stored_bits(self, scaling: Scaling, parts: Partition) -> tuple[int, int] | None:
        """Return the bits of all codes and of all scales (ERR-009); None if they are not known.

        `parts` are the scaling blocks of the policy, and their groups.
        """


@runtime_checkable
class StoredByNumbers(Protocol):
    """A representation whose numbers decide how many bits the tensor takes."""

    def stored_bits_of(self, numbers: "Numbers") -> StoredBits:
        """Return the bits of all codes and of all scales (ERR-009)."""


def stored_bits(
    one: Representation, scaling: Scaling, parts: Partition, numbers: "Numbers | None" = None
) -> StoredBits | None:
    """Return the bits of all codes and of all scales (ERR-009); None if they are not known."""
    if numbers is not None and isinstance(one, StoredByNumbers):
        return one.stored_bits_of(numbers)
    found = one.stored_bits(scaling, parts) if isinstance(one, Stored) else None
    if found is None:
        return None
    if isinstance(found, tuple) and [isinstance(bits, Integral) for bits in found] == [True, True]:
        return StoredBits(*found)
    raise TypeError(
        f"stored_bits of representation {one.name!r} returned {found!r}; return a pair of ints, "
        "the bits of all codes and of all scales"
    )


@runtime_checkable
class InStrips(Protocol):
    """A representation whose rows can be quantized some at a time."""

    def rows_together(self, shape: tuple[int, ...]) -> int | None:
        """Return how many rows of a tensor share scales; None if all do.

        Rows that share only the amax of the tensor, which `blocks.given` has, are not together.
        """


def rows_together(one: Representation, shape: tuple[int, ...]) -> int | None:
    """Return how many rows share scales; None if all do, or if it is not known."""
    return one.rows_together(shape) if isinstance(one, InStrips) else None


@runtime_checkable
class OfBlocks(Protocol):
    """A representation to which the scaling blocks and the kind of scales of a policy matter."""

    uses_blocks: bool


def uses_blocks(one: Representation) -> bool:
    """Return whether the scaling blocks of a policy matter; pictures name them."""
    return isinstance(one, OfBlocks) and one.uses_blocks


@runtime_checkable
class Turnable(Protocol):
    """A representation with the same codes for a tensor and its transpose, in turned blocks."""

    is_turnable: bool


def is_turnable(one: Representation) -> bool:
    """Return whether a tensor has the codes of its transpose; else the transpose is laid out."""
    return isinstance(one, Turnable) and one.is_turnable


@runtime_checkable
class InFormulas(Protocol):
    """A representation that is a block format."""

    def formulas(self, scaling: Scaling, block: Cut, group: Cut) -> BlockFormat:
        """Return the block format.

        The kind of scales, the block and the group are those of a policy.
        """


def formulas_of(
    one: Representation, scaling: Scaling, block: Cut, group: Cut
) -> BlockFormat | None:
    """Return the block format that a representation is; None if it is none."""
    return one.formulas(scaling, block, group) if isinstance(one, InFormulas) else None


@dataclass(frozen=True)
class Asked:
    """An operation of the suites, with the parameters that a row is, but for the source."""

    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class OfOperation(Protocol):
    """A representation whose fields an operation of the suites has."""

    def asked(self, scaling: Scaling, block: Cut, group: Cut) -> Asked | None:
        """Return the operation; None if there is none.

        The kind of scales, the block and the group are those of a policy.
        """


def asked_of(one: Representation, scaling: Scaling, block: Cut, group: Cut) -> Asked | None:
    """Return the operation of the suites that a representation is; None if there is none."""
    found: object = one.asked(scaling, block, group) if isinstance(one, OfOperation) else None
    if found is None or isinstance(found, Asked):
        return found
    raise TypeError(
        f"asked of representation {one.name!r} returned {found!r}; return an Asked of an "
        "operation, or None"
    )


class Words(NamedTuple):
    """The kind of recipe that a row alone is, the fields that its name says, and the others."""

    kind: str
    named: Mapping[str, Any]
    others: Mapping[str, Any]


@runtime_checkable
class OfRecipe(Protocol):
    """A representation that a kind of recipe has: its name begins the text of a recipe."""

    @property
    def words(self) -> Words | None:
        """The kind and the fields; None if no kind has them."""


def words_of(one: Representation) -> Words | None:
    """Return the kind and the fields of the recipe of a row alone; None if no kind has them."""
    return one.words if isinstance(one, OfRecipe) else None


def with_scales(bits: int, parts: Partition, scales: int) -> StoredBits:
    """Return the bits of codes of the same width, with these scales."""
    return StoredBits(bits * parts.rows * parts.columns, scales)
