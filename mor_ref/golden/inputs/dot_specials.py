"""Rows of dot products of subnormal numbers, infinities and NaN, for every pair of formats."""

import math
from collections.abc import Iterator

import numpy as np

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_exponents import (
    Codes,
    rows_across_chunks,
    rows_of_exponents,
    scaled_rows_of_exponents,
)
from mor_ref.golden.inputs.dot_lanes import (
    in_other_lanes,
    rows_between_chunks,
    rows_of_blocks,
    rows_of_lanes,
)
from mor_ref.golden.inputs.dot_rows import (
    Pairs,
    Row,
    arrays_of,
    has_all,
    joined,
    one_of,
    powers,
    with_scales_of_one,
)
from mor_ref.golden.inputs.dot_sums import rows_of_special_pairs, rows_of_sums
from mor_ref.operations.bits import Unsigned
from mor_ref.operations.call import Arrays

_INF, _NAN = math.inf, math.nan
_ONE = (1.0, 1.0)


def specials(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows of subnormal operands, infinities and NaN, alone and with each other.

    Each NaN has the smallest mantissa: no quiet bit, but a bit that the profile reads. Then come
    rows in which exponents decide. In the last two, the only mantissa bit of NaN is one that the
    profile ignores.
    """
    rows = [*_of_subnormals(profile, of), *rows_of_infinities(profile, of), *_of_nans()]
    rows += [*rows_of_special_pairs(), *rows_of_sums(profile, of)]
    rows += rows_of_exponents(profile, of)
    if profile.family in ("t_fdpa", "st_fdpa", "promoted", "tr_fdpa"):
        rows = in_other_lanes(rows, profile.chunk)
    if 0 < profile.chunk < length:
        rows += [*rows_across_chunks(profile, of), *rows_between_chunks(profile, of)]
    elif profile.chunk:
        rows += rows_of_lanes(profile, of)
    rows += [([(_NAN, 1.0)], 1.0), ([(1.0, _NAN)], 1.0)] if profile.ignored_bits else []
    found = dict(arrays_of([row for row in rows if has_all(row, of)], profile, of, length))
    for name, fmt in zip("ab", of, strict=True):
        lowest = 1 << profile.ignored_bits if fmt.name == "f32" else 1
        found[name] = _smallest_nans(found[name], fmt, lowest)
        if profile.ignored_bits:
            found[name][-2:] = _smallest_nans(found[name][-2:], fmt, 1)
    lowest = 1 << formats["f32"].mantissa_bits - formats[profile.start].mantissa_bits
    found["c"] = _smallest_nans(found["c"], formats["f32"], lowest)
    return found


def _smallest_nans(codes: Unsigned, fmt: Format, lowest: int) -> Unsigned:
    """Return codes in which each NaN has this mantissa, if the format has several NaNs.

    Every second NaN is negative.
    """
    if not fmt.nan_codes or fmt.nan_codes[0][0] == fmt.sign_bit:
        return codes
    found, infinity = codes.copy(), fmt.infinity_code
    smallest = fmt.nan_codes[0][0] if infinity is None else infinity + lowest
    above = smallest - 1 if infinity is None else infinity
    places = np.flatnonzero((codes & (fmt.sign_bit - 1)) > above)
    found.flat[places] = smallest
    found.flat[places[1::2]] = smallest | fmt.sign_bit
    return found


def _of_subnormals(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield subnormal numbers times the largest ones.

    A second product is one bit below the cut that the exponent of subnormal numbers sets.
    """
    for first in (0, 1):
        small, large = of[first], of[1 - first]
        if not small.smallest_subnormal or not small.smallest_normal:
            continue
        pair = _least(profile, small), large.largest
        pairs: Pairs = [pair if first == 0 else pair[::-1]]
        exponent = math.frexp(small.smallest_normal)[1] + math.frexp(large.largest)[1] - 2
        below: Pairs = [powers(exponent - profile.fraction_bits - 1, of)]
        yield [*pairs, *below] if profile.is_cut and has_all((below, 0.0), of) else pairs, 0.0


def rows_of_infinities(profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield infinities times zeros and ones, and next to infinities of the other sign or of c.

    Alone, they are multiplied by -1 and by the smallest number.
    """
    least = [_least(profile, fmt) for fmt in of]
    alone = ((_INF, -1.0), (least[0], _INF)), ((-_INF, least[1]), (-1.0, -_INF))
    for sign, pairs in zip((1, -1), alone, strict=True):
        yield from (([pair], 0.0) for pair in pairs)
        yield [(sign * _INF, 1.0)], -sign * _INF
        yield [(1.0, sign * _INF)], -sign * _INF
        yield [_ONE], sign * _INF
    yield [(_INF, 0.0)], 0.0
    yield [(0.0, _INF)], 0.0
    yield [(_INF, 1.0), (-_INF, 1.0)], 0.0
    yield [(1.0, -_INF), (1.0, _INF)], 0.0


def _least(profile: DotProfile, fmt: Format) -> float:
    """Return the smallest number that an operand can be, without the bits that are ignored."""
    bits = profile.ignored_bits if fmt.name == "f32" else 0
    return math.ldexp(fmt.smallest_subnormal or 1.0, bits)


def _of_nans() -> Iterator[Row]:
    """Yield NaN as an operand and as c."""
    yield [(_NAN, 1.0)], 0.0
    yield [(1.0, _NAN)], 0.0
    yield [(_NAN, 0.0)], _INF
    yield [(0.0, _NAN)], -_INF
    yield [_ONE], _NAN


def specials_with_scales(
    profile: DotProfile, of: tuple[Format, Format], length: int, scale_format: str, block: int
) -> Arrays:
    """Return the rows of `specials` with scales of 1, and rows with special scales."""
    scales, rows = formats[scale_format], specials(profile, of, length)
    special = [*_with_special_scales(scales, length)]
    special += scaled_rows_of_exponents(profile, of, scales)
    special = [row for row in special if has_all(row[0], of)]
    more = arrays_of([row for row, *_ in special], profile, of, length)
    found = with_scales_of_one(joined(rows, more), scales, block)
    for n, name in enumerate(("scale_a", "scale_b")):
        for row, (_, first, others) in zip(found[name][len(rows["c"]) :], special, strict=True):
            row[0], row[1:] = first[n], others[n]
    return joined(found, rows_of_blocks(profile, of, length, scales, block))


def _with_special_scales(scales: Format, length: int) -> Iterator[tuple[Row, Codes, Codes]]:
    """Yield rows of ones or zeros, special scales of their first blocks, and scales of 1.

    A special scale is NaN (with each c), is infinite, or is subnormal next to the largest scale.
    """
    ones, zeros, infinity = [_ONE] * length, [(0.0, 1.0)] * length, scales.infinity_code
    one, largest = one_of(scales), scales.largest_code
    nan = largest + 1 if infinity is None else infinity + 1
    least = 0 if scales.is_power_of_two else 1
    found: list[tuple[Row, Codes]] = []
    for c in (0.0, _INF, -_INF):
        found += [((ones, c), (nan, one)), ((ones, c), (one, nan))]
    found += [((zeros, 0.0), (nan, one)), ((zeros, 1.0), (one, nan))]
    found += [((ones, 0.0), (least, largest)), ((ones, 0.0), (largest, least))]
    if infinity is not None:
        found += [((ones, 0.0), (infinity, one)), ((ones, -_INF), (one, infinity))]
        found += [((zeros, 0.0), (infinity, one)), ((ones, 0.0), (infinity, 0))]
    yield from ((row, codes, (one, one)) for row, codes in found)
