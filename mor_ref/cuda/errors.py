"""Error sums on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Device, launch


class ErrorSums(NamedTuple):
    """The error sums of units."""

    sum: Array
    nonzero: Array
    nonfinite: Array


def no_errors(device: Device, shape: tuple[int, ...]) -> ErrorSums:
    """Return error sums of zero, to which kernels add."""
    return ErrorSums(*(device.filled(shape, np.uint64, 0) for _ in range(3)))


def addresses(device: Device, sums: ErrorSums) -> rows.Row:
    """Return the error sums of units as a structure."""
    places = {name: device.address(array) for name, array in sums._asdict().items()}
    return rows.row(rows.ERROR_SUMS, **places)


def error_steps(device: Device, x: Array, y: Array) -> dict[str, Array]:
    """Return the error of each number."""
    by_name = {name: device.empty(x.shape, np.uint32) for name in ("d", "r", "u")}
    arguments = (x, y, np.uint64(x.size))
    launch(device, "quantization", "error_steps", x.size, *arguments, *by_name.values())
    return by_name
