"""Mixtures of formats on a device."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from mor_ref.cuda.launching import Array, Bits, Device, launch, run_team
from mor_ref.cuda.measuring import ErrorRule
from mor_ref.cuda.scales import extremes
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.scales import ScalingBlocks


class Quantizer(Protocol):
    """A representation, as kernels quantize with it."""

    def cuda(self, device: Device, x: Bits, blocks: ScalingBlocks) -> ErrorRule:
        """Return the rule of kernels."""


class Mixed(NamedTuple):
    """A tensor whose units took the candidates of the least squared error."""

    amax: Array
    errors: list[Array]
    choice: Array
    codes: Array
    y: Array


def mix(device: Device, x: Bits, candidates: Sequence[Quantizer], units: Partition) -> Mixed:
    """Quantize a tensor with the best candidate of each unit (MFQ-001).

    Codes are 0 where a candidate is not a scaled format.
    """
    amax = extremes(device, x, units).amax
    blocks = ScalingBlocks(units, "fp32", amax)
    rules = [candidate.cuda(device, x, blocks) for candidate in candidates]
    errors = [squared_errors(device, x, units, rule, amax) for rule in rules]
    choice = least(device, errors)
    shape = x.array.shape
    codes, y = device.empty(shape, np.uint8), device.empty(shape, np.uint32)
    for k, rule in enumerate(rules):
        taken = (rule.row, choice, np.uint32(k), codes, y)
        run_team(device, "mixed", f"write_mixed{rule.suffix}", x, units, *taken)
    return Mixed(amax, [squares.joined for squares in errors], choice, codes, y)


class Squares(NamedTuple):
    """Squared errors of units: sums of lower halves and of upper halves, and the lowest 64 bits."""

    low: Array
    high: Array
    joined: Array


def squared_errors(
    device: Device, x: Bits, units: Partition, rule: ErrorRule, amax: Array
) -> Squares:
    """Return the squared error of each unit (MFQ-003)."""
    squares = Squares(*(device.filled(units.grid, np.uint64, 0) for _ in range(3)))
    arguments = (rule.row, amax, squares.low, squares.high)
    run_team(device, "mixed", f"squares{rule.suffix}", x, units, *arguments)
    count = units.grid[0] * units.grid[1]
    launch(device, "mixed", "join_squares", count, np.uint64(count), *squares)
    return squares


def least(device: Device, errors: Sequence[Squares]) -> Array:
    """Return the first candidate of the least squared error of each unit (MFQ-004)."""
    first = errors[0]
    choice = device.filled(first.low.shape, np.uint8, 0)
    count = choice.shape[0] * choice.shape[1]
    low, high = (device.empty(first.low.shape, np.uint64) for _ in range(2))
    for k, squares in enumerate(errors):
        arguments = (np.uint32(k), np.uint64(count), squares.low, squares.high, low, high, choice)
        launch(device, "mixed", "take_least", count, *arguments)
    return choice
