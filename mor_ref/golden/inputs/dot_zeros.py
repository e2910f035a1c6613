"""Rows of dot products that show the signs of zeros, flushes of instructions, and a c in f16."""

import numpy as np

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import Pairs, Row, arrays_of, with_scales_of_one
from mor_ref.operations.call import Arrays

_ZERO, _NEGATIVE = (0.0, 1.0), (0.0, -1.0)  # products of +0 and of -0
_ROOT, _LOW = 2.0**-63, 2.0**-126  # the smallest normal number of binary32, and its root
_TIE = 2.0**-75  # its square is half of the smallest number of binary32
_OF_F16 = 2.0**-24  # the smallest number of f16


def negative_zeros(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows of whole chunks: c is zero, and all products, or all but one, are -0."""
    negative: Pairs = [_NEGATIVE] * length
    rows: list[Row] = [
        (negative, -0.0),
        (negative, 0.0),
        ([*negative[1:], _ZERO], -0.0),
    ]
    return arrays_of(rows, profile, of, length)


def negative_zeros_with_scales(
    profile: DotProfile, of: tuple[Format, Format], length: int, scale_format: str, block: int
) -> Arrays:
    """Return the same rows with scales of 1."""
    rows = negative_zeros(profile, of, length)
    return with_scales_of_one(rows, formats[scale_format], block)


def negative_scales(
    profile: DotProfile, of: tuple[Format, Format], length: int, scale_format: str, block: int
) -> Arrays:
    """Return the same rows with scales of -1 and 1, which turn sums of +0 into -0."""
    rows = negative_zeros_with_scales(profile, of, length, scale_format, block)
    sign = np.array(formats[scale_format].sign_bit, rows["scale_a"].dtype)
    return {**rows, "scale_a": rows["scale_a"] | sign}


def flushed_by_instructions(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows of two instructions: c becomes -0 in one chunk, then all products are -0.

    There is a row for each chunk but the last. Its result is +0 if an instruction starts behind
    that chunk.
    """
    chunk = profile.chunk
    rows: list[Row] = []
    for first in range(0, length - chunk, chunk):
        small = [(_ROOT, _ROOT), *[_ZERO] * (chunk - 1)]
        negative = [_NEGATIVE] * (length - first - chunk)
        rows.append(([*[_ZERO] * first, *small, *negative], -1.5 * _LOW))
    return arrays_of(rows, profile, of, length)


def tiny_sums(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return sums that round to a zero of either sign in the last chunk, or in the first one.

    Zeros that fill a row up to a whole instruction would turn a last sum of -0 into +0.
    """
    tiny, tie = (-(2.0**-100), 2.0**-100), (-_TIE, _TIE)
    ahead = [_ZERO] * (length - profile.chunk)
    rows: list[Row] = [([*ahead, tiny], 0.0), ([*ahead, tie], 0.0), ([*ahead, (_TIE, _TIE)], 0.0)]
    rows += [([*ahead, (_TIE, _TIE)], -2 * _TIE**2), ([tiny, *[_NEGATIVE] * (length - 1)], 0.0)]
    return arrays_of(rows, profile, of, length)


def subnormal_starts(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows with a subnormal c in f16: its exponent cuts products of the same chunk."""
    small, zeros = (_OF_F16, 2 * _OF_F16), [_ZERO] * profile.chunk
    rows: list[Row] = [([small, small], sign * _OF_F16) for sign in (1, -1)]
    rows += [([small, small, *zeros[2:], small, small], _OF_F16), ([*zeros, small, small], _OF_F16)]
    return arrays_of([row for row in rows if len(row[0]) <= length], profile, of, length)
