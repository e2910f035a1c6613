"""Metrics on a device: which units a rung accepts."""

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.cuda.scales import Extremes


def accepted(
    device: Device, rung: rows.Row, own: ErrorSums, yardstick: ErrorSums, units: Extremes
) -> Array:
    """Return which units a metric accepts, as bytes (MOR-002 to MOR-004)."""
    found = device.empty(units.amax.shape, np.uint8)
    count = int(found.size)
    sums = (own.sum, own.nonzero, yardstick.sum)
    launch(device, "policies", "accepted", count, rung, *sums, *units, np.uint64(count), found)
    return found
