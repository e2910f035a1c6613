"""The decisions of MoR on a tensor, without its codes: strip by strip if it is large."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.analysis.large_tensors import (
    How,
    amaxes_for,
    is_cut,
    of_tensor,
    rows_together,
    strips_of,
)
from mor_ref.api.errors import ErrorSums, error_sums
from mor_ref.api.policies import chosen_for_all
from mor_ref.arrays import Numbers
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.scales import WHOLE
from mor_ref.policies import Policy


class Decisions(NamedTuple):
    """The decisions on a tensor, and the error sums of its blocks with the first rung.

    A tensor that is one unit may have the sums and the extremes of its strips instead of its own.
    """

    choice: NDArray[np.uint8]
    units: Partition
    error: dict[str, ErrorSums]
    of_blocks: ErrorSums
    amax: NDArray[np.float32]
    amin: NDArray[np.float32]


def decisions(numbers: Numbers, how: How, policy: Policy, threads: int | None) -> Decisions:
    """Decide on a tensor with a policy."""
    together = rows_together(how, numbers.shape)
    is_in_strips = is_cut(numbers, together)
    given = amaxes_for(how, of_tensor(numbers, threads)) if is_in_strips else WHOLE
    found, blocks = [], []
    for strip in strips_of(numbers, together):
        one = how.decided(strip, policy, given, threads)
        blocks.append(one.tried[policy.names[0]].sums)
        found.append(one._replace(tried={}))  # without codes
        del one
    choice = np.concatenate([one.choice for one in found])
    if is_in_strips and policy.unit == "tensor":
        choice = np.full((1, 1), chosen_for_all(policy, found), np.uint8)
    of_blocks = np.concatenate(blocks)
    if is_in_strips and partition(numbers.shape, how.cut).grid[0] == 1:
        of_blocks = of_blocks.sum(axis=0, keepdims=True)
    amax, amin = (
        np.concatenate([one.extremes[k] for one in found]).view(np.float32) for k in range(2)
    )
    return Decisions(
        choice,
        how.cuts(numbers, policy).units,
        {name: error_sums(np.concatenate([o.sums[name] for o in found])) for name in found[0].sums},
        error_sums(of_blocks),
        amax,
        amin,
    )
