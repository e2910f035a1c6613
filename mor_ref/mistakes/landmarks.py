"""Numbers at which wrong programs differ, from the format alone: nobody has to search for them.

Edges of exponents are crossed with edges of significands, as TestFloat does. Small multiples of
2^-149 have few significant bits, so that quotients of them are exact or tied. Next to what a scale
turns at, in every binade, the last bit decides.
"""

import itertools
import math
import struct
from collections.abc import Iterable, Iterator
from fractions import Fraction

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import Nvfp4Profile
from mor_ref.exact.arithmetic import FLT_MAX, bits_of, rn32
from mor_ref.mistakes.arithmetic import number_of

_LARGEST, _INFINITY, _NAN, _SIGN = bits_of(FLT_MAX), 0x7F800000, 0x7FC00000, 0x80000000
_FIELDS = (1, 2, 23, 24, 118, 126, 127, 128, 143, 230, 253, 254)
_ENDS = (*range(1, 25), 62, 96, 126, 127, 128, 150, 190, *range(250, 255))
_SIGNIFICANDS = (
    *(0, 1, 2, 3, 0x200000, 0x2AAAAB, 0x3FFFFF, 0x400000, 0x400001, 0x555555),
    *(0x600000, 0x600001, 0x6FFFFF, 0x700000, 0x7F8000, 0x7FFFFE, 0x7FFFFF),
)
_SMALL = (*range(1, 65), *(3 << k for k in range(5, 20)), *(1 << k for k in range(6, 23)))
_STEPS = (-4, -3, -2, -1, 0, 1, 2, 3, 4)
_NEXT_ERRORS = (  # of a tile, scaled so that its largest element becomes six, and four
    *(0xDE8A4E, 0x157C41, 0, 0x2221C3, 0x0CF603, 0x1AC537, 0x1B649E, 0x191ABD),
    *(0x199526, 0x1564F2, 0x03EAA8, 0x19B9AF, 0x04D9ED, 0x0F6BAB, 0x0A74CB, 0),
)
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


def tiles(profile: Nvfp4Profile, count: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield tiles of NVFP4 and amaxes of their tensors, as bits.

    An amax of a tile is next to where its scale turns, and elements are next to where codes do.
    """
    wholes = _amaxes_of_tensors(profile)
    scales, elements = _turns_of(formats["e4m3"]), _turns_of(formats["e2m1"])
    for k in range(count):
        whole = wholes[k % len(wholes)]
        scale = scales[(k * 37 + k // len(wholes)) % len(scales)]
        unit = Fraction(number_of(min(whole, _LARGEST))) / Fraction(profile.range)
        amax = min(_bits_next_to(6 * unit * scale, k % 5 - 2), whole)
        decode = unit * (scale if k % 3 else scale * Fraction(3, 2))
        numbers = [
            min(_bits_next_to(decode * elements[(k * 5 + j * 7) % len(elements)], j % 3 - 1), amax)
            | _SIGN * ((j * k + j) % 2)
            for j in range(15)
        ]
        place = k % 16
        yield (*numbers[:place], amax | _SIGN * (k % 2), *numbers[place:]), whole
    yield (0,) * 16, 0
    yield (0, _SIGN) * 8, bits_of(1.0)
    yield from _tiles_of_small_numbers(profile)
    for row in blocks_with_specials(16):
        if profile.scales.takes_nan or not any(bits & ~_SIGN > _INFINITY for bits in row):
            yield row, _INFINITY
            if not any(bits & ~_SIGN == _INFINITY for bits in row):
                yield row, bits_of(8.0)


def _tiles_of_small_numbers(profile: Nvfp4Profile) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield tiles at whose quotients a rounding ties: small multiples of 2^-149, and twins."""
    half = int(profile.range) // 2
    for odd in (1, 3, 5, 7, 4097, 8191):
        for amax in (half * odd, 3 * odd, 12 * odd):
            for x in {amax, 3 * odd, 3, 9}:
                if x <= amax:
                    yield (x, *(k % (x + 1) for k in range(15))), amax
    for odd in (8189, 6145):  # v * w * amax / Q ties where w is 2^-9
        yield (6 * odd, *(odd * k // 4 for k in range(1, 16))), bits_of(half * odd * 2.0**-139)
    yield from ((_tile(x), max(x, 0x3003)) for x in (0x3003, 0x2EE3))
    yield _tile(0x3F800078), 0x3F800078  # the product (1 / amax) * Q ties
    yield _tile(0x3CB55556), 0x43955555  # a tie of the product is next to one of the scale
    yield _tile(0x0001AAAB), 0x05555555  # so is a tie of block_amax / 6, under compressed_tensors
    yield _tile(0x6D921180), 0x76FF9E9F  # and one of G * (block_amax / 6)
    yield _tile(bits_of(12.0), 1, 5), bits_of(5376.0)  # x / decode ties
    # Ties of ((v * w) * amax) / Q, where the errors of six and of four are next to each other.
    yield _NEXT_ERRORS, 0x04DE8A4E
    for power in (2.0**-66, 2.0**100):  # squares that are subnormal, or that overflow
        large = bits_of(6 * power)
        yield _tile(large, large - (1 << 19)), large
    yield _tile(0x35800000, 0x35000001, 0x34000003), _LARGEST  # xs and t are subnormal
    yield (bits_of(6 * 2.0**-10),) * 16, _INFINITY  # the error of six alone is NaN
    yield (bits_of(6.0), *(bits_of(0.3),) * 15), _INFINITY  # that of four alone
    for turn in _turns_of(formats["e4m3"]):
        for step in (-1, 0, 1):
            amax = _bits_next_to(6 * turn * Fraction(2, 3), step)
            yield _tile(amax), max(amax, bits_of(profile.range))
    for whole in (
        _LARGEST,
        bits_of(2.0**100 * 6),
        bits_of(rn32(Fraction(FLT_MAX) / Fraction(profile.range))),
    ):
        numbers = (whole - (1 << 21) * k for k in range(1, 16))
        yield (whole, *numbers), min(whole + 1, _LARGEST)


def _tile(*numbers: int) -> tuple[int, ...]:
    """Return a tile that begins with some numbers, and goes on with zeros."""
    return (*numbers, *(0,) * (16 - len(numbers)))


def _amaxes_of_tensors(profile: Nvfp4Profile) -> list[int]:
    """Return amaxes of tensors as bits: edges, and the ends of what a global scale can be."""
    ends = (profile.range / FLT_MAX, profile.range * 2.0**-149, FLT_MAX / profile.range)
    near = [bits_of(rn32(Fraction(end))) + k for end in ends for k in (-1, 0, 1)]
    crossed = [
        (field << 23) + part
        for field in (1, 24, 110, 127, 128, 140, 200, 254)
        for part in (0, 1, 0x280000, 0x2AAAAB, 0x555555, 0x7FFFFF)
    ]
    return sorted({*crossed, *near, 1, 2, 1344, 4032, _LARGEST, _INFINITY})


def _turns_of(fmt: Format) -> list[Fraction]:
    """Return the positive numbers of a format, and those in the middle of two neighbours."""
    numbers = sorted(
        {
            Fraction(fmt.value(code))
            for code in range(1, fmt.sign_bit)
            if math.isfinite(fmt.value(code))
        }
    )
    return sorted(
        {*numbers, *((a + b) / 2 for a, b in itertools.pairwise([Fraction(0), *numbers]))}
    )


def _bits_next_to(exact: Fraction, steps: int) -> int:
    """Return the bits of the number some steps away from an exact one."""
    near = min(exact, Fraction(FLT_MAX))
    return min(max((bits_of(rn32(near)) if near else 0) + steps, 0), _LARGEST)


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
