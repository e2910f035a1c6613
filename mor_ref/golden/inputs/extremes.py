"""Tensors with something at an extreme: magnitudes, places of an amax, counts, and kinds of NaN."""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.edges import bell
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites.tensors import Tensor

# Next to where bfloat16 rounds to infinity, and to the largest of binary32.
TOPS = (0x7F7F0001, 0x7F7F4000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7F8001, 0x7F7FFFFF)
_BESIDE = (0x7F000001, 0x7F333333, 0x7F4CCCCD, 0xFF400000, 0x7E000000)
_SIGNALLING = (0x7F81, 0xFF81, 0x7FBF, 0xFFA5)
_ONE, _NAN, _INFINITY = 0x3F80, 0x7FC0, 0xFF80


def tops() -> Iterator[Tensor]:
    """Rows whose amax is next to the largest numbers that there are."""
    for top in TOPS:
        x = np.array([[top, *_BESIDE, top | 0x80000000, 0x7E000000]], np.uint32)
        yield Tensor(f"top_{top:08x}.f32", "f32", x)


def largest_at_the_end(size: Size) -> Tensor:
    """More numbers than a thread block has threads, the largest last."""
    x = bell(33 * 33, size.seed, 175).reshape(33, 33) & np.uint32(0xBF7FFFFF)
    x[-1, -1] = 0xC2C90FDB
    return Tensor("largest_at_the_end.f32", "f32", x)


def many_lost() -> Tensor:
    """256 numbers that are none, which is 0 in eight bits."""
    x = np.full((16, 32), _ONE, np.uint16)
    x[::2, ::2], x[1::2, 1::2] = _NAN, _INFINITY
    return Tensor("many_lost.bf16", "bf16", x)


def signalling() -> Tensor:
    """NaNs of bfloat16 that conversions would make quiet."""
    x = np.full((4, 16), _ONE, np.uint16)
    x[1, 3:7] = _SIGNALLING
    return Tensor("signalling.bf16", "bf16", x)


def nearly_tied() -> Iterator[Tensor]:
    """Tensors whose error sums under e4m3 and e5m2 differ by one, as a search has found them.

    448 makes the scales powers of two. The smallest numbers are lost in e4m3 and exact in e5m2;
    those between 1.0625 and 1.125 err more in e5m2; and the last number moves one sum by a step.
    """
    for small, step, last in (
        (5, 3122, 0x3F8BAD67), (5, 3122, 0x3F8BAD68), (6, 3854, 0x3F8A1217), (6, 3854, 0x3F8A1218),
    ):  # fmt: skip
        between = 0x3F880001 + step * np.arange(126 - small, dtype=np.uint32)
        numbers = [0x43E00000, *[0x3A000000] * small, *between.tolist(), last]
        x = np.array(numbers, np.uint32).reshape(8, 16)
        yield Tensor(f"nearly_tied_{last:08x}.f32", "f32", x)
