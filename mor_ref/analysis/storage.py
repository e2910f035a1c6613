"""The bits that a tensor takes with a recipe: codes, scales and decisions."""

from collections.abc import Mapping

from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Cut, partition
from mor_ref.definitions.formats import formats
from mor_ref.definitions.scales import Scaling
from mor_ref.policies import Policy
from mor_ref.representations import FunctionRepresentation, Representation
from mor_ref.representations import stored_bits as bits_of


def stored_bits(
    policy: Policy | None,
    taken: Mapping[str, int],
    units: int,
    shape: tuple[int, ...],
    cut: Cut,
    scaling: Scaling,
    numbers: Numbers | None = None,
) -> int | None:
    """Return the bits of a tensor whose numbers took these representations (ERR-009).

    They are None if numbers took a representation that does not say its bits. `units` is the number
    of decisions; 0 if nothing is decided. Some representations need the numbers of the tensor.
    """
    total = sum(taken.values())
    found = formats["bf16"].bits * taken.get("bf16", 0)
    if policy is None or not total:
        return found
    parts = partition(shape, cut, policy.group)
    for rung in policy.ladder:
        count = taken[rung.name]
        whole = bits_of(rung.representation, scaling, parts, numbers) if count else (0, 0)
        if whole is None:
            return None
        found += sum(-(-bits * count // total) for bits in whole)
    return found + units * len(policy.ladder).bit_length()


def is_said_by_author(policy: Policy | None, taken: Mapping[str, int]) -> bool:
    """Return whether a representation of a user took numbers: its bits are those that it says."""
    return policy is not None and any(
        taken.get(rung.name) and _is_of_author(rung.representation) for rung in policy.ladder
    )


def _is_of_author(one: Representation) -> bool:
    is_ours = type(one).__module__.partition(".")[0] == _OURS
    return not is_ours or isinstance(one, FunctionRepresentation)


_OURS = __name__.partition(".")[0]
