"""Rows of dot products that expose too few bits in sums, shifts or products of a chunk."""

import math
from collections.abc import Iterator

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import HIGHEST, Pairs, Row, exponents_at_most, powers

_INF, _NAN = math.inf, math.nan
_MOST_BITS = 10  # behind the leading one of a number of TF32


def rows_of_sums(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield rows for a profile; one exposes a product of two long numbers that is rounded."""
    bits = [min(fmt.mantissa_bits, _MOST_BITS) for fmt in of]
    if min(bits) > 3:
        pair = tuple(1 + 2.0**-n for n in bits)
        rest = [(-(2.0**-n), 1.0) for n in bits]
        yield [(pair[0], pair[1]), *rest], -1.0
    if profile.start == "f32":
        yield [(0.0, 0.0)], -(2.0**-133) - 2.0**-149
    if profile.family == "e_fdpa":
        yield from _of_exact_sums()
    elif profile.family == "promoted" or (profile.is_cut and profile.family != "gst_fdpa"):
        yield from _of_wide_sums(profile, of)
        yield from _of_far_terms(profile, of)


def _of_exact_sums() -> Iterator[Row]:
    """Yield sums of CDNA 1 in which large terms cancel, or tiny ones decide, in each order."""
    for large, small in ((2.0**63, 2.0**-70), (2.0**15, 2.0**-24)):
        yield [(large, large), (-large, large)], 2.0**-149
        yield [(large, large), (small, small)], -(large**2)
        yield [(small, small), (large, large)], -(large**2)
    yield [(2.0**-40, 2.0**-44), (2.0**-12, 2.0**-12)], 1.0
    yield [(2.0**-24, 2.0**-24), (2.0**-6, 2.0**-6)], 2.0**12
    yield [(-(2.0**-133), 2.0**-133)], 0.0


def _of_wide_sums(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield sums that are large before they cancel, with the lowest unit first, last or in c."""
    tops = exponents_at_most(HIGHEST, of)
    bits = [min(fmt.mantissa_bits, _MOST_BITS) for fmt in of]
    a, b = (math.ldexp(2 - 2.0**-n, top) for n, top in zip(bits, tops, strict=True))
    unit, half = sum(tops) - profile.fraction_bits, profile.chunk // 2
    if half >= 4 and profile.fraction_bits > 24:
        zeros: Pairs = [(0.0, 0.0)] * (profile.chunk - 8)
        two = powers(unit, of)
        yield [two, *[(a, b)] * 3, *zeros, *[(-a, b)] * 3, two], 0.0
    elif half >= 4:
        yield [*[(a, b)] * half, *[(-a, b)] * half], math.ldexp(1.0, unit)
    if profile.result == "f32":  # 3/4 of a unit above a number
        low = sum(tops) + 1 - profile.result_bits
        yield [(2.0 ** tops[0], 2.0 ** tops[1])] * 4, math.ldexp(1.5, low)
    tiny = 2.0**-100  # no product is 0: c alone has e0
    yield [(tiny, tiny)] * profile.chunk, 0.0


def _of_far_terms(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield terms below the largest one by F + 1 places, and by a power of two of places.

    The first term is a product above 2, so that a unit of it remains. In f16, a product above 2 has
    the largest exponent, and the last unit decides a tie.
    """
    is_wide = profile.result == "f32"
    a, b = (2.0**top for top in exponents_at_most(8 if is_wide else 2, of))
    x, y = powers(math.frexp(a * b)[1] - 1 - profile.fraction_bits - 1, of)
    yield [(a, b), (-1.5 * x, 1.5 * y)], 0.0
    if is_wide and profile.family != "promoted":
        sign = -1 if profile.family == "tr_fdpa" else 1  # tr_fdpa rounds c down
        yield [(4.0, 4.0)], sign * math.ldexp(1.5, 4 - 128)
        return
    a, b = (2.0**top for top in exponents_at_most(15, of))
    yield [(a, b), (-a, b), powers(math.frexp(a * b)[1] - 1 - 32, of)], 0.0
    if not is_wide:
        tie = powers(5 - 1 - formats["f16"].mantissa_bits, of)
        yield [(6.0, 6.0), tie, powers(4 - profile.fraction_bits, of)], 0.0


def rows_of_special_pairs() -> Iterator[Row]:
    """Yield products of two special numbers, two equal infinities, and infinity with a NaN in c."""
    yield [(_INF, _NAN)], 0.0
    yield [(_NAN, _INF)], 0.0
    yield [(_INF, -_INF)], 0.0
    yield [(-_INF, 1.0), (-_INF, 1.0)], 0.0
    yield [(_INF, 1.0)], _NAN
