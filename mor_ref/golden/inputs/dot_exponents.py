"""Rows of dot products in which the exponent of one term decides which bits others keep."""

import math
from collections.abc import Iterator

from mor_ref.definitions.dot import GROUP, ROUNDED_ONCE, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.encoding import encode
from mor_ref.golden.inputs.dot_rows import (
    HIGHEST,
    Pairs,
    Row,
    exponents_at_most,
    has_all,
    powers,
)

_SMALL = {"f32": 2.0**-60, "f16": 2.0**-24}  # a c that most profiles cut next to a large exponent
_HALF = (0.5, 0.5)
_CANCELS: Pairs = [(1.0, 1.0), (-1.0, 1.0)]
Codes = tuple[int, int]  # of two scales: a block of a, and a block of b


def rows_of_exponents(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield rows with zeros in one operand, small and large sums, and a subnormal c."""
    yield from _zeros_of_one(profile, of)
    yield from _at_ends(profile)
    if profile.fraction_bits and profile.family != "gst_fdpa":
        yield from _largest_sums(profile, of)
        yield from _between_units(profile, of)
    if profile.family in ROUNDED_ONCE:
        yield from _at_e0(profile, of)
        yield from _with_subnormal_c(profile, of)


def _zeros_of_one(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield the largest number times zero, with a small c or a small product."""
    for n, large in enumerate(of):
        pair = (large.largest, 0.0) if n == 0 else (0.0, large.largest)
        yield [pair], _SMALL[profile.start]
        exponent = math.frexp(large.largest)[1] - 1 + of[1 - n].smallest_exponent
        a, b = powers(exponent - profile.fraction_bits - 1, of)
        yield [pair, (1.5 * a, b)], 0.0  # in f16, the sum rounds up to the smallest number


def _largest_sums(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield chunks in which all terms have the largest significand and one exponent.

    No cut sum is larger. In gst_fdpa only scales have exponents: there the chunks have the largest
    numbers, without c.
    """
    is_grouped = profile.family == "gst_fdpa"
    bits = [min(fmt.mantissa_bits, 10) for fmt in of]  # f32 can be TF32
    a, b = (fmt.largest if is_grouped else 2 - 2.0**-n for n, fmt in zip(bits, of, strict=True))
    yield [(a, b)] * profile.chunk, 0.0 if is_grouped else a
    yield [(-a, b)] * profile.chunk, 0.0


def _between_units(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield a negative term, c and sum, each nearer to the unit below, and a tiny sum.

    Rounding toward zero loses 3/4 of a unit of each. Large products cancel next to the term and c.
    If the formats lack such a term, c is large.
    """
    a, b = (math.ldexp(1.0, top) for top in exponents_at_most(HIGHEST, of))
    top, bits = math.frexp(a * b)[1] - 1, profile.fraction_bits
    x, y = powers(top - bits - 1, of)
    row: Row = [(a, b), (-a, b), (-1.5 * x, y)], 0.0
    if has_all(row, of):
        yield row
    elif profile.result == "f32":
        yield [(-1.5, 0.5)] * profile.chunk, math.ldexp(1.0, bits)
    yield [(a, b), (-a, b)], math.ldexp(-1.75, top - bits)
    half = top + 1 - profile.result_bits
    x, y = powers(half, of)
    yield [(-a, b)] * 4, math.ldexp(-1.5, half)
    if profile.chunk > 4:
        yield [*[(-a, b)] * 4, (-1.5 * x, y)], 0.0
    yield _tiny_sum(profile, of), 0.0


def _tiny_sum(profile: DotProfile, of: tuple[Format, Format]) -> Pairs:
    """Return a negative product that rounds to zero: half of the smallest number."""
    to = formats[profile.result]
    x, y = powers(to.smallest_exponent - to.mantissa_bits - 1, of)
    return [(-x, y)]


def _at_ends(profile: DotProfile) -> Iterator[Row]:
    """Yield sums that overflow or nearly do, and a tiny negative one.

    CDNA 1 has no tiny one: the result is -0, unless zeros fill the row up to a whole instruction.
    """
    if profile.result == "f16":
        for b in (4.0, 2.0):
            yield [(4.0, b)], 65504.0
    large, tiny = 2.0**64, 2.0**-100
    yield [(large, large)], 0.0
    yield [(-large, large)], 0.0
    if profile.family == "exact":  # above a tie by 2^-266
        yield [(1.0, 1.0), (2.0**-12, 2.0**-12), (2.0**-133, 2.0**-133)], 0.0
    if profile.family != "e_fdpa":
        yield [(-tiny, tiny)], 0.0
    else:  # above a tie by a bit that a sum without c loses
        yield [(2.0**-12, 2.0**-12), (2.0**-24, 2.0**-24)], 1.0
    if profile.family == "tr_fdpa":  # a tie but for the last of 32 bits behind the exponent
        half = 2.0**-12
        yield [(-half, half), (-half, half / 2), (2.0**-16, 2.0**-16)], 1.0


def rows_across_chunks(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield 1 and small products in the other half of its chunk, in the next chunk, or in both.

    Then come a c that the first chunk cancels, with a small product in the second chunk, and a tiny
    sum in the second chunk.
    """
    exponent = -6 if profile.result == "f16" else -12
    one, bit, zero = (1.0, 1.0), (1.5 * 2.0**exponent, 2.0**exponent), (0.0, 0.0)
    half, chunk = profile.chunk // 2, profile.chunk
    for places in ((half,), (chunk,), (chunk - 1, chunk), (chunk, 2 * chunk - 1)):
        pairs = [one, *[zero] * (2 * chunk - 1)]
        for k in places:
            pairs[k] = pairs[k] if k == 0 else bit
        yield pairs, 0.0
    a, b = (math.ldexp(1.0, top) for top in exponents_at_most(HIGHEST, of))
    x, y = powers(math.frexp(a * b)[1] - 2 - profile.result_bits, of)
    yield [(-a, b), *[zero] * (chunk - 1), (1.5 * x, y)], a * b
    if profile.family in ROUNDED_ONCE:
        yield [*[zero] * chunk, *_tiny_sum(profile, of)], 0.0
    if profile.result == "f16":  # above a tie by a bit that a sum of the second chunk alone loses
        others = [(2.0**-5, 2.0**-6), (2.0**-12, 2.0**-12), *[zero] * (chunk - 2)]
        yield [one, *[zero] * (chunk - 1), *others], 0.0


def _at_e0(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield a sum with the lowest bit that e0 keeps, and one with the highest bit that e0 cuts.

    In binary32 the lowest bit makes the smallest number 0; in f16 it decides a tie.
    """
    smallest = formats[profile.result].smallest_exponent - profile.kept_bits
    is_f16 = profile.result == "f16"
    first = powers(formats["f16"].smallest_exponent - 11 if is_f16 else smallest, of)
    for low in (0, 1):
        a, b = powers(profile.zero_exponent - profile.fraction_bits - low, of)
        yield [first, (a, b if is_f16 else -b)], 0.0


def _with_subnormal_c(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield a subnormal c and a product: its bit is the highest one that the exponent of c cuts."""
    smallest = formats[profile.start].smallest_exponent
    a, b = powers(smallest - profile.fraction_bits - 1, of)
    if profile.start == "f16":
        yield [powers(smallest - 11, of), (a, b)], 2.0 ** (smallest - 9)
    else:
        yield [(a, -b)], 2.0 ** (smallest - 4)


def scaled_rows_of_exponents(
    profile: DotProfile, of: tuple[Format, Format], scales: Format
) -> Iterator[tuple[Row, Codes, Codes]]:
    """Yield rows in which exponents decide, with scales of the first block and of the others."""
    if profile.family == "gst_fdpa":
        largest = 1 if scales.is_power_of_two else 2 - 2.0**-scales.mantissa_bits
        codes = encode(largest, scales), encode(largest, scales)
        yield from ((row, codes, codes) for row in _largest_sums(profile, of))
        yield from _groups(scales)
    if scales.name == "f32":  # the product of both scales is subnormal
        yield ([(2.0, 2.0)] * 8, 0.0), ((scales.bias - 64) << scales.mantissa_bits,) * 2, (0, 0)
    if scales.is_power_of_two and profile.needs_scales:
        yield ([(-1.0, 1.0)], 0.0), _halves(128, scales), _halves(0, scales)  # overflows
        smallest = (0, 2 * scales.bias)  # 2^-127 and its reciprocal
        yield (_CANCELS, 2.0**-profile.fraction_bits), smallest, _halves(0, scales)
        yield from _scaled_at_e0(profile, of, scales)
    if scales.is_power_of_two and profile.family == "st_fdpa":
        yield from _after_a_chunk(profile, of, scales)


def _groups(scales: Format) -> Iterator[tuple[Row, Codes, Codes]]:
    """Yield groups whose sums are half a unit of the cut, after a first group with an exponent.

    The first group cancels. Its exponent cuts two groups, but not two halves of one group. In other
    rows the first group is zero in one operand, and has no exponent.
    """
    if scales.is_power_of_two:
        large, one = (scales.bias + 17,) * 2, (scales.bias,) * 2
    else:  # 2^8 and 2^-9
        large, one = (scales.bias + 8 << scales.mantissa_bits,) * 2, (1, 1)
    zeros: Pairs = [(0.0, 0.0)] * (2 * GROUP - 2)
    half: Pairs = [(0.0, 0.0)] * (GROUP // 2 - 1)
    yield ([*_CANCELS, *zeros, _HALF, *half, _HALF], 0.0), large, one
    yield ([*_CANCELS, *zeros, _HALF, *half, (0.0, 0.0), *half, _HALF], 0.0), large, one
    for pair in ((1.0, 0.0), (0.0, 1.0)):
        yield ([pair, pair, *zeros, _HALF], 0.0), large, one
    yield ([*_CANCELS, *zeros, (-1.5, 0.5)], 0.0), large, one  # 1.5 units
    four, rest = ((scales.bias + n << scales.mantissa_bits,) * 2 for n in (6, -5))
    far: Pairs = [(-2.0, 2.0), (0.0, 0.0), *zeros, (-1.5, 1.0)]  # loses 3/4 of a unit of binary32
    yield (far, 0.0), four, rest
    yield (_CANCELS, math.ldexp(-1.75, _exponent(large, scales) - 35)), large, one
    yield from _exponents_of_groups(scales, large, one)


def _exponents_of_groups(
    scales: Format, large: Codes, one: Codes
) -> Iterator[tuple[Row, Codes, Codes]]:
    """Yield a c next to groups that cancel: the exponent of their scales decides if c counts.

    The scales are subnormal, or the products are above 1, or one scale is 0 and the other is large.
    Other rows have a subnormal c alone, and a product far above c.
    """
    yield ([(0.0, 0.0)], -(2.0**-133)), one, one
    yield ([(1.0, 1.0)], math.ldexp(1.5, _exponent(large, scales) - 128)), large, one
    last = _exponent(one, scales) - 36  # below the cut of 35 bits
    yield (_CANCELS, 2.0**last), one, one
    yield ([(4.0, 4.0), (-4.0, 4.0)], 2.0 ** (_exponent(large, scales) - 35)), large, one
    if not scales.is_power_of_two:
        yield ([(1.0, 1.0)], 2.0**-40), (0, large[1]), one


def _exponent(codes: Codes, scales: Format) -> int:
    """Return the sum of the exponents of two scales (DOT-004)."""
    low = scales.smallest_exponent
    return sum(max((code >> scales.mantissa_bits) - scales.bias, low) for code in codes)


def _scaled_at_e0(
    profile: DotProfile, of: tuple[Format, Format], scales: Format
) -> Iterator[tuple[Row, Codes, Codes]]:
    """Yield the sums of `_at_e0`, small because of scales: in one block, or in two of one chunk."""
    first = -149
    for low in (0, 1):
        last = profile.zero_exponent - profile.fraction_bits - low
        if profile.family == "gst_fdpa":
            pairs: Pairs = [(1.0, 1.0), *[(0.0, 0.0)] * (2 * GROUP - 1), (-1.0, 1.0)]
            yield (pairs, 0.0), _halves(first, scales), _halves(last, scales)
        else:
            a, b = powers(last - first, of)
            yield ([(1.0, 1.0), (a, -b)], 0.0), _halves(first, scales), _halves(0, scales)


def _after_a_chunk(
    profile: DotProfile, of: tuple[Format, Format], scales: Format
) -> Iterator[tuple[Row, Codes, Codes]]:
    """Yield a sum of 2^-60 before zeros of one operand, and a subnormal sum before a product.

    In the last row, a scaled sum is a tie of subnormal numbers, and c makes it odd.
    """
    chunk: Pairs = [(1.0, 1.0), *[(0.0, 0.0)] * (profile.chunk - 1)]
    one = _halves(0, scales)
    for pair in ((of[0].largest, 0.0), (0.0, of[1].largest)):
        yield ([*chunk, pair], 0.0), _halves(-60, scales), one
    cut = formats["f32"].smallest_exponent - profile.fraction_bits - 1
    yield ([*chunk, (1.0, -1.0)], 0.0), _halves(-130, scales), _halves(cut, scales)
    yield ([(1.0, 1.0), powers(-17, of)], 2.0**-149), _halves(-133, scales), one


def _halves(exponent: int, scales: Format) -> Codes:
    """Return the codes of two powers of two whose product has this exponent."""
    return scales.bias + exponent // 2, scales.bias + exponent - exponent // 2
