"""Packed rows that differ: other orders of bits and of digits."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.schemes.levels.definition import TERNARY_DIGITS, LevelKind
from mor_ref.schemes.levels.exact import packed_row

Reference = Callable[..., Any]
_ROWS = ("levels_packed",)
_BYTE = 8


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
