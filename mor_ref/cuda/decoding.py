"""Decoding on a device."""

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Device, launch, runs
from mor_ref.definitions.format import Format


def decode(device: Device, codes: Array, fmt: Format) -> Array:
    """Return the binary32 bits of the values of codes."""
    values = device.empty(codes.shape, np.uint32)
    name = f"decode_u{8 * codes.itemsize}"
    arguments = (codes, np.uint64(codes.size), rows.decoding(fmt), values)
    launch(device, "decoding", name, runs(values), *arguments)
    return values
