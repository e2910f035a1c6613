"""Metrics on a device: which units a rung accepts."""

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.cuda.scales import Extremes


def accepted(
    device: Device, rung: rows.Row, error: ErrorSums, yardstick: ErrorSums, units: Extremes
) -> Array:
    """Return which units a metric accepts, as bytes (MOR-002 to MOR-004)."""
    marks = device.empty(units.amax.shape, np.uint8)
    count = int(marks.size)
    sums = (error.sum, error.nonzero, yardstick.sum)
    launch(device, "policies", "accepted", count, rung, *sums, *units, np.uint64(count), marks)
    return marks


def below_limits(device: Device, error: ErrorSums, limits: Array, units: Extremes) -> Array:
    """Return which units have a mean relative error below a limit of their own (MOR-002)."""
    below = device.empty(units.amax.shape, np.uint8)
    count = int(below.size)
    rung = rows.rung("mean_relative_error")
    arguments = (*error, limits, error.sum, *units, np.uint64(count), rung)
    launch(device, "policies", "decision_steps", count, *arguments, below)
    return below


def take(device: Device, rung: int, accepted: Array, error: ErrorSums, choice: Array) -> None:
    """Let the units that lose nothing, and that the metric accepts, take a rung (MOR-001)."""
    count = int(choice.size)
    arguments = (np.uint32(rung), accepted, error.nonfinite, np.uint64(count), choice)
    launch(device, "policies", "take", count, *arguments)
