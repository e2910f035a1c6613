"""The sums of units on a device, and the metrics that compare them."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Bits, Device, launch, run_team
from mor_ref.cuda.measuring import ErrorRule
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.unit_sums import WORDS
from mor_ref.metrics.squares import OfSums

_SUMS = 4  # signal, noise, energy and product


class DeviceSums(NamedTuple):
    """The sums of units, in words; and the largest d and |x| of each of their rows (MOR-009)."""

    units: Partition
    words: Array
    unmeasured: Array
    largest: Array
    amax: Array


def sum_units(
    device: Device, x: Bits, parts: Partition, rule: ErrorRule, *, by_block: bool
) -> DeviceSums:
    """Sum the numbers of each block, or of the tensor, and what a rule makes of them."""
    units = parts if by_block else partition(x.array.shape, "tensor")
    count, in_rows = units.grid[0] * units.grid[1], (units.rows, units.grid[1])
    sums = DeviceSums(
        units,
        device.filled((count, _SUMS, WORDS), np.uint32, 0),
        device.filled(units.grid, np.uint64, 0),
        *(device.filled(in_rows, np.uint32, 0) for _ in range(2)),
    )
    arguments = (rule.row, np.uint64(by_block), _structure(device, sums))
    run_team(device, "unit_sums", f"sum_units{rule.suffix}", x, parts, *arguments)
    return sums


def accepted_by_sums(device: Device, metric: OfSums, sums: DeviceSums) -> Array:
    """Return which units a metric accepts, as bytes (MOR-010 to MOR-013)."""
    units = sums.units
    marks = device.empty(units.grid, np.uint8)
    errors, numbers = (device.upload(_words(factor)) for factor in metric.factors)
    row = rows.row(rows.FACTORS, errors=_natural(device, errors), numbers=_natural(device, numbers))
    arguments = [row, _structure(device, sums), np.uint64(marks.size), marks]
    if metric.name == "largest_by_row":
        arguments += [np.uint64(units.rows), np.uint64(units.block[0])]
    launch(device, "unit_sums", f"accepted_by_{metric.name}", int(marks.size), *arguments)
    return marks


def _structure(device: Device, sums: DeviceSums) -> rows.Row:
    arrays = {name: getattr(sums, name) for name in ("words", "unmeasured", "largest", "amax")}
    places = {name: device.address(array) for name, array in arrays.items()}
    return rows.row(rows.UNIT_SUMS, **places, across=sums.units.grid[1])


def _natural(device: Device, words: Array) -> rows.Row:
    return rows.row(rows.NATURAL, words=device.address(words), count=words.size)


def _words(number: int) -> np.ndarray:
    """Return an integer in words, the lowest first."""
    count = max(1, -(-number.bit_length() // 32))
    return np.frombuffer(number.to_bytes(4 * count, "little"), "<u4").astype(np.uint32)
