"""Packed blocks that differ: other orders of bits, of bytes and of parts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.schemes.shared.definition import BLOCK, SharedKind
from mor_ref.schemes.shared.exact import SharedBlock, packed

Reference = Callable[..., Any]
_BLOCKS = ("shared_packed",)
_BYTE = 8


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_codes_first(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The exponent and the shifts follow the codes."""
    found: bytes = reference(block, kind)
    head = 1 + kind.shifts
    return found[head:] + found[:head]


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_blocks_from_the_highest_bit(
    reference: Reference, block: SharedBlock, kind: SharedKind
) -> bytes:
    """The first code is in the highest bits of the first byte of codes."""
    found: bytes = reference(block, kind)
    codes = [element.code for element in block.elements]
    word = 0
    for code in [*codes, *[0] * (BLOCK - len(codes))]:
        word = word << kind.code_bits | code
    head = 1 + kind.shifts
    return found[:head] + word.to_bytes(len(found) - head, "big")


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_codes_backwards(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The last code is in the lowest bits."""
    found: bytes = reference(replace(block, elements=block.elements[::-1]), kind)
    return found


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_bytes_backwards(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The highest byte of the codes comes first."""
    found: bytes = reference(block, kind)
    head = 1 + kind.shifts
    return found[:head] + found[head:][::-1]


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_signs_in_the_lowest_bit(
    reference: Reference, block: SharedBlock, kind: SharedKind
) -> bytes:
    """The sign of a code is its lowest bit."""
    top = kind.code_bits - 1
    moved = [
        element._replace(code=(element.code & (1 << top) - 1) << 1 | element.code >> top)
        for element in block.elements
    ]
    found: bytes = reference(replace(block, elements=moved), kind)
    return found


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_words_swapped(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The codes are in words of 16 bits, each with the highest byte first."""
    found: bytes = reference(block, kind)
    head, codes = found[: 1 + kind.shifts], found[1 + kind.shifts :]
    return head + bytes(codes[i ^ 1] for i in range(len(codes)))


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_short_blocks_repeat(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """A block of fewer than 16 codes is filled with its last one, not with 0."""
    rest = [block.elements[-1]] * (BLOCK - len(block.elements))
    found: bytes = reference(replace(block, elements=[*block.elements, *rest]), kind)
    return found


def _has_shifts(_: SharedBlock, kind: SharedKind) -> bool:
    return kind.shifts


@deviation(packed, where=_has_shifts, rules=("SHX-007",), domain=_BLOCKS)
def packed_shifts_from_the_highest_bit(
    reference: Reference, block: SharedBlock, kind: SharedKind
) -> bytes:
    """The first shift is in the highest bit."""
    tau = [*block.tau, *[0] * (_BYTE - len(block.tau))][::-1]
    found: bytes = reference(replace(block, tau=tau), kind)
    return found


@deviation(packed, where=_has_shifts, rules=("SHX-007",), domain=_BLOCKS)
def packed_shifts_inverted(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The bit of a pair is 1 if the pair has no shift."""
    found: bytes = reference(block, kind)
    return bytes([found[0], 255 - found[1]]) + found[2:]


@deviation(packed, where=_has_shifts, rules=("SHX-007",), domain=_BLOCKS)
def packed_shifts_padded_with_one(
    reference: Reference, block: SharedBlock, kind: SharedKind
) -> bytes:
    """The shifts of pairs that a block lacks are 1."""
    tau = [*block.tau, *[1] * (_BYTE - len(block.tau))]
    found: bytes = reference(replace(block, tau=tau), kind)
    return found


@deviation(packed, where=_has_shifts, rules=("SHX-007",), domain=_BLOCKS)
def packed_shifts_first(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The shifts come before the exponent."""
    found: bytes = reference(block, kind)
    return found[1:2] + found[:1] + found[2:]


@deviation(packed, where=_has_shifts, rules=("SHX-007",), domain=_BLOCKS)
def packed_shifts_last(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The shifts follow the codes."""
    found: bytes = reference(block, kind)
    return found[:1] + found[2:] + found[1:2]


@deviation(packed, rules=("SHX-007",), domain=_BLOCKS)
def packed_exponent_last(reference: Reference, block: SharedBlock, kind: SharedKind) -> bytes:
    """The exponent follows the codes, and shifts come first."""
    found: bytes = reference(block, kind)
    return found[1:] + found[:1]


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
