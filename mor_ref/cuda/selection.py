"""Selections of numbers on a device."""

import numpy as np

from mor_ref.cuda.launching import Array, Bits, Device, launch

_SHIFTS = (24, 16, 8, 0)  # of the digits of a threshold


def by_rank(device: Device, x: Bits, share: float) -> Array:
    """Return 1 for each number above the threshold (SEL-001)."""
    selected, count = device.empty(x.array.shape, np.uint8), np.uint64(x.size)
    if not x.size:
        return selected
    place = min(int(x.size * share), x.size - 1)
    state = device.upload(np.array([place, 0], np.uint64))
    counts = device.filled((256,), np.uint64, 0)
    for shift in _SHIFTS:
        arguments = (x.array, count, state, np.uint32(shift), counts)
        launch(device, "selection", f"rank_counts_{x.source}", x.size, *arguments)
        launch(device, "selection", "rank_digit", 1, state, counts)
    name = f"selected_by_rank_{x.source}"
    launch(device, "selection", name, x.size, x.array, count, state, selected)
    return selected


def by_column(device: Device, x: Bits, limit: float) -> Array:
    """Return 1 for each number of a column with an outlier (SEL-002)."""
    selected, columns = device.empty(x.array.shape, np.uint8), x.array.shape[1]
    if not x.size:
        return selected
    sides = np.uint64(x.size), np.uint64(columns)
    has_outlier = device.filled((columns,), np.uint32, 0)
    least = np.float32(limit).view(np.uint32)
    name = f"outlier_columns_{x.source}"
    launch(device, "selection", name, x.size, x.array, *sides, least, has_outlier)
    launch(device, "selection", "selected_by_column", x.size, has_outlier, *sides, selected)
    return selected
