"""Tensors at which the quantizers of libraries differ: next to floors, ends, turns and ties."""

import numpy as np

from mor_ref.definitions.formats import formats
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.golden.inputs.edges import Bits, bell, upper_halves
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import f32_array, numbers_of
from mor_ref.operations.random_words import random_words

_BOUNDS = (448.0, 240.0, 224.0, 57344.0)
_FLOORS = (1e-4, 1e-6, 1e-10, 1e-12, 2.0**-9, 2.0**-7, 2.0**-23)
_ENDS = (
    0,
    1,
    0x000000E0,
    0x007FFFFF,
    0x00800000,
    0x03000000,
    0x04000000,
    0x7F7FFFFF,
    0x7F800000,
    0x7FC00000,
)
_NEAR = (-1, 0, 1)  # steps from a number
_RANDOM = 40  # amaxes, with any significand
_TIES = (1.0625, 1.4375, 17.0, 232.0, 416.0, 0.0009765625)  # between two numbers of e4m3


def blocks_next_to_turns(size: Size) -> Tensor:
    """Return rows that are a block each, the amax of which is next to a floor, an end or a turn."""
    amaxes = np.concatenate([_next_to_numbers(), _of_any_significand(size)])
    rows = [_row(amax, n) for n, amax in enumerate(numbers_of(amaxes, "f32"))]
    return Tensor("turns.f32", "f32", np.stack(rows))


def _next_to_numbers() -> Bits:
    """Return amaxes next to the largest numbers of formats, and to the floors of libraries."""
    wanted = [bound * 2.0**k for bound in _BOUNDS for k in (-30, -7, 0, 3)]
    wanted += [*_FLOORS, *(product(448.0, floor) for floor in _FLOORS)]
    middle = f32_array(wanted).astype(np.int64)
    near = np.concatenate([middle + step for step in _NEAR]).astype(np.uint32)
    return np.concatenate([near, np.array(_ENDS, np.uint32)])


def _of_any_significand(size: Size) -> Bits:
    words = random_words(_RANDOM * size.factor, size.seed, 700)
    significands = (words >> np.uint64(41)).astype(np.uint32)
    exponents = (words & np.uint64(31)).astype(np.uint32) + np.uint32(112)
    return significands | exponents << np.uint32(23)


def _row(amax: float, n: int) -> Bits:
    """Return a block: its amax, numbers next to a tie under its scale, and a small one."""
    tie = _TIES[n % len(_TIES)]
    scale = quotient(amax, formats["e4m3"].largest)
    middle = int(f32_array([product(tie, scale)])[0])
    near = [max(middle + step, 0) for step in _NEAR]
    small = int(f32_array([product(amax, 0.00146484375)])[0])
    row = np.array([int(f32_array([amax])[0]), *near, small], np.uint32)
    row[1 + n % 3] |= np.uint32(0x80000000)
    return row


def blocks_of_rows(size: Size) -> Tensor:
    """Return two rows of bfloat16, each of two blocks of 128 and a part of one."""
    columns = 300
    bits = (bell(2 * columns, size.seed, 701) & np.uint32(0xFFFF0000)).reshape(2, columns)
    bits[0, [127, 128, 299]] = 0x43E00000, 0xC2280000, 0x40A00000
    return Tensor("blocks.bf16", "bf16", upper_halves(bits))
