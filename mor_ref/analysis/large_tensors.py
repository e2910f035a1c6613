"""Tensors that are larger than the memory should be: measured some rows at a time.

All that is measured are integers, which add up, or extremes. The amax of the whole tensor is
measured first, and given with each of the strips (SCL-006, NVF-013).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mor_ref.api.measures import amaxes_of, signal_of
from mor_ref.api.policies import Cuts, Decided, cuts_of, decided
from mor_ref.arrays import Numbers, let_go
from mor_ref.definitions.blocks import Cut, partition, rows_and_columns
from mor_ref.definitions.roles import Role
from mor_ref.definitions.scales import WHOLE, AmaxOrScale, GivenAmaxes, Scaling
from mor_ref.mapped_files import in_memory
from mor_ref.policies import Policy
from mor_ref.recipes import Situation, TensorRecipe
from mor_ref.representations import rows_together as of_representation

AT_ONCE = 1 << 22  # numbers
_MOST = 8  # times as many, where more rows share a scale


class OfTensor(NamedTuple):
    """A whole tensor: its sum of squares, and its amax without and with infinities."""

    signal: int
    finite: float
    largest: float


def of_tensor(numbers: Numbers, threads: int | None) -> OfTensor:
    """Measure a tensor, strip by strip."""
    signal, finite, largest = 0, np.uint32(0), np.uint32(0)
    for strip in strips_of(numbers, 1):
        signal += signal_of(strip, threads)
        own = amaxes_of(strip, threads)
        finite, largest = max(finite, own[0]), max(largest, own[1])
    return OfTensor(signal, *(float(amax.view(np.float32)) for amax in (finite, largest)))


def strips_of(numbers: Numbers, together: int | None) -> Iterator[Numbers]:
    """Yield rows of a tensor, so many together; all of them if there is no such number."""
    rows, columns = rows_and_columns(numbers.shape)
    if together is None or not is_cut(numbers, together):
        yield numbers._replace(bits=in_memory(numbers.bits))
        return
    count = max(together, AT_ONCE // columns // together * together)
    for first in range(0, rows, count):
        strip = numbers.rows(first, min(first + count, rows))
        yield strip._replace(bits=in_memory(strip.bits))
        let_go(numbers.bits)


def is_cut(numbers: Numbers, together: int | None) -> bool:
    """Return whether a tensor is measured in strips."""
    is_large = numbers.bits.size > AT_ONCE
    return is_large and together is not None and together * numbers.shape[-1] <= _MOST * AT_ONCE


class How(NamedTuple):
    """The way in which tensors are quantized: a policy, or bfloat16, and the scales of formats."""

    policy: Policy | None
    cut: Cut
    scaling: Scaling

    def cuts(self, numbers: Numbers, policy: Policy) -> Cuts:
        """Return the partitions of a tensor."""
        return cuts_of(numbers.shape, self.cut, policy.group, policy.unit, self.scaling)

    def decided(
        self, numbers: Numbers, policy: Policy, given: GivenAmaxes, threads: int | None
    ) -> Decided:
        """Decide on a tensor, or on some rows of one whose amaxes are given."""
        cuts = self.cuts(numbers, policy)
        return decided(numbers, policy, self.scaling, cuts, threads, given=given)


def how_of(tensor_recipe: TensorRecipe, role: Role | None = None) -> How:
    """Return the way of a recipe, for a tensor of this role if it is known."""
    policy = tensor_recipe.policy_in(Situation(role=role))
    return How(policy, tensor_recipe.cut, tensor_recipe.scales)


def rows_together(how: How, shape: tuple[int, ...]) -> int | None:
    """Return how many rows share scales or a decision; None if all do, or if it is not known.

    Rows that share only the amax of the tensor are not together.

    >>> from mor_ref.recipes import as_tensor_recipe
    >>> recipes = "mxfp8", "nvfp4:te:16x16", "e4m3:fp32:tensor", "e4m3:gam:column", "mor:three_way"
    >>> [rows_together(how_of(as_tensor_recipe(one)), (4096, 4096)) for one in recipes]
    [1, 16, 1, None, 128]
    """
    if how.policy is None:
        return 1
    if how.policy.needs_whole_tensors:
        return None
    found = [of_representation(one, shape) for one in how.policy.tried]
    found.append(_of_blocks(how, how.policy, shape))
    known = [rows for rows in found if rows is not None]
    together = math.lcm(*known)
    return together if len(known) == len(found) and together < rows_and_columns(shape)[0] else None


def amaxes_for(how: How, known: OfTensor) -> GivenAmaxes:
    """Return the amaxes to give with strips: to a format only if its scales are of the tensor's."""
    if how.policy is None:
        return WHOLE
    shares = how.cut == "tensor" or (how.scaling == "gam" and how.policy.group == "tensor")
    return GivenAmaxes(AmaxOrScale(known.finite if shares else None), AmaxOrScale(known.largest))


def _of_blocks(how: How, policy: Policy, shape: tuple[int, ...]) -> int:
    """Return the rows of the scaling blocks and groups.

    It is 1 if the block is the tensor and its scale follows from the amax that is given: with gam
    scaling the exponent does not.
    """
    parts = partition(shape, how.cut, policy.group)
    if how.cut == "tensor":
        return 1 if how.scaling != "gam" and policy.unit == "tensor" else parts.block[0]
    return parts.block[0] if policy.group == "tensor" else parts.group[0]
