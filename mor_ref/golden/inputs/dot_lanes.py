"""Rows of dot products in which one lane of a chunk, or one block, decides."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from mor_ref.definitions.dot import GROUP, PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.encoding import encode
from mor_ref.golden.inputs.dot_rows import (
    HIGHEST,
    Pairs,
    Row,
    arrays_of,
    has_all,
    one_of,
    powers,
    with_scales_of_one,
)
from mor_ref.operations.call import Arrays

_INF, _NAN = math.inf, math.nan
_SPECIALS = ((_INF, 1.0), (1.0, -_INF), (_NAN, 1.0), (1.0, _NAN), (-_INF, 1.0), (1.0, _INF))
_ONE, _ZERO = (1.0, 1.0), (0.0, 0.0)


def lanes(chunk: int) -> list[int]:
    """Return the last lanes of a chunk, and one lane of each half, quarter and so on."""
    found = {1 << k for k in range(chunk.bit_length()) if 1 << k < chunk}
    return sorted(found | {chunk // 2 - 1, chunk - 2, chunk - 1} - {0})


def in_other_lanes(rows: Iterable[Row], chunk: int) -> list[Row]:
    """Return the rows, each shifted to another first lane as far as its chunk has room."""
    return [
        ([*[_ZERO] * (5 * n % max(chunk - len(pairs) + 1, 1)), *pairs], c)
        for n, (pairs, c) in enumerate(rows)
    ]


def rows_of_lanes(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield rows in which one lane has the largest exponent, or is infinite or NaN.

    The last lane takes every kind of infinity and NaN, and each other lane takes one kind. In the
    last rows, the first lane and the last one have infinities of opposite signs.
    """
    last = profile.chunk - 1
    yield from rows_of_exponents_in(lanes(profile.chunk), profile, of)
    found = [pair for pair in _SPECIALS if has_all(([pair], 0.0), of)]
    for n, lane in enumerate(lanes(profile.chunk) if found else ()):
        for pair in found if lane == last else [found[n % len(found)]]:
            yield [*[_ONE] * lane, pair], 0.0
    yield from _of_both_infinities(profile)


def _of_both_infinities(profile: DotProfile) -> Iterator[Row]:
    """Yield chunks with infinities of opposite signs in the first lane and the last one."""
    for x in (_INF, -_INF):
        yield [(x, 1.0), *[_ONE] * (profile.chunk - 2), (-x, 1.0)], 0.0


def rows_of_exponents_in(
    chosen: Iterable[int], profile: DotProfile, of: tuple[Format, Format]
) -> Iterator[Row]:
    """Yield a row for c and for each chosen lane, which has the largest exponent."""
    if profile.family in ("t_fdpa", "st_fdpa"):
        yield _largest_in_c(profile, of)
    if profile.family != "gst_fdpa":
        yield from (_largest_in(lane, profile, of) for lane in chosen)


def _largest_in(lane: int, profile: DotProfile, of: tuple[Format, Format]) -> Row:
    """Return a row whose largest product, in `lane`, cuts a bit that would change the result.

    The bit is in c. In families that cut c differently, the bit is in a negative product of the
    same group. In f16, another product brings the sum to a tie.
    """
    pairs = [_ZERO] * profile.chunk
    if profile.family in ("tr_fdpa", "gtr_fdpa", "promoted"):
        top = 2 * HIGHEST
        x, y = powers(top - profile.fraction_bits - 1, of)
        pairs[lane], pairs[lane - 2] = powers(top, of), (-1.5 * x, y)
        return pairs, 0.0
    pairs[lane] = (4.0, 4.0)
    small = math.ldexp(1.5, 4 - profile.fraction_bits - 1)
    if profile.result == "f32":
        return pairs, -small
    pairs[lane - 1] = powers(4 - 1 - formats["f16"].mantissa_bits, of)
    return pairs, small


def _largest_in_c(profile: DotProfile, of: tuple[Format, Format]) -> Row:
    """Return a row whose c cuts a bit of a product that would change the result."""
    x, y = powers(4 - profile.fraction_bits - 1, of)
    if profile.result == "f32":
        return [(-1.5 * x, y)], 16.0
    return [powers(4 - 1 - formats["f16"].mantissa_bits, of), (1.5 * x, y)], 16.0


def rows_of_blocks(
    profile: DotProfile, of: tuple[Format, Format], length: int, scales: Format, block: int
) -> Arrays:
    """Return rows for each block, in which its scale is the largest or NaN.

    In gst_fdpa, each group of a block has the largest exponent once.
    """
    largest, one = one_of(scales) + (8 << scales.mantissa_bits), one_of(scales)
    nan = encode(_NAN, scales)
    step = GROUP if profile.family == "gst_fdpa" else block
    exponent = math.frexp(scales.value(largest))[1] - 1 - profile.fraction_bits
    cut = math.ldexp(-1.5, exponent - 1) if profile.fraction_bits else 0.0
    rows: list[Row] = []
    codes: list[tuple[int, int, int]] = []
    for k in range(0, length, step):
        rows.append(([*[_ZERO] * (k + step - 1), _ONE], cut))
        codes.append((k // block, largest, one))
        for pair in ((nan, one), (one, nan)):
            rows.append(([_ONE] * length, 0.0))
            codes.append((k // block, *pair))
    found = with_scales_of_one(arrays_of(rows, profile, of, length), scales, block)
    for row, (place, a, b) in enumerate(codes):
        found["scale_a"][row, place], found["scale_b"][row, place] = a, b
    return found


def reversed_rows(rows: Arrays) -> Arrays:
    """Return rows with their products and the scales of their blocks in reverse order."""
    return {name: np.flip(codes, 1) if codes.ndim > 1 else codes for name, codes in rows.items()}


def rows_between_chunks(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield sums that show how c passes to the second chunk.

    There c cuts small products, is cut next to a large one, is infinite, or cancels a sum that has
    one bit more than c can have. In the first chunk, a lane has the largest exponent, or two lanes
    have infinities.
    """
    top = 4
    rest: Pairs = [_ZERO] * (profile.chunk - 1)
    x, y = powers(top - profile.fraction_bits - 1, of)
    large, small, negative = (4.0, 4.0), (-1.5 * x, y), (-4.0, 4.0)
    yield [large, *rest, small], 0.0
    yield [small, *rest, large], 0.0
    yield [negative, negative, *rest[1:], large, large, powers(top - profile.result_bits, of)], 0.0
    for one, other in ((_INF, -_INF), (-_INF, _INF), (_NAN, _INF)):
        yield [(one, 1.0), *rest, (other, 1.0)], 0.0
    high = 2.0**64
    yield [(high, high), *rest, (-high, high)], 0.0
    if profile.result == "f16":
        yield [large, *rest, negative], formats["f16"].largest
    yield from _of_both_infinities(profile)
    yield from rows_of_exponents_in(sorted({1, profile.chunk - 1}), profile, of)


def between_periods(profile: DotProfile, of: tuple[Format, Format]) -> Arrays:
    """Return rows of two periods of promoted: the second starts with the sum of the first."""
    rows = [*rows_between_chunks(replace(profile, chunk=PERIOD), of)]
    first, second = (2.0**-8, 2.0**-8), (2.0**-8, 2.0**-7)  # a tie of c, and a unit of it
    rows.append(([first, *[_ZERO] * (PERIOD - 1), second], 2.0**8))
    return arrays_of([row for row in rows if has_all(row, of)], profile, of, 2 * PERIOD)
