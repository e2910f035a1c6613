"""The rules by which kernels quantize the elements of a tensor, and measure their errors."""

from typing import Any, NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums, addresses
from mor_ref.cuda.launching import Array, Bits, Device, run_team
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.format import Format


class ErrorRule(NamedTuple):
    """A rule of kernels: the end of their names, and the structure that they take."""

    suffix: str
    row: rows.Row
    kept: Any  # arrays that the structure points into


def by_scale(device: Device, scales: Array, fmt: Format) -> ErrorRule:
    """Return the rule by which each scaling block has a scale."""
    row = rows.row(rows.BY_SCALE, scales=device.address(scales), to=rows.scaled(fmt))
    return ErrorRule("", row, scales)


def by_value(device: Device, y: Array) -> ErrorRule:
    """Return the rule of a representation whose y is given: binary32 bits, in the shape of x."""
    row = rows.row(rows.BY_VALUE, y=device.address(y), columns=y.shape[1])
    return ErrorRule("_values", row, y)


def measure(
    device: Device, x: Bits, parts: Partition, rule: ErrorRule, sums: ErrorSums, *, by_block: bool
) -> None:
    """Add the error sums of each block, or of the tensor (ERR-002)."""
    sum_addresses = addresses(device, sums)
    arguments = (rule.row, np.uint64(by_block), sum_addresses)
    run_team(device, "policies", f"measure{rule.suffix}", x, parts, *arguments)
