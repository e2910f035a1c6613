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


def with_scales(bits: int, parts: Partition, scales: int) -> StoredBits:
    """Return the bits of codes of the same width, with these scales."""
    return StoredBits(bits * parts.rows * parts.columns, scales)
