"""Shared exponents: blocks of 16 numbers with one exponent, and pairs with a shift."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.blocks import Rows, cells
from mor_ref.exact.step import step
from mor_ref.schemes.shared.definition import (
    BLOCK,
    LARGEST_EXPONENT,
    NAN_BLOCK,
    PAIR,
    SharedKind,
    SharedProfile,
)

_BIAS = 127


class SharedElement(NamedTuple):
    """A number of a block: its sign and magnitude, the code of both, and their value y."""

    sign: int
    magnitude: int
    code: int
    y: float


@dataclass(frozen=True)
class SharedBlock:
    """A block: its exponent, the shift of each pair, and its numbers."""

    exponent: int
    tau: list[int]
    elements: list[SharedElement]


@dataclass(frozen=True)
class SharedTensor:
    """A tensor in blocks: exponents and shifts, keyed by row and block or pair, and the numbers."""

    exponent: dict[tuple[int, int], int]
    tau: dict[tuple[int, int], int]
    elements: list[list[SharedElement]]


def shared(x: Rows, kind: SharedKind, profile: SharedProfile) -> SharedTensor:
    """Quantize a tensor (SHX-001)."""
    rows, columns = len(x), len(x[0]) if x else 0
    elements = [[SharedElement(0, 0, 0, 0.0)] * columns for _ in range(rows)]
    pairs = itertools.product(range(rows), range(-(-columns // PAIR)))
    exponent, tau = {}, dict.fromkeys(pairs, 0)
    for place, members in cells(rows, columns, (1, BLOCK)).items():
        block = shared_block([x[i][j] for i, j in members], kind, profile)
        exponent[place] = block.exponent
        for k, (i, j) in reversed([*enumerate(members)]):
            elements[i][j], tau[i, j // PAIR] = block.elements[k], block.tau[k // PAIR]
    return SharedTensor(exponent, tau, elements)


@step
def shared_block(x: list[float], kind: SharedKind, profile: SharedProfile) -> SharedBlock:
    """Quantize a block of at most 16 numbers (SHX-001)."""
    exponent = shared_exponent(x, kind, profile)
    pairs = [x[k : k + PAIR] for k in range(0, len(x), PAIR)]
    tau = [shift(exponent, pair, kind) for pair in pairs]
    elements = [
        element(number, exponent, below, kind, profile)
        for below, pair in zip(tau, pairs, strict=True)
        for number in pair
    ]
    return SharedBlock(exponent, tau, elements)


@step
def exponent_field(x: float) -> int:
    """Return the exponent field of a binary32 number (SHX-002)."""
    if not math.isfinite(x):
        return NAN_BLOCK
    return max(math.frexp(x)[1] - 1 + _BIAS, 0) if x else 0


@step
def shared_exponent(x: list[float], kind: SharedKind, profile: SharedProfile) -> int:
    """Return the exponent of a block (SHX-002, SHX-004)."""
    fields = [exponent_field(number) for number in x]
    if profile.nan_blocks and NAN_BLOCK in fields:
        return NAN_BLOCK
    exponent = max((field for field in fields if field != NAN_BLOCK), default=0)
    if kind.carries and exponent < LARGEST_EXPONENT:
        exponent += any(rounds_up_to_the_next(number, exponent, kind) for number in x)
    return exponent


@step
def rounds_up_to_the_next(x: float, exponent: int, kind: SharedKind) -> bool:
    """Return whether a positive number rounds to a power of two above its exponent (SHX-004)."""
    if not 0 < x < math.inf:
        return False
    return nearest(x, exponent, 0, kind) == 1 << kind.magnitude_bits


@step
def shift(exponent: int, pair: list[float], kind: SharedKind) -> int:
    """Return tau of a pair (SHX-003)."""
    if not kind.shifts or exponent == NAN_BLOCK:
        return 0
    fields = [exponent_field(number) for number in pair]
    return min(exponent - max(field % NAN_BLOCK for field in fields), 1)


@step
def nearest(x: float, exponent: int, tau: int, kind: SharedKind) -> int:
    """Return |x| in units of its pair, to nearest, ties to even; 0 if subnormal (SHX-005)."""
    if exponent_field(x) == 0:
        return 0
    return round(math.ldexp(abs(x), -unit_exponent(exponent, tau, kind)))


def unit(exponent: int, tau: int, kind: SharedKind) -> Fraction:
    """Return the number that a magnitude of 1 stands for (SHX-005)."""
    return Fraction(2) ** unit_exponent(exponent, tau, kind)


def unit_exponent(exponent: int, tau: int, kind: SharedKind) -> int:
    """Return the exponent of the number that a magnitude of 1 stands for (SHX-005)."""
    return exponent - _BIAS - tau + 1 - kind.magnitude_bits


@step
def magnitude(x: float, exponent: int, tau: int, kind: SharedKind) -> int:
    """Return the magnitude of a number (SHX-005)."""
    if math.isnan(x) or exponent == NAN_BLOCK:
        return 0
    most = (1 << kind.magnitude_bits) - 1
    if math.isinf(x):
        return most
    if kind.carries and x < 0 and exponent < LARGEST_EXPONENT:
        most += 1
    return min(nearest(x, exponent, tau, kind), most)


@step
def sign(x: float, exponent: int, profile: SharedProfile) -> int:
    """Return the sign of a number (SHX-005)."""
    if math.isnan(x) or exponent == NAN_BLOCK:
        return 0
    if exponent_field(x) == 0 and not profile.keeps_signs:
        return 0
    return int(math.copysign(1, x) < 0)


@step
def element(
    x: float, exponent: int, tau: int, kind: SharedKind, profile: SharedProfile
) -> SharedElement:
    """Quantize a number with the exponent of its pair (SHX-005, SHX-006)."""
    negative, size = sign(x, exponent, profile), magnitude(x, exponent, tau, kind)
    if exponent == NAN_BLOCK:
        y = math.nan
    elif math.isfinite(x):
        y = rn32_of_binary64(math.ldexp(size, unit_exponent(exponent, tau, kind)))
        y = math.copysign(y, -1 if negative else 1)
    else:
        y = x
    return SharedElement(negative, size, code(negative, size, kind), y)


@step
def code(negative: int, size: int, kind: SharedKind) -> int:
    """Return the bits of a sign and a magnitude (SHX-007)."""
    if kind.carries:
        return (-size if negative else size) % (1 << kind.code_bits)
    return negative << kind.magnitude_bits | size


@step
def packed(block: SharedBlock, kind: SharedKind) -> bytes:
    """Return the bytes of a block (SHX-007)."""
    shifts = sum(tau << j for j, tau in enumerate(block.tau))
    codes = sum(e.code << i * kind.code_bits for i, e in enumerate(block.elements))
    head = bytes([block.exponent, shifts] if kind.shifts else [block.exponent])
    return head + codes.to_bytes(BLOCK * kind.code_bits // 8, "little")


# Of golden make: a step that is most of the work, and how many of its first arguments are numbers.
REMEMBERED = {element: 1}
