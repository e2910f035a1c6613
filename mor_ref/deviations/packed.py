"""Packed codes that differ: other orders of bits, of bytes and of digits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.definitions.levels import TERNARY_DIGITS, LevelKind
from mor_ref.definitions.shared import BLOCK, SharedKind
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.exact.levels import packed_row
from mor_ref.exact.shared import SharedBlock, packed

Reference = Callable[..., Any]
_BLOCKS, _ROWS = ("shared_packed",), ("levels_packed",)
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
        replace(element, code=(element.code & (1 << top) - 1) << 1 | element.code >> top)
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


def _has_bits(_: list[int], kind: LevelKind) -> bool:
    return bool(kind.bits)


def _has_digits(_: list[int], kind: LevelKind) -> bool:
    return not kind.bits


@deviation(packed_row, where=_has_bits, rules=("LVL-008",), domain=_ROWS)
def packed_rows_from_the_highest_bit(
    reference: Reference, codes: list[int], kind: LevelKind
) -> bytes:
    """The first code of a byte is in its highest bits."""
    del reference
    word = 0
    for code in codes:
        word = word << kind.bits | code
    size = -(-len(codes) * kind.bits // _BYTE)
    return (word << size * _BYTE - len(codes) * kind.bits).to_bytes(size, "big")


@deviation(packed_row, where=_has_digits, rules=("LVL-008",), domain=_ROWS)
def packed_digits_from_the_highest(
    reference: Reference, codes: list[int], kind: LevelKind
) -> bytes:
    """The first code of three values is the highest digit of its byte."""
    five = [*codes, *[0] * (-len(codes) % 5)]
    found: bytes = reference([five[i - i % 5 + 4 - i % 5] for i in range(len(five))], kind)
    return found


@deviation(packed_row, where=_has_digits, rules=("LVL-008",), domain=_ROWS)
def packed_digits_end_with_ones(reference: Reference, codes: list[int], kind: LevelKind) -> bytes:
    """The digits after the last code are 1, the code of the level 0."""
    found: bytes = reference([*codes, *[1] * (-len(codes) % TERNARY_DIGITS)], kind)
    return found


@deviation(packed_row, where=_has_digits, rules=("LVL-008",), domain=_ROWS)
def packed_short_bytes_from_their_highest(
    reference: Reference, codes: list[int], kind: LevelKind
) -> bytes:
    """The first code of a byte is its highest digit, also of a byte with fewer than five codes."""
    starts = range(0, len(codes), TERNARY_DIGITS)
    groups = [codes[start : start + TERNARY_DIGITS][::-1] for start in starts]
    found: bytes = reference([code for group in groups for code in group], kind)
    return found


def _has_three_bits(_: list[int], kind: LevelKind) -> bool:
    return kind.bits == 3


@deviation(packed_row, where=_has_three_bits, rules=("LVL-008",), domain=_ROWS)
def packed_three_bits_in_nibbles(reference: Reference, codes: list[int], kind: LevelKind) -> bytes:
    """Codes of three bits have four bits each, two in a byte."""
    found: bytes = reference(codes, replace(kind, bits=4))
    return found


@deviation(packed_row, where=_has_digits, rules=("LVL-008",), domain=_ROWS)
def packed_digits_of_two_bits(reference: Reference, codes: list[int], kind: LevelKind) -> bytes:
    """Codes of three values have two bits each, four in a byte."""
    del reference, kind
    word = sum(code << 2 * i for i, code in enumerate(codes))
    return word.to_bytes(-(-len(codes) // 4), "little")


DEVIATIONS = tuple(value for value in tuple(globals().values()) if isinstance(value, Deviation))
