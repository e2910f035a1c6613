"""Shared exponents, many numbers at a time."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mor_ref.definitions.blocks import partition
from mor_ref.exact.block_formats import InBlocks
from mor_ref.exact.columns import halves_of
from mor_ref.schemes.shared.definition import (
    BLOCK,
    LARGEST_EXPONENT,
    NAN_BLOCK,
    PAIR,
    SharedKind,
    SharedProfile,
)
from mor_ref.schemes.shared.exact import element, shared_exponent, unit_exponent


@dataclass(frozen=True)
class Elements:
    """The numbers of a tensor, row by row."""

    sign: list[int] = field(default_factory=list)
    magnitude: list[int] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    y: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class SharedColumns:
    """The exponents of blocks, the shifts of pairs, and the numbers, row by row."""

    exponent: list[int]
    tau: list[int]
    elements: Elements


def shared(
    x: Sequence[float], shape: tuple[int, int], kind: SharedKind, profile: SharedProfile
) -> SharedColumns:
    """Quantize a tensor, whose numbers are given row by row (SHX-001)."""
    rows, columns = shape
    blocks, pairs = InBlocks(partition(shape, (1, BLOCK))), InBlocks(partition(shape, (1, PAIR)))
    pairs_of_blocks = InBlocks(partition((rows, -(-columns // PAIR)), (1, BLOCK // PAIR)))
    upper, _ = halves_of(x)
    fields = [half >> 7 & 0xFF for half in upper]  # the exponents of binary32 (SHX-002)
    exponent = [
        _exponent(numbers, of_block, kind, profile)
        for numbers, of_block in zip(blocks.blocks(x), blocks.blocks(fields), strict=True)
    ]
    above = pairs_of_blocks.spread(exponent)
    tau = [0] * len(above)
    if kind.shifts:
        tau = [_shift(*pair) for pair in zip(above, pairs.blocks(fields), strict=True)]
    spread = zip(x, fields, blocks.spread(exponent), pairs.spread(tau), strict=True)
    return SharedColumns(exponent, tau, _elements(spread, kind, profile))


def _exponent(
    numbers: Sequence[float], fields: Sequence[int], kind: SharedKind, profile: SharedProfile
) -> int:
    """Return the exponent of a block (SHX-002, SHX-004)."""
    largest = max(fields)
    if kind.carries or largest == NAN_BLOCK:
        return shared_exponent(list(numbers), kind, profile)
    return largest


def _shift(exponent: int, fields: Sequence[int]) -> int:
    """Return tau of a pair (SHX-003)."""
    if exponent == NAN_BLOCK:
        return 0
    return min(exponent - max(field % NAN_BLOCK for field in fields), 1)


def _elements(
    numbers: Iterable[tuple[float, int, int, int]], kind: SharedKind, profile: SharedProfile
) -> Elements:
    """Quantize numbers, each with its own exponent, that of its block and its shift (SHX-005)."""
    elements, bits = Elements(), kind.magnitude_bits
    largest, codes = (1 << bits) - 1, 1 << kind.code_bits
    for x, own, exponent, tau in numbers:
        if NAN_BLOCK in (own, exponent):
            special = element(x, exponent, tau, kind, profile)
            sign, size, code, y = special.sign, special.magnitude, special.code, special.y
        else:
            unit = unit_exponent(exponent, tau, kind)
            sign = int(math.copysign(1, x) < 0) if own or profile.keeps_signs else 0
            size = round(math.ldexp(abs(x), -unit)) if own else 0
            if size > largest:
                has_one_more = kind.carries and x < 0 and exponent < LARGEST_EXPONENT
                size = largest + has_one_more
            # No more than 8 bits, in units that binary32 has: exact (SHX-006).
            y = math.copysign(math.ldexp(size, unit), -1.0 if sign else 1.0)
            code = (-size if sign else size) % codes if kind.carries else sign << bits | size
        elements.sign.append(sign)
        elements.magnitude.append(size)
        elements.code.append(code)
        elements.y.append(y)
    return elements
