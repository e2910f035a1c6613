"""Launching kernels: the protocol of a device, the arguments, and the number of threads.

All arrays are bit patterns on a device: a GPU, or a CPU in its place. No result of a kernel is
copied to the host.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.definitions.blocks import Partition

Array = Any  # of the device
THREADS = 256
_MOST_BLOCKS = 1 << 13  # more than any GPU has at once, and few enough that add to one sum


class Device(Protocol):
    """Where kernels run."""

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array with undefined contents."""

    def filled(self, shape: tuple[int, ...], dtype: Any, byte: int) -> Array:
        """Return an array with this value in every byte."""

    def upload(self, array: np.ndarray) -> Array:
        """Return an array of the host, on the device."""

    def download(self, array: Array) -> np.ndarray:
        """Return an array of the device, on the host."""

    def address(self, array: Array) -> int:
        """Return the address of an array."""

    def launch(
        self, program: str, kernel: str, blocks: int, threads: int, arguments: Sequence[Any]
    ) -> None:
        """Run a kernel."""


# The types that the bit patterns of numbers are stored in.
WORDS = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}
Target = Literal["f32", "bf16"]  # the type of dequantized numbers


class Bits(NamedTuple):
    """Numbers on a device: their bit patterns, and the format of these."""

    array: Array
    source: str

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.array.size)


def launch(device: Device, program: str, kernel: str, threads: int, *arguments: Any) -> None:
    """Run a kernel on enough blocks for `threads` threads; each loops over further elements."""
    blocks = min(max(1, -(-threads // THREADS)), _MOST_BLOCKS)
    device.launch(program, kernel, blocks, THREADS, arguments)


def runs(array: Array) -> int:
    """Return how many vectors of 16 bytes an array has; a thread takes one at once."""
    return -(-int(array.nbytes) // 16)


def run_team(
    device: Device, program: str, kernel: str, x: Bits, parts: Partition, *arguments: Any
) -> None:
    """Run a kernel with a team of threads for each piece of a block."""
    cut = rows.cut(parts)
    team = rows.team(parts)
    count = parts.grid[0] * parts.grid[1] * int(cut["pieces_down"][0] * cut["pieces_across"][0])
    name = f"{kernel}_{x.source}_{team}"
    launch(device, program, name, count * team, x.array, cut, *arguments)
