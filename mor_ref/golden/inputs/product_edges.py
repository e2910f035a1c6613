"""Rows of A and columns of B at the ends of binary32, and cut sums of subnormal elements."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES, DotProfile
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.exact.encoding import encode
from mor_ref.golden.inputs.dot_exponents import (
    rows_across_chunks,
    rows_of_exponents,
    scaled_rows_of_exponents,
)
from mor_ref.golden.inputs.dot_rows import has_all, powers
from mor_ref.golden.inputs.dot_specials import rows_of_infinities
from mor_ref.golden.inputs.products import Kind
from mor_ref.operations.bits import Unsigned, bits32
from mor_ref.operations.call import Arrays
from mor_ref.operations.random_products import CHOICES, WIDEST, Blocks, operand

Pairs = list[tuple[float, float]]
Two = tuple[float, float]  # of a and of b
_NONE: Pairs = []
_ONES = 1.0, 1.0
# Numbers of a and b in two blocks, and the exponents of both factors. The results are -0, subnormal
# or infinite; a piece is -2^128; products of factors are 0 or infinite; and a sum in bfloat16 is
# subnormal.
_ENDS: tuple[tuple[Pairs, Pairs, int, int], ...] = (
    (_NONE, [(-0.5, 0.5)], -127, -22),
    (_NONE, [(1.5, 2.0)], -127, -22),
    (_NONE, [(1.5, 1.0)], -127, -22),
    (_NONE, [(-2.0, 1.0)], 127, 0),
    ([(2.0, 1.0)], [(-2.0, 1.0)], 0, 127),
    (_NONE, [(1.0, 1.0)], 127, 127),
    ([(-1.0, 1.0)], [(-1.0, 1.0)], -127, -127),
    ([(math.nan, 1.0)], _NONE, -127, -127),
    ([(math.nan, 1.0)], _NONE, 0, 0),
    (_NONE, [(2.0**-70, 2.0**-70)], 0, 0),
)


_ONE, _SIXTEENTH = 0x3F800000, 0x3D800000
# Bits of the scale of a block: NaN, infinities, zeros, subnormal numbers, the largest one, and -1.
_SPECIAL_SCALES = {
    "scaled": (
        0x7F800001, 0xFFC00000, 0x7F800000, 0xFF800000, 0, 0x80000000, 1, 0x00400000, 0x7F7FFFFF,
        0xBF800000,
    ),
    "mx": (0x7FFFFFFF, 0x00400000, 0x7F000000),
    "nvfp4": (0x7FFFFFFF, 0, 0x3B000000, 0x43E00000),
}  # fmt: skip
# Bits of the scale of a row: NaN, an infinity, zeros, a subnormal number, the largest one, and -1.
_SPECIAL_WHOLES = (0x7FC00000, 0x7F800000, 0, 0x80000000, 0x00400000, 0x7F7FFFFF, 0xBF800000)


class Edge(NamedTuple):
    """The numbers of a row, with factors of a and b: of all blocks, the first one, the others."""

    pairs: Pairs
    whole: Two = _ONES
    first: Two = _ONES
    others: Two = _ONES


def edges(kind: Kind) -> Arrays:
    """Return rows at the ends of binary32, with subnormal numbers, or in which exponents decide."""
    of = formats[kind.formats[0]], formats[kind.formats[1]]
    profile = DOT_PROFILES[kind.parameters["dot_profile"]]
    bits, size = profile.fraction_bits, kind.parameters["scale_block"]
    of_b = [(y, x) for x, y in _behind_a_subnormal(of[1], of[0], bits)]
    rows = [Edge(_behind_a_subnormal(*of, bits)), Edge(of_b)]
    rows += [Edge(_in_blocks(first, last, size), (2.0**a, 2.0**b)) for first, last, a, b in _ENDS]
    rows += [row for row in _of_exponents(kind, profile, of) if has_all((row.pairs, 0.0), of)]
    found: dict[str, Unsigned] = {}
    for n, (name, fmt) in enumerate(zip("ab", of, strict=True)):
        codes = np.zeros((len(rows), kind.width), np.uint32)
        for row, edge in zip(codes, rows, strict=True):
            row[: len(edge.pairs)] = [_code(pair[n], fmt) for pair in edge.pairs]
        found |= operand(name, codes, _blocks(kind, fmt, rows, n))
        if fmt.name == CHOICES[WIDEST]:  # y, which no scale multiplies
            found |= {name: codes, f"y_{name}": codes.astype(np.uint16)}
    return found


def _in_blocks(first: Pairs, last: Pairs, size: int) -> Pairs:
    """Return the pairs of two blocks, the first one filled with zeros."""
    return [*first, *[(0.0, 0.0)] * (size - len(first)), *last] if last else first


def _of_exponents(kind: Kind, profile: DotProfile, of: tuple[Format, Format]) -> Iterator[Edge]:
    """Yield rows in which exponents decide; without scales, an earlier chunk has the sum c."""
    if profile.needs_scales:
        scales = formats[kind.record.scale_format]
        for (pairs, c), *codes in scaled_rows_of_exponents(profile, of, scales):
            if c != 0:
                continue
            first, others = ((scales.value(one), scales.value(other)) for one, other in codes)
            yield Edge([*pairs], _ONES, first, others)
    if profile.chunk and profile.family != "gst_fdpa":
        for pairs, c in [*rows_of_exponents(profile, of), *rows_across_chunks(profile, of)]:
            if c == 0:
                yield Edge([*pairs])
            elif 2 * profile.chunk <= kind.parameters["scale_block"]:
                significand, exponent = math.frexp(c)
                x, y = powers(exponent - 1, of)
                before: Pairs = [(2 * significand * x, y)]
                yield Edge(_in_blocks(before, [*pairs], profile.chunk))
    yield from (Edge([*pairs]) for pairs, c in rows_of_infinities(profile, of) if c == 0)


def special_scales(kind: Kind) -> Arrays:
    """Return rows with a block of small numbers, in which one operand has a special scale.

    In some rows, the operand with this scale is all zeros. The other scales are 1, or 2^-4 in FP4.
    """
    given = _SPECIAL_SCALES[kind.record.name]
    of_zeros = [bits for bits in given if bits << 1 == 0 or (bits >> 23 & 255) == 255]
    rows = [(bits, _ONE, 1) for bits in given] + [(bits, _ONE, 0) for bits in of_zeros]
    if kind.record.has_overall:
        rows += [(_ONE, bits, 1) for bits in _SPECIAL_WHOLES]
        rows += [(_ONE, bits, 0) for bits in _SPECIAL_WHOLES[:4]]
    count, size = len(rows), kind.parameters["scale_block"]
    found: dict[str, Unsigned] = {}
    for n, (name, of) in enumerate(zip("ab", kind.formats, strict=True)):
        fmt, own = formats[of], slice(n * count, (n + 1) * count)
        codes = np.full((2 * count, kind.width), encode(_small(fmt), fmt), np.uint32)
        scale = np.full((2 * count, -(-kind.width // size)), _ONE, np.uint32)
        scale[:] = _SIXTEENTH if fmt.bits < 8 else _ONE
        overall = np.full(2 * count, _ONE, np.uint32)
        scale[own, 0], overall[own] = [row[0] for row in rows], [row[1] for row in rows]
        codes[own] *= np.array([[row[2]] for row in rows], np.uint32)
        choice = np.full(scale.shape, CHOICES.index(of), np.uint8)
        found |= operand(name, codes, Blocks(choice, scale, overall, size, kind.record))
    return found


def _small(fmt: Format) -> float:
    """Return a number so small that a block of such numbers stays below the largest scale."""
    return 0.5 if fmt.bits < 8 else 0.125


def _code(number: float, fmt: Format) -> int:
    """Return the code of a number, or 0 for NaN if the format lacks NaN."""
    if math.isnan(number) and not fmt.nan_codes:
        return 0
    return encode(number, fmt, "rne", SpecialCases(overflow="ieee"))


def _behind_a_subnormal(one: Format, other: Format, bits: int) -> Pairs:
    """Return a product with the smallest number of a format, and a product that is cut next to it.

    The second would not be cut if a subnormal number had the exponent of its leading one.
    """
    top = other.value(encode(other.largest, other) & ~((1 << other.mantissa_bits) - 1))
    smallest = one.smallest_exponent + other.smallest_exponent
    cut = max(one.smallest_exponent + int(np.log2(top)) - bits - 1, smallest)
    small = 2.0**one.smallest_exponent, 2.0 ** (cut - one.smallest_exponent)
    return [(one.value(1), top), small]


def _blocks(kind: Kind, fmt: Format, rows: list[Edge], n: int) -> Blocks:
    """Return the blocks of each row of operand n."""
    record, block = kind.record, kind.parameters["scale_block"]
    whole = np.array([row.whole[n] for row in rows])
    each = np.array([[row.first[n], row.others[n]] for row in rows])
    each = np.repeat(each, (1, kind.width // block - 1), axis=1)
    overall = whole if record.has_overall else np.ones(len(rows))
    factor = each if record.has_overall else each * whole[:, np.newaxis]
    scale = (1 / factor if record.divides else factor).astype(np.float32)
    choice = np.full(scale.shape, CHOICES.index(fmt.name), np.uint8)
    return Blocks(choice, bits32(scale), bits32(overall.astype(np.float32)), block, record)
