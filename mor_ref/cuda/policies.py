"""Policies on a device: the decisions stay there, and so do their consequences."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda.errors import ErrorSums, no_errors
from mor_ref.cuda.launching import Array, Bits, Device, run_team
from mor_ref.cuda.measuring import measure
from mor_ref.cuda.metrics import take
from mor_ref.cuda.scales import Extremes, extremes
from mor_ref.cuda.unit_sums import DeviceSums, accepted_by_sums, sum_units
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.scales import Scaling, ScalingBlocks
from mor_ref.metrics.squares import OfSums
from mor_ref.policies import Policy


class MorArrays(NamedTuple):
    """A tensor with a policy."""

    choice: Array
    output: Array
    extremes: Extremes
    error: dict[str, ErrorSums]


def mor(device: Device, x: Bits, policy: Policy, kind: Scaling, parts: Partition) -> MorArrays:
    """Mix representations by a policy, in the scaling blocks of `parts` (MOR-007)."""
    policy = policy.for_tensor()
    by_block = policy.unit == "block"
    units = parts if by_block else partition(x.array.shape, "tensor")
    per_block = np.uint64(by_block)
    extremes_of_blocks = extremes(device, x, parts)
    extremes_of_units = (
        extremes_of_blocks if by_block else _whole_tensor(device, extremes_of_blocks)
    )
    blocks = ScalingBlocks(parts, kind, extremes_of_blocks.amax)
    tried = {rung.name: rung.cuda(device, x, blocks) for rung in policy.tried}
    errors = {name: no_errors(device, units.grid) for name in tried}
    for name, rule in tried.items():
        measure(device, x, parts, rule, errors[name], by_block=by_block)
    sums = {
        rung.name: sum_units(device, x, parts, tried[rung.name], by_block=by_block)
        for rung in policy.ladder
        if isinstance(rung.metric, OfSums)
    }
    choice = _choose(device, policy, errors, extremes_of_units, sums)
    output = device.empty(x.array.shape, np.uint16)
    for k, rung in enumerate(policy.ladder):
        rule = tried[rung.name]
        taken = (choice, per_block, np.uint32(k), rule.row, output)
        run_team(device, "policies", f"write{rule.suffix}", x, parts, *taken)
    kept = (choice, per_block, np.uint32(len(policy.ladder)), output)
    run_team(device, "policies", "write_kept", x, parts, *kept)
    return MorArrays(choice, output, extremes_of_units, errors)


def _whole_tensor(device: Device, blocks: Extremes) -> Extremes:
    """Return the extremes of the tensor: those of its blocks, which are numbers themselves."""
    amax, amin = (
        extremes(device, Bits(array, "f32"), partition(array.shape, "tensor")) for array in blocks
    )
    return Extremes(amax.amax, amin.amin)


def _choose(
    device: Device,
    policy: Policy,
    errors: dict[str, ErrorSums],
    units: Extremes,
    sums: dict[str, DeviceSums],
) -> Array:
    """Return the index of the rung that each unit takes (MOR-001)."""
    choice = device.filled(units.amax.shape, np.uint8, len(policy.ladder))
    for k, rung in reversed(list(enumerate(policy.ladder))):
        error, metric = errors[rung.name], rung.metric
        if isinstance(metric, OfSums):
            accepted = accepted_by_sums(device, metric, sums[rung.name])
        else:
            accepted = metric.cuda(device, error, errors, units)
        take(device, k, accepted, error, choice)
    return choice
