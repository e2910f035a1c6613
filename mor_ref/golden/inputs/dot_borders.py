"""Rows that expose a wrong L, e0, F or n of a profile, or a wrong flush of CDNA 2."""

import math
from collections.abc import Iterator, Mapping

from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import (
    HIGHEST,
    Pairs,
    Row,
    arrays_of,
    exponents_at_most,
    has_all,
    joined,
    one_of,
    two_powers,
    with_scales_of_one,
)
from mor_ref.operations.call import Arrays

_ONE, _ZERO = (1.0, 1.0), (0.0, 1.0)
_ROOT, _LOW = 2.0**-63, 2.0**-126  # the smallest normal number of binary32, and its root
_FLUSHED = (-_ROOT / 2, _ROOT)  # a product that becomes -0


def at_borders(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows of zeros, and rows whose sums change with the length of a chunk.

    Some rows have two products of 1: in two chunks, or first and last in one chunk. Added to c
    alone, each is lost. In other rows, two large products cancel; a small one is cut only in their
    chunk.
    """
    rows = [([_ZERO], 0.0), *_over_borders(profile, of)]
    found = [row for row in rows if len(row[0]) <= length and has_all(row, of)]
    return arrays_of(found, profile, of, length)


def _over_borders(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield sums across the end of the first chunk, and from its first product to its last one.

    One more sum crosses the middle of an incomplete chunk.
    """
    large = math.ldexp(1.0, profile.result_bits + 1)
    tops = exponents_at_most(HIGHEST, of)
    a, b = (math.ldexp(1.0, top) for top in tops)
    small = two_powers(sum(tops) - profile.fraction_bits - 2, of)
    last = profile.chunk - 1
    yield _at({last: _ONE, profile.chunk: _ONE}), large
    yield _at({0: _ONE, last: _ONE}), large
    if profile.family == "ftz_mul_add":  # two products of a tail are added before c
        yield _at({2 * profile.chunk: _ONE, 2 * profile.chunk + 1: _ONE}), large
    if profile.family == "promoted":  # a tie of c, and then a unit, or two ties
        yield _at({0: _ONE, PERIOD: (2.0, 1.0)}), 2.0**24
        yield _at({0: _ONE, PERIOD: _ONE}), 2.0**24
    if profile.family in ("tr_fdpa", "gtr_fdpa"):
        yield from _rounded_down()
    if profile.fraction_bits:
        yield _at({0: (a, b), 1: (-a, b), profile.chunk: small}), 0.0
        yield _at({0: (a, b), 1: (-a, b), last: small}), 0.0
        tail, half = 2 * profile.chunk, profile.chunk // 2  # half a tail loses the unit
        unit = two_powers(sum(tops) - profile.fraction_bits, of)
        yield _at({tail: (-1.5 * a, b), tail + 1: unit, tail + half: (1.5 * a, b)}), 0.0


def _rounded_down() -> Iterator[Row]:
    """Yield sums of CDNA 3 with bits just above and just below the last bits of S and N.

    In turn, S is less than a tie, has the last bit but one of N, and has the last bit of N. In the
    last two rows, c is too small next to the product to count, by one exponent and by two.
    """
    c, half = 1.5 * 2.0**16, (2.0**-4, 2.0**-4)
    yield [(-half[0], half[1]), (-(2.0**-10), 2.0**-10)], c
    yield [half, (2.0**-8, 2.0**-7)], c
    yield [half, (2.0**-8, 2.0**-8)], c
    yield [_ONE], -(2.0**-26)
    yield [_ONE], -(2.0**-27)


def _at(places: Mapping[int, tuple[float, float]]) -> Pairs:
    """Return a list with products at these places, and zeros between them."""
    return [places.get(k, (0.0, 0.0)) for k in range(max(places) + 1)]


def at_borders_with_scales(
    profile: DotProfile, of: tuple[Format, Format], length: int, scale_format: str, block: int
) -> Arrays:
    """Return the rows of `at_borders` with scales of 1, and in promoted two that result in -0."""
    scales, rows = formats[scale_format], at_borders(profile, of, length)
    if profile.family == "promoted":
        zeros = [_ZERO] * (length - 1)
        low = (of[0].smallest_normal or 1.0, of[1].smallest_normal or 1.0)
        rows = joined(rows, arrays_of([(zeros, -0.0), ([*zeros, low], -0.0)], profile, of, length))
    found = with_scales_of_one(rows, scales, block)
    if profile.family == "promoted":
        found["scale_a"][-2] = one_of(scales) | scales.sign_bit
        found["scale_a"][-1] = 1 | scales.sign_bit
    return found


def flushed(profile: DotProfile, of: tuple[Format, Format]) -> Arrays:
    """Return chunks of CDNA 2 with zeros of either sign, and with sums that are subnormal.

    A row is an instruction of four chunks; other products than zeros are in the last two.
    """
    length = profile.chunk
    first = _at({0: (_ROOT, _ROOT), length - 1: _ZERO})  # leaves c at -0
    subnormal = (-of[0].smallest_subnormal, 1.0) if of[0].smallest_subnormal else _ZERO
    zeros, ahead = [(0.0, -1.0)] * length, [(0.0, 0.0)] * (2 * length)
    low, high = (-_ROOT, _ROOT), (1.5 * _ROOT, _ROOT)
    second = (
        [_FLUSHED] * length,
        [(-0.0, 1.0)] * length,
        [subnormal] * length,
        zeros,
        [(-high[0], _ROOT), (_ROOT, _ROOT), *[_FLUSHED] * (length - 2)],
        first,
    )
    rows: list[Row] = [([*ahead, *first, *pairs], -1.5 * _LOW) for pairs in second]
    rows += [([*ahead, *_at({0: high, k: low})], _LOW) for k in range(1, length)]
    rows += [([*ahead, (_ROOT / 2, _ROOT)], _LOW)]
    rows += [(zeros * 4, c) for c in (-0.0, -_LOW / 16, _LOW / 16)]
    found = [row for row in rows if has_all(row, of)]
    return arrays_of(found, profile, of, 4 * length)


def filled_after_a_flush(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return a row whose c and products become -0; the zeros that fill a chunk add +0 to it."""
    pairs = [(_ROOT, _ROOT), *[_ZERO] * (profile.chunk - 1)]
    row = ([*pairs, *[_FLUSHED] * (length - profile.chunk)], -1.5 * _LOW)
    return arrays_of([row] if has_all(row, of) else [], profile, of, length)
