"""Answers that a representation may lack: each is a protocol of one member, and how to ask it."""

from typing import NamedTuple, Protocol, runtime_checkable

from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.scales import Scaling
from mor_ref.representations.representation import Representation


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


def stored_bits(one: Representation, scaling: Scaling, parts: Partition) -> StoredBits | None:
    """Return the bits of all codes and of all scales (ERR-009); None if they are not known."""
    found = one.stored_bits(scaling, parts) if isinstance(one, Stored) else None
    return None if found is None else StoredBits(*found)


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


def with_scales(bits: int, parts: Partition, scales: int) -> StoredBits:
    """Return the bits of codes of the same width, with these scales."""
    return StoredBits(bits * parts.rows * parts.columns, scales)
