"""Policies on a device: the decisions stay there, and so does what follows from them."""

from typing import Any, NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.launching import Array, Bits, Device, launch, run_team
from mor_ref.cuda.measuring import measure
from mor_ref.cuda.scales import Extremes, extremes
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.policies import FitsRange, MeanRelativeError, NotWorseThan, Policy
from mor_ref.definitions.scales import Scaling, ScalingBlocks


class Mixed(NamedTuple):
    """A tensor under a policy."""

    choice: Array
    output: Array
    extremes: Extremes
    error: dict[str, ErrorSums]


def mor(device: Device, x: Bits, policy: Policy, kind: Scaling, parts: Partition) -> Mixed:
    """Mix representations by a policy, in the scaling blocks of `parts` (MOR-007)."""
    by_block = policy.unit == "block"
    units = parts if by_block else partition(x.array.shape, "tensor")
    per_block = np.uint64(by_block)
    of_blocks = extremes(device, x, parts)
    of_units = of_blocks if by_block else _of_all(device, of_blocks)
    blocks = ScalingBlocks(parts, kind, of_blocks.amax)
    tried = {one.name: one.cuda(device, x, blocks) for one in policy.tried}
    errors = ErrorSums(*(device.filled((len(tried), *units.grid), np.uint64, 0) for _ in range(3)))
    for k, one in enumerate(tried.values()):
        own = ErrorSums(*(array[k] for array in errors))
        measure(device, x, parts, one, own, by_block=by_block)
    choice = _choose(device, policy, list(tried), errors, of_units)
    output = device.empty(x.array.shape, np.uint16)
    for k, rung in enumerate(policy.ladder):
        one = tried[rung.name]
        taken = (choice, per_block, np.uint32(k), one.row, output)
        run_team(device, "policies", f"write{one.suffix}", x, parts, *taken)
    kept = (choice, per_block, np.uint32(len(policy.ladder)), output)
    run_team(device, "policies", "write_kept", x, parts, *kept)
    error = {name: ErrorSums(*(array[k] for array in errors)) for k, name in enumerate(tried)}
    return Mixed(choice, output, of_units, error)


def _of_all(device: Device, blocks: Extremes) -> Extremes:
    """The extremes of the tensor: those of its blocks, which are numbers themselves."""
    amax, amin = (
        extremes(device, Bits(array, "f32"), partition(array.shape, "tensor")) for array in blocks
    )
    return Extremes(amax.amax, amin.amin)


def _choose(
    device: Device, policy: Policy, tried: list[str], errors: ErrorSums, units: Extremes
) -> Array:
    """The rung that each unit takes."""
    rungs = np.concatenate([_rung(rung, tried) for rung in policy.ladder])
    ladder = device.upload(rungs.view(np.uint8))
    choice = device.empty(units.amax.shape, np.uint8)
    count = int(choice.size)
    arguments = (*errors, *units, np.uint64(count), choice)
    launch(device, "policies", "choose", count, ladder, np.uint32(len(rungs)), *arguments)
    return choice


def _rung(rung: Any, names: list[str]) -> rows.Row:
    """A rung as the device has it."""
    own = names.index(rung.name)
    match rung.metric:
        case MeanRelativeError():
            return rows.rung("mean_relative_error", own=own, limit=rung.metric.limit)
        case NotWorseThan(yardstick):
            return rows.rung("not_worse_than", own=own, yardstick=names.index(yardstick.name))
        case FitsRange(fmt):
            return rows.rung("fits_range", own=own, fmt=as_format(fmt))
    raise TypeError(f"metric is {rung.metric!r}, which the kernels do not have")


def decision_steps(
    device: Device, metric: rows.Metric, fmt: Format | None, numbers: dict[str, Array]
) -> Array:
    """Return whether a metric accepts each unit of these numbers."""
    names = ("sum", "nonzero", "nonfinite", "limit", "yardstick_sum", "amax", "amin")
    count = numbers["sum"].size
    accepted = device.empty((count,), np.uint8)
    columns = [numbers[name] for name in names]
    arguments = (*columns, np.uint64(count), rows.rung(metric, fmt=fmt), accepted)
    launch(device, "policies", "decision_steps", count, *arguments)
    return accepted
