"""Rows of dot products that show the signs of zeros, flushes of instructions, and a c in f16."""

import numpy as np

from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import Pairs, Row, arrays_of
from mor_ref.operations.operation import Arrays

_ZERO, _NEGATIVE = (0.0, 1.0), (0.0, -1.0)  # products of +0 and of -0
_ROOT, _LOW = 2.0**-63, 2.0**-126  # the smallest normal number of binary32, and its root
_OF_F16 = 2.0**-24  # the smallest number of f16


def negative_zeros(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return rows of whole chunks whose products are all -0, or all but one, with zeros of c."""
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
    scales, rows = formats[scale_format], negative_zeros(profile, of, length)
    one = scales.bias << scales.mantissa_bits
    shape = len(rows["c"]), -(-length // block)
    both = {name: np.full(shape, one, code_dtype(scales)) for name in ("scale_a", "scale_b")}
    return {**rows, **both}


def negative_scales(
    profile: DotProfile, of: tuple[Format, Format], length: int, scale_format: str, block: int
) -> Arrays:
    """Return the same rows with scales of -1 and 1, whose sums of +0 they make -0."""
    rows = negative_zeros_with_scales(profile, of, length, scale_format, block)
    sign = np.array(formats[scale_format].sign_bit, rows["scale_a"].dtype)
    return {**rows, "scale_a": rows["scale_a"] | sign}


def flushed_by_instructions(profile: DotProfile, of: tuple[Format, Format]) -> Arrays:
    """Return two instructions whose c becomes -0 in one chunk after the other, then products of -0.

    The result is +0 if an instruction starts behind that chunk.
    """
    chunk, length = profile.chunk, 2 * profile.flushed_every
    rows: list[Row] = []
    for first in range(0, length - chunk, chunk):
        small = [(_ROOT, _ROOT), *[_ZERO] * (chunk - 1)]
        negative = [_NEGATIVE] * (length - first - chunk)
        rows.append(([*[_ZERO] * first, *small, *negative], -1.5 * _LOW))
    return arrays_of(rows, profile, of, length)


def subnormal_starts(profile: DotProfile, of: tuple[Format, Format], length: int) -> Arrays:
    """Return a subnormal c of f16, whose exponent cuts products, in the first chunk or after it."""
    small, zeros = (_OF_F16, 2 * _OF_F16), [_ZERO] * profile.chunk
    rows: list[Row] = [([small, small], sign * _OF_F16) for sign in (1, -1)]
    rows += [([small, small, *zeros[2:], small, small], _OF_F16), ([*zeros, small, small], _OF_F16)]
    return arrays_of([row for row in rows if len(row[0]) <= length], profile, of, length)
