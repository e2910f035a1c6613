"""Policies on a device: the decisions stay there, and so do their consequences."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda.errors import ErrorSums, no_errors
from mor_ref.cuda.launching import Array, Bits, Device, run_team
from mor_ref.cuda.measuring import measure
from mor_ref.cuda.metrics import take
from mor_ref.cuda.scales import Extremes, extremes
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.policies import Policy


class MorArrays(NamedTuple):
    """A tensor with a policy."""

    choice: Array
    output: Array
    extremes: Extremes
    error: dict[str, ErrorSums]


def mor(device: Device, x: Bits, policy: Policy, kind: Scaling, parts: Partition) -> MorArrays:
    """Mix representations by a policy, in the scaling blocks of `parts` (MOR-007)."""
    by_block = policy.unit == "block"
    units = parts if by_block else partition(x.array.shape, "tensor")
    per_block = np.uint64(by_block)
    of_blocks = extremes(device, x, parts)
    of_units = of_blocks if by_block else _of_all(device, of_blocks)
    blocks = ScalingBlocks(parts, kind, of_blocks.amax)
    tried = {one.name: one.cuda(device, x, blocks) for one in policy.tried}
    errors = {name: no_errors(device, units.grid) for name in tried}
    for name, one in tried.items():
        measure(device, x, parts, one, errors[name], by_block=by_block)
    choice = _choose(device, policy, errors, of_units)
    output = device.empty(x.array.shape, np.uint16)
    for k, rung in enumerate(policy.ladder):
        one = tried[rung.name]
        taken = (choice, per_block, np.uint32(k), one.row, output)
        run_team(device, "policies", f"write{one.suffix}", x, parts, *taken)
    kept = (choice, per_block, np.uint32(len(policy.ladder)), output)
    run_team(device, "policies", "write_kept", x, parts, *kept)
    return MorArrays(choice, output, of_units, errors)


def _of_all(device: Device, blocks: Extremes) -> Extremes:
    """Return the extremes of the tensor: those of its blocks, which are numbers themselves."""
    amax, amin = (
        extremes(device, Bits(array, "f32"), partition(array.shape, "tensor")) for array in blocks
    )
    return Extremes(amax.amax, amin.amin)


def _choose(device: Device, policy: Policy, errors: dict[str, ErrorSums], units: Extremes) -> Array:
    """Return the index of the rung that each unit takes (MOR-001)."""
    choice = device.filled(units.amax.shape, np.uint8, len(policy.ladder))
    for k, rung in reversed(list(enumerate(policy.ladder))):
        own = errors[rung.name]
        take(device, k, rung.metric.cuda(device, own, errors, units), own, choice)
    return choice
