"""Rows at the edges of a sum: bits at the cut, ties, cancellation, ends and special numbers."""

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.encoding import encode
from mor_ref.golden.model.suite import Size
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import Unsigned, codes_array, f32_array
from mor_ref.operations.call import Arrays, Parameters
from mor_ref.operations.fields import bytes_of, format_meant
from mor_ref.operations.random_numbers import Draws

Pairs = Sequence[tuple[float, float]]
Row = tuple[Pairs, float]  # the numbers of products, and c

_IEEE = SpecialCases(overflow="ieee")
# Two binary32 numbers whose product is above 2^-24 by less than 2^-62.
_ABOVE_A_TIE = (math.ldexp(0x801001, -36), math.ldexp(0xFFE002, -35))
_TIE = 1 + 2.0**-12  # its square is a tie of binary32
HIGHEST = 6  # exponent of the large numbers, if a format has it


def edges(
    profile: DotProfile, of: tuple[Format, Format], length: int, first: int, step: int
) -> Arrays:
    """Return a, b and c of rows at the edges of a profile, filled up with zeros.

    These are every `step`th row of all, starting at row `first % step`.
    """
    found = [row for row in _rows(profile, of, length) if has_all(row, of)]
    return arrays_of(found[first % step :: step], profile, of, length)


def signs_and_ends(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows whose sums are signed zeros, are at the ends of f16, or show an order."""
    zero, low = (-0.0, 1.0), 2.0**-126
    big, small = 2.0**12, 2.0**-75
    rows: list[Row] = [
        ([zero] * length, -0.0),
        ([zero] * length, -(2.0**-140)),
        ([(low, 1.0), *[zero] * (length - 1)], -1.5 * low),
        ([(big, big), (1.0, 1.0), (-big, big), (1.0, 1.0)], 0.0),
        ([(4.0, 4.0)], 65504.0),
        ([(-4.0, 4.0)], -65504.0),
        ([(4.0, 3.75)], 65504.0),
        ([(2.0**-5, 2.0**-6), (2.0**-6, 2.0**-18)], 1.0),
        ([(small, small), (small, 2.0**-83)], 0.0),
    ]
    found = [row for row in rows if has_all(row, of)]
    return arrays_of(found, profile, of, length)


def below_e0(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return a sum that is subnormal only with bits that e0 cuts, and a last sum of -2^-150."""
    top, low = 2.0**-75, 2.0**-80
    pairs = [(top, top), (top * 31 / 32, top * 33 / 32), (low, low)]
    last = [(0.0, 0.0)] * (length - 1) + [(-top, top)]
    return arrays_of([(pairs, 0.0), (last, 0.0)], profile, of, length)


def nearly_ties(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return sums that a second rounding, a lost bit or another order of four products changes.

    In f16, sums are above a tie by a bit that binary32 does not hold. In f32_fma, a product is
    above a tie of c by less than 2^-62, or a tie next to a tiny c. In pairs, two small products
    count together.
    """
    one, small = (1.0, 1.0), 2.0**-12
    rows: list[Row] = [
        ([one, (2.0**-5, 2.0**-6), (small, 2.0**-13)], 0.0),
        ([one, (3 * 2.0**-5, 2.0**-6), (-small, 2.0**-13)], 0.0),
        ([one, (0.0, 1.0), (small, small), (small, small)], 0.0),
        ([_ABOVE_A_TIE], 1.0),
        ([(-_ABOVE_A_TIE[0], _ABOVE_A_TIE[1])], -1.0),
        ([(_TIE, _TIE)], 2.0**-60),
        ([(_TIE, _TIE)], -(2.0**-60)),
    ]
    found = [row for row in rows if has_all(row, of)]
    return arrays_of(found, profile, of, length)


def with_a_last_product(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return a row that loses c if c is added to the last product instead of the sum."""
    a, b = (math.ldexp(1.0, top) for top in exponents_at_most(HIGHEST, of))
    pairs = [(a, b), *[(0.0, 0.0)] * (length - 2), (-a, b)]
    return arrays_of([(pairs, math.ldexp(a * b, -30))], profile, of, length)


def with_a_small_sum(rows: Arrays, of: tuple[Format, Format]) -> Arrays:
    """Return rows with e8m0 scales: a last sum of -2^-150, then scales of NaN, NaN and 2^-127."""
    found = {name: array.copy() for name, array in rows.items()}
    found["a"][0], found["b"][0], found["c"][0] = 0, 0, 0
    for name, fmt, sign in (("a", of[0], of[0].sign_bit), ("b", of[1], 0)):
        found[name][0, -1] = one_of(fmt) | sign
        found[f"scale_{name}"][0] = 127 - 75
    for row, first, last in ((1, 0xFF, 127), (2, 0xFF, 127), (3, 0, 0)):
        found["a"][row], found["scale_a"][row] = found["a"][0], last
        found["b"][row], found["scale_b"][row], found["c"][row] = found["b"][0], 147, 0
        found["scale_a"][row, 0] = first
    return found


def one_of(fmt: Format) -> int:
    """Return the code of 1."""
    return fmt.bias << fmt.mantissa_bits


def with_scales_of_one(rows: Arrays, scales: Format, block: int) -> Arrays:
    """Return rows with a scale of 1 for each block."""
    count, length = rows["a"].shape
    shape, dtype = (count, -(-length // block)), code_dtype(scales)
    return {**rows, **{f"scale_{name}": np.full(shape, one_of(scales), dtype) for name in "ab"}}


def powers(exponent: int, of: tuple[Format, Format]) -> tuple[float, float]:
    """Return two powers of two whose product has this exponent, in the formats if possible."""
    least, most = zip(*map(_exponents, of), strict=True)
    first = max(exponent // 2, exponent - most[1], least[0])
    first = min(first, exponent - least[1], most[0])
    return math.ldexp(1.0, first), math.ldexp(1.0, exponent - first)


def exponents_at_most(most: int, of: tuple[Format, Format]) -> tuple[int, int]:
    """Return the exponents of the largest numbers of two formats, but at most `most`."""
    first, second = (min(most, _exponents(fmt)[1]) for fmt in of)
    return first, second


def _exponents(fmt: Format) -> tuple[int, int]:
    """Return the exponents of the smallest and the largest number."""
    return fmt.smallest_exponent - fmt.mantissa_bits, math.frexp(fmt.largest)[1] - 1


def arrays_of(
    rows: Sequence[Row], profile: DotProfile, of: tuple[Format, Format], length: int
) -> Arrays:
    """Return a, b and c of rows, filled up with zeros."""
    filled = [list(pairs[:length]) + [(0.0, 0.0)] * (length - len(pairs)) for pairs, _ in rows]
    of_c = formats[profile.start]
    return {
        "a": _codes([a for row in filled for a, _ in row], of[0]).reshape(-1, length),
        "b": _codes([b for row in filled for _, b in row], of[1]).reshape(-1, length),
        "c": f32_array(of_c.value(encode(c, of_c, "rne", _IEEE)) for _, c in rows),
    }


def _codes(numbers: list[float], fmt: Format) -> Unsigned:
    return codes_array([_code(fmt, x, math.copysign(1, x)) for x in numbers], fmt)


@functools.lru_cache(maxsize=1 << 16)  # rows have few distinct numbers
def _code(fmt: Format, x: float, sign: float) -> int:
    """Return the code of a number; its sign tells zeros and NaNs apart."""
    del sign
    return encode(x, fmt, "rne", _IEEE)


def has_all(row: Row, of: tuple[Format, Format]) -> bool:
    """Return whether both formats have all numbers of a row."""
    return all(_has(fmt, x) for pair in row[0] for fmt, x in zip(of, pair, strict=True))


@functools.lru_cache(maxsize=1 << 16)  # rows have few distinct numbers
def _has(fmt: Format, x: float) -> bool:
    found = fmt.value(encode(x, fmt, "rne", _IEEE))
    return found == x or (math.isnan(x) and math.isnan(found))


def _rows(profile: DotProfile, of: tuple[Format, Format], length: int) -> Iterator[Row]:
    tops = exponents_at_most(HIGHEST, of)
    one = math.ldexp(1.0, tops[0]), math.ldexp(1.0, tops[1])
    yield from _zeros()
    yield from _at_the_cut(profile, of, (one[0], one[1]))
    yield from _above_ties(of)
    yield from _cancelling(one, length)
    yield from _ends(of, length)
    yield from _specials(one)
    yield from _specials((of[0].largest, of[1].largest))


def _zeros() -> Iterator[Row]:
    """Yield products of zeros with any c."""
    for c in (0.0, -0.0, 1.0, -3.5, 2.0**-149, -(2.0**-133), 2.0**-126, -(2.0**-24)):
        yield [(0.0, 1.0), (-0.0, 1.0)], c
    yield [(-0.0, 1.0)], -0.0


def two_powers(exponent: int, of: tuple[Format, Format]) -> tuple[float, float]:
    """Return two powers of two whose product has this exponent, about equal if possible."""
    lowest, highest = (of[0].smallest_exponent - of[0].mantissa_bits, math.frexp(of[0].largest)[1])
    first = min(max(exponent // 2, lowest), highest - 1)
    return math.ldexp(1.0, first), math.ldexp(1.0, exponent - first)


def _at_the_cut(
    profile: DotProfile, of: tuple[Format, Format], one: tuple[float, float]
) -> Iterator[Row]:
    """Yield a large product and small ones whose last bits are at the cut, or next to it."""
    top = math.frexp(one[0] * one[1])[1] - 1
    bits = profile.fraction_bits or 24
    odd = [2 - math.ldexp(1.0, -min(fmt.mantissa_bits, 3)) for fmt in of]
    for offset in range(-4, 9):
        a, b = two_powers(top - bits + offset, of)
        for sign in (1, -1):
            yield [one, (sign * a, b)], 0.0
            yield [one, (sign * a * odd[0], b * odd[1])], 0.0
            yield [(-one[0], one[1]), (sign * a * odd[0], b), (a, b * odd[1])], 0.0
            yield [one], sign * math.ldexp(1.25, top - bits + offset)
            yield [(a, b), (sign * a, b * odd[1])], one[0] * one[1]
    for kept in (10, 13, 23, 24, 31, 32):
        for sign in (1, -1):
            a, b = two_powers(top - kept, of)
            yield [one, one, one, (sign * a, b), (sign * a, b)], 0.0
            yield [(-one[0], one[1]), (a, b)], sign * math.ldexp(1.0, top - kept - 1)


def _above_ties(of: tuple[Format, Format]) -> Iterator[Row]:
    """Yield sums that are above a tie by a bit 31 to 33 places down, which a cut can lose."""
    for exponent in (12, 9, 0, -20):
        for bits in (31, 32, 33):
            pairs = [two_powers(exponent - 24, of), two_powers(exponent - bits, of)]
            for sign in (1, -1):
                yield [(sign * a, b) for a, b in pairs], sign * math.ldexp(1.0, exponent)


def _cancelling(one: tuple[float, float], length: int) -> Iterator[Row]:
    """Yield products that cancel, in a chunk or with c."""
    a, b = one
    yield [(a, b), (-a, b)], 0.0
    yield [(a, b), (-a, b)], -0.0
    yield [(a, b), (1.0, 1.0), (a, -b)], 2.0**-40
    yield [(a, b), (-a, b)] * (length // 2), 2.0**-60
    yield [(a, b)] * length, -a * b * length
    yield [(-a, b)] * length, a * b * (length + 1)
    yield [(1.5, 1.0), (-1.0, 1.5), (0.5, 1.0)], -0.5


def _ends(of: tuple[Format, Format], length: int) -> Iterator[Row]:
    """Yield products of the smallest and of the largest numbers, and c at the ends."""
    least = [fmt.smallest_subnormal or 1.0 for fmt in of]
    normal = [fmt.smallest_normal or 1.0 for fmt in of]
    most = [fmt.largest for fmt in of]
    largest = formats["f32"].largest
    for sign in (1, -1):
        yield [(sign * least[0], least[1])] * length, 0.0
        yield [(sign * least[0], normal[1])] * length, -sign * 2.0**-149
        yield [(sign * normal[0], normal[1])] * length, sign * 2.0**-127
        yield [(sign * normal[0], normal[1])] * (length - 1), 2.0**-149
        yield [(sign * most[0], most[1])] * length, 0.0
        yield [(sign * most[0], most[1])], sign * largest
        yield [(sign * least[0], 1.0), (1.0, least[1])], sign * 1.0
        yield [(sign * least[0], 1.0)], 3 * 2.0**-20
    yield [(most[0], most[1]), (-most[0], most[1])], 1.0
    yield [(1.0, 1.0)], largest
    yield [(-1.0, 1.0)], -largest
    yield [(2.0**64, 2.0**63), (2.0**64, 2.0**63)], 0.0
    yield [(2.0**64, 2.0**63), (2.0**64, 2.0**63)], -largest
    yield [(2.0**64, 2.0**64), (-(2.0**64), 2.0**64)], 0.0
    for exponent in (-127, -130, -136, -139, -140, -149, -150, -151):
        a, b = two_powers(exponent, of)
        for sign in (1, -1):
            yield [(a, b), (1.5 * 2.0**-60, sign * 2.0**-70)], 0.0
            yield [(sign * a, b)], 0.0


def _specials(one: tuple[float, float]) -> Iterator[Row]:
    """Yield infinities and NaNs, in operands and in c."""
    nan, infinity = math.nan, math.inf
    for c in (infinity, -infinity, nan):
        yield [one], c
        yield [(0.0, 0.0)], c
    for x in (infinity, -infinity, nan):
        yield [one, (x, 1.0)], 0.0
        yield [(x, 0.0)], 1.0
        yield [(1.0, x)], -infinity
        yield [(x, 1.0), (infinity, 1.0)], 0.0
        yield [(0.0, 1.0), (1.0, -1.0), (x, x)], infinity


def drawn(operation: str, parameters: Parameters, shape: tuple[int, int], size: Size) -> Arrays:
    """Return random rows of an operation."""
    declared = OPERATIONS[operation]
    if declared.random is None:
        raise ValueError(f"operation is {operation!r}, which draws no rows; give another")
    count, width = shape
    found = declared.random.draw(parameters, Draws(0, count * size.factor, size.seed + 7, width))
    return {
        name: np.asarray(array).astype(f"u{bytes_of(format_meant(field.format, parameters))}")
        for name, field in declared.inputs.items()
        for array in (found[name],)
    }


def joined(*parts: Arrays) -> Arrays:
    """Return the rows of all parts, one part below the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
