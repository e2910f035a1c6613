"""Partitions of FP8-LM that differ: other orders of tensors, and other ranks for them."""

from collections.abc import Callable, Sequence
from typing import Any

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.schemes.fp8lm.exact import partition

Reference = Callable[..., Any]
_RULES, _DOMAIN = ("FLM-015",), ("fp8lm_partition",)


@deviation(partition, rules=_RULES, domain=_DOMAIN)
def fp8lm_partition_by_index(reference: Reference, numels: Sequence[int], ranks: int) -> list[int]:
    """Tensors of equal size are taken in the order of their indices."""
    del reference
    return _placed(numels, ranks, lambda i: (-numels[i], i))


@deviation(partition, rules=_RULES, domain=_DOMAIN)
def fp8lm_partition_smallest_first(
    reference: Reference, numels: Sequence[int], ranks: int
) -> list[int]:
    """The smallest tensor is taken first."""
    del reference
    return _placed(numels, ranks, lambda i: (numels[i], i % ranks))


@deviation(partition, rules=_RULES, domain=_DOMAIN)
def fp8lm_partition_to_the_last(
    reference: Reference, numels: Sequence[int], ranks: int
) -> list[int]:
    """Of ranks with the fewest elements, the last one gets the tensor."""
    return [ranks - 1 - rank for rank in reference(numels, ranks)]


@deviation(partition, rules=_RULES, domain=_DOMAIN)
def fp8lm_partition_in_turns(reference: Reference, numels: Sequence[int], ranks: int) -> list[int]:
    """Ranks take turns, however many elements they have."""
    del reference
    found = [0] * len(numels)
    for turn, i in enumerate(sorted(range(len(numels)), key=lambda i: (-numels[i], i % ranks))):
        found[i] = turn % ranks
    return found


def _placed(numels: Sequence[int], ranks: int, key: Callable[[int], tuple[int, int]]) -> list[int]:
    loads, found = [0] * ranks, [0] * len(numels)
    for i in sorted(range(len(numels)), key=key):
        found[i] = loads.index(min(loads))
        loads[found[i]] += numels[i]
    return found


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
