"""Encoding on a device."""

from dataclasses import dataclass

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Bits, Device, launch, runs
from mor_ref.definitions.encoding import Rounding, SpecialCases
from mor_ref.definitions.format import Format


@dataclass(frozen=True)
class RandomBits:
    """A word for each number, and how many bits of it count."""

    words: Array
    count: int


def encode(
    device: Device,
    x: Bits,
    fmt: Format,
    rounding: Rounding,
    special: SpecialCases,
    random: RandomBits | None = None,
) -> Array:
    """Return the codes of numbers."""
    width = 1 if fmt.bits <= 8 else 2 if fmt.bits <= 16 else 4
    codes = device.empty(x.array.shape, f"u{width}")
    count, threads = np.uint64(x.size), runs(x.array)
    if fmt.is_power_of_two:
        to = rows.power_encoding(fmt, rounding, special)
        launch(
            device, "encoding", f"encode_as_powers_{x.source}", threads, x.array, count, to, codes
        )
        return codes
    to = rows.encoding(fmt, rounding, special)
    name = f"{x.source}_u{8 * width}"
    if random is None:
        launch(device, "encoding", f"encode_{name}", threads, x.array, count, to, codes)
    else:
        bits = np.int32(random.count)
        arguments = (x.array, random.words, bits, count, to, codes)
        launch(device, "encoding", f"encode_at_random_{name}", threads, *arguments)
    return codes
