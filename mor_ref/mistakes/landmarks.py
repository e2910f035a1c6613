"""Numbers at which wrong programs differ, from the format alone: nobody has to search for them.

Edges of exponents are crossed with edges of significands, as TestFloat does. Small multiples of
2^-149 have few significant bits, so that quotients of them are exact or tied. Next to what a scale
turns at, in every binade, the last bit decides.
"""

import itertools
import math
import struct
from collections.abc import Iterable, Iterator

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact.arithmetic import FLT_MAX, bits_of

_LARGEST, _INFINITY, _NAN, _SIGN = bits_of(FLT_MAX), 0x7F800000, 0x7FC00000, 0x80000000
_FIELDS = (1, 2, 23, 24, 118, 126, 127, 128, 143, 230, 253, 254)
_ENDS = (*range(1, 25), 62, 96, 126, 127, 128, 150, 190, *range(250, 255))
_SIGNIFICANDS = (
    *(0, 1, 2, 3, 0x200000, 0x2AAAAB, 0x3FFFFF, 0x400000, 0x400001, 0x555555),
    *(0x600000, 0x600001, 0x6FFFFF, 0x700000, 0x7F8000, 0x7FFFFE, 0x7FFFFF),
)
_SMALL = (*range(1, 65), *(3 << k for k in range(5, 20)), *(1 << k for k in range(6, 23)))
_STEPS = (-4, -3, -2, -1, 0, 1, 2, 3, 4)
_NEAR = (-1, 0, 1, 1 << 13)  # the last is more than binary32 tells apart, and less than bfloat16


def amaxes(fmt: Format) -> list[int]:
    """Return amaxes of blocks that are scaled into a format, as bits of binary32."""
    return sorted({0, *_crossed(), *_SMALL, *_turns(fmt)})


def pairs_of_amaxes(fmt: Format) -> list[tuple[int, int]]:
    """Return amaxes of groups and of blocks in them, as bits: equal, next to each other, and apart.

    A block whose amax is next to that of its group, or next to it in a lower binade, has an ideal
    scale whose mantissa is next to the shared one.
    """
    blocks = amaxes(fmt)
    found = dict.fromkeys((amax, amax) for amax in (*blocks, _LARGEST))
    for amax, binades in itertools.product(blocks[::11], (0, 1, 7)):
        for step in _STEPS:
            found[amax + (binades << 23) + step, amax] = None
    groups = [(field << 23) + significand for field in (127, 254) for significand in _SIGNIFICANDS]
    significands = (0, *_SIGNIFICANDS[:4], *(bits_of(fmt.largest) + k & 0x7FFFFF for k in _STEPS))
    for group, field, significand in itertools.product(groups, (0, 1, 120), significands):
        found[group, (field << 23) + significand] = None
    found |= dict.fromkeys((group, 0) for group in (*groups, 1, 1 << 23))
    return [(group, block) for group, block in found if block <= group <= _LARGEST]


def blocks(fmt: Format, rule: str) -> Iterator[tuple[int, ...]]:
    """Yield blocks of MX, as bits: an amax next to where a scale turns, and smaller numbers."""
    turns = {0, bits_of(fmt.largest) & 0x7FFFFF, SCALE_RULES[rule].up_from_of(fmt) & 0x7FFFFF}
    found = {_INFINITY, *_crossed(), *_SMALL}
    for turn in turns:
        found |= {*_next_to(turn, _ENDS, _NEAR), *_subnormal_next_to(turn)}
    yield 0, _SIGN, 0, 0
    for place, amax in enumerate(sorted(found)):
        below = max(amax - (place % 40 << 22) - place % 3, 0)
        yield amax, below | _SIGN, (_SIGN | 3, 1)[place % 2], below // 2


def blocks_with_specials(width: int) -> Iterator[tuple[int, ...]]:
    """Yield blocks, as bits, with a NaN in each place, and with infinities of both signs."""
    ordinary = [bits_of(1.5 + k % 7) | k % 2 * _SIGN for k in range(width)]
    specials = [{0: _INFINITY, 1: _INFINITY | _SIGN}, dict.fromkeys(range(width), _NAN)]
    for place in range(width):
        specials += [
            {place: special | sign} for special in (_NAN, _INFINITY) for sign in (0, _SIGN)
        ]
        specials += [{place: _NAN, (place + 2) % width: _INFINITY}]
    for those in specials:
        yield tuple(those.get(place, bits) for place, bits in enumerate(ordinary))


def _next_to(
    significand: int, fields: Iterable[int] = range(1, 255), steps: Iterable[int] = _STEPS
) -> Iterator[int]:
    """Yield the numbers next to one with a significand, in binades of some exponent fields."""
    for field, step in itertools.product(fields, steps):
        bits = (field << 23) + significand + step
        if 0 < bits <= _LARGEST:
            yield bits


def _subnormal_next_to(significand: int) -> Iterator[int]:
    """Yield the subnormal numbers next to one with a significand, in every binade."""
    for shift, step in itertools.product(range(1, 24), _NEAR):
        yield max(((1 << 23) + significand >> shift) + step, 0)


def _crossed() -> Iterator[int]:
    for field, significand in itertools.product(_FIELDS, _SIGNIFICANDS):
        yield (field << 23) + significand


def _turns(fmt: Format) -> Iterator[int]:
    """Yield the numbers next to 2^k times the largest number of a format, in every binade."""
    yield from _next_to(bits_of(fmt.largest) & 0x7FFFFF)


# ---------------------------------------------------------------------- numbers to encode

_IN_BINARY64 = struct.Struct("<d")
_FEW_BITS = (10, 13, 22, 40)  # more than bfloat16, binary16, half of binary64 and binary32 hold
_COUNTS = (0, 1, 8, 24, 32)  # of random bits: the fraction is next to one unit of them
_EXPONENTS = (-74, -63, -7, 13, 16, 63)  # halves of those at the ends of sources
_NANS = (1 << 51, 1 << 51 | 1 << 29, 1 << 29, 1 << 44, (1 << 51) - (1 << 29), (1 << 52) - 1)


def numbers(fmt: Format) -> list[int]:
    """Return numbers to encode to a format, as bits of binary64.

    They are the numbers of the format, the ties of neighbours, and what is next to both by as
    little as some format can hold; those beyond the largest number and below the smallest; powers
    of two, infinities and NaN.
    """
    found = dict.fromkeys((0.0, math.inf, *map(fmt.value, _codes_of(fmt))))
    for number in _between(fmt):
        near = (number * (1 + sign * 2.0**-bits) for bits in _FEW_BITS for sign in (1, -1))
        found |= dict.fromkeys((number, *near))
    magnitudes = [*map(_bits_in_binary64, found), *(0x7FF << 52 | nan for nan in _NANS)]
    return [bits | sign << 63 for bits in magnitudes for sign in (0, 1)]


def _bits_in_binary64(x: float) -> int:
    return int.from_bytes(_IN_BINARY64.pack(x), "little")


def _between(fmt: Format) -> Iterator[float]:
    """Yield ties of a format, numbers at its ends, and others far beyond and below."""
    values = [fmt.value(code) for code in _codes_of(fmt)]
    yield from ((value + above) / 2 for value, above in itertools.pairwise(values))
    largest, step = fmt.largest, fmt.largest - fmt.value(fmt.largest_code - 1)
    yield from (largest + count * step / 2 for count in (1, 2, 3, 4, 8))
    smallest = fmt.value(0) or fmt.value(1)
    yield from (smallest * share for share in (0.75, 0.5, 0.375, 0.25))
    yield from (math.ldexp(smallest * (1 - 2.0**-24), -count) for count in _COUNTS)
    yield from (math.ldexp(x, 2 * exponent) for x in (1.0, 1.5) for exponent in _EXPONENTS)


def codes(fmt: Format) -> list[int]:
    """Return all codes of a narrow format, or those at the edges of exponents in a wide one."""
    if fmt.bits <= 8:
        return [*range(fmt.code_count)]
    beyond = range(fmt.largest_code + 1, fmt.sign_bit, (fmt.sign_bit - fmt.largest_code) // 16 or 1)
    return [code | sign for code in (*_codes_of(fmt), *beyond) for sign in (0, fmt.sign_bit)]


def _codes_of(fmt: Format) -> list[int]:
    """Return the codes of all magnitudes, or those at the edges of exponents in a wide format."""
    if fmt.bits <= 8:
        return [*range(fmt.largest_code + 1)]
    hidden = 1 << fmt.mantissa_bits
    top = fmt.largest_code >> fmt.mantissa_bits
    fields = sorted({0, 1, 2, top // 2, top // 2 + 1, top - 1, top})
    edges = (0, 1, 2, 3, hidden // 2, hidden - 2, hidden - 1)
    codes = {(field << fmt.mantissa_bits) + edge for field in fields for edge in edges}
    return sorted(code for code in codes if code <= fmt.largest_code)
