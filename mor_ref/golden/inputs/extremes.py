"""Tensors at an extreme: magnitudes, the place of an amax, counts, kinds of NaN, and near ties."""

from collections.abc import Iterable, Iterator

import numpy as np

from mor_ref.golden.inputs.edges import bell, upper_halves
from mor_ref.golden.inputs.every_code import SPECIALS
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size

# Next to the numbers that bfloat16 rounds to infinity, and next to the largest binary32 number.
TOPS = (0x7F7F0001, 0x7F7F4000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7F8001, 0x7F7FFFFF)
SOME_TOPS = (0x7F7F8000, 0x7F7FFFFF)  # a tie of bfloat16, and the largest
HUGE = (0x7F333333, 0x7F4CCCCD)  # above 2^127
_BELOW_TOPS = (0x7F000001, *HUGE, 0xFF400000, 0x7E000000)
_SIGNALLING = (0x7F81, 0xFF81, 0x7FBF, 0xFFA5)
_ONE, _NAN, _INFINITY = 0x3F80, 0x7FC0, 0xFF80


def tops(chosen: Iterable[int] = TOPS) -> Iterator[Tensor]:
    """Yield rows whose amax is next to the largest numbers of bfloat16 and binary32."""
    for top in chosen:
        x = np.array([[top, *_BELOW_TOPS, top | 0x80000000, 0x7E000000]], np.uint32)
        yield Tensor(f"top_{top:08x}.f32", "f32", x)


def rows_of_tops() -> Tensor:
    """Return the rows of `tops` as one tensor, in which each row is a block."""
    return Tensor("tops.f32", "f32", np.concatenate([tensor.x for tensor in tops()]))


def largest_at_the_end(size: Size) -> Tensor:
    """Return more numbers than a thread block has threads; the largest comes last."""
    x = bell(33 * 33, size.seed, 175).reshape(33, 33) & np.uint32(0xBF7FFFFF)
    x[-1, -1] = 0xC2C90FDB
    return Tensor("largest_at_the_end.f32", "f32", x)


def many_elements(size: Size) -> Tensor:
    """Return a tensor so large that T times the count of its numbers takes more than 32 bits."""
    x = upper_halves(bell(107 * 107, size.seed, 173).reshape(107, 107))
    return Tensor("many.bf16", "bf16", np.maximum(x, np.uint16(0x0080)))


def beyond_bf16(size: Size) -> Tensor:
    """Return units that stay bfloat16: it rounds some numbers to infinity, and others are NaN."""
    x = bell(9 * 40, size.seed, 170).reshape(9, 40) & np.uint32(0x80FFFFFF) | np.uint32(0x7E000000)
    for place, bits in (
        ((0, 0), 0x7F7F4000), ((0, 20), 0xFF7FFFFF), ((8, 1), 0x7F800000), ((8, 20), 0xFFC12345),
    ):  # fmt: skip
        x[place] = bits
    return Tensor("beyond_bf16.f32", "f32", x)


def beyond_scales(size: Size) -> Tensor:
    """Return numbers down to the smallest, in blocks whose ideal scales are above 2^127."""
    bits = bell(9 * 40, size.seed, 171).reshape(9, 40)
    smaller = (np.arange(bits.size, dtype=np.uint32) % 24).reshape(bits.shape)
    significands = bits & np.uint32(0x7FFFFF) | np.uint32(0x800000)
    x = significands >> smaller | bits & np.uint32(0x80000000)
    return Tensor("beyond_scales.f32", "f32", x)


def many_lost() -> Tensor:
    """Return 256 non-finite elements: the count is 0 in eight bits."""
    x = np.full((16, 32), _ONE, np.uint16)
    x[::2, ::2], x[1::2, 1::2] = _NAN, _INFINITY
    return Tensor("many_lost.bf16", "bf16", x)


def signalling() -> Tensor:
    """Return NaNs of bfloat16 that conversions would make quiet."""
    x = np.full((4, 16), _ONE, np.uint16)
    x[1, 3:7] = _SIGNALLING
    return Tensor("signalling.bf16", "bf16", x)


def lost_by_e5m2() -> Tensor:
    """Return units that e5m2 with a scale of e8m0 rounds to infinity, and e4m3 does not.

    e4m3 is exact in the first 16 columns. In the others it loses small numbers that e5m2 keeps.
    """
    x = np.full((8, 32), 0x7F70, np.uint16)
    x[:, 17:] = 0x7200
    return Tensor("lost_by_e5m2.bf16", "bf16", x)


def specials(source: str) -> Tensor:
    """Return a row of infinities and NaNs of both signs, quiet and signalling, and one of zeros."""
    numbers = SPECIALS[source]
    row = np.concatenate([numbers, np.zeros_like(numbers, shape=1), numbers[::-1]])
    return Tensor(f"specials.{source}", source, np.stack([row, np.zeros_like(row)]))


def overflowing_y() -> Tensor:
    """Return a finite unit whose largest number e4m3 restores to an infinity."""
    x = np.full((8, 16), 0x7F600000, np.uint32)  # 448 * 2^119
    x[0, 0] = 0x7F7FFFFF
    return Tensor("overflowing_y.f32", "f32", x)


def one_unit_of_four() -> Tensor:
    """Return two units in each direction; all numbers of one unit are NaN."""
    x = np.full((16, 32), _ONE, np.uint16)
    x[:8, 16:] = _NAN
    return Tensor("one_of_four.bf16", "bf16", x)


def sums_beyond_32_bits() -> Tensor:
    """Return a row that e5m2 is better for, unless error sums are compared in 32 bits.

    The error sum of e4m3 is 520 * 2^23, from numbers that become 0: its lower 32 bits are 8 * 2^23.
    The error sum of e5m2 is some 11 * 2^23, from numbers that become 1.
    """
    x = np.array([[448.0, *[2.0**-11] * 520, *[1.125] * 100]], np.float32)
    return Tensor("sums_beyond_32_bits.bf16", "bf16", upper_halves(x.view(np.uint32)))


def ties_of_bf16() -> Tensor:
    """Return a unit that stays bfloat16 because of a NaN, with ties of bfloat16."""
    x = np.array([[0x3F808000, 0xBF808000, 0x3F818000, 0x7FC00000]], np.uint32)
    return Tensor("ties_of_bf16.f32", "f32", x)


def in_binary32(narrow: Tensor) -> Tensor:
    """Return a tensor of bfloat16 as one of binary32."""
    x = narrow.x.astype(np.uint32) << np.uint32(16)
    return Tensor(narrow.name.replace("bf16", "f32"), "f32", x)


def nearly_tied() -> Iterator[Tensor]:
    """Yield tensors whose error sums in e4m3 and e5m2 differ by 1; a search has found them.

    448 makes the scales powers of two. The smallest numbers become 0 in e4m3 and are exact in e5m2.
    Numbers between 1.0625 and 1.125 have larger errors in e5m2. The last number moves one sum by 1.
    """
    for small, step, last in (
        (5, 3122, 0x3F8BAD67), (5, 3122, 0x3F8BAD68), (6, 3854, 0x3F8A1217), (6, 3854, 0x3F8A1218),
    ):  # fmt: skip
        between = 0x3F880001 + step * np.arange(126 - small, dtype=np.uint32)
        numbers = [0x43E00000, *[0x3A000000] * small, *between.tolist(), last]
        x = np.array(numbers, np.uint32).reshape(8, 16)
        yield Tensor(f"nearly_tied_{last:08x}.f32", "f32", x)
