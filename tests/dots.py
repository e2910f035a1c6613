"""Dot products of the exact model, of numbers instead of codes, and random codes."""

import numpy as np

import mor_ref
from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DOT_PROFILES, operand_format
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.exact.dot import Scales, dot_chunks
from mor_ref.exact.encoding import encode

_IEEE = SpecialCases(overflow="ieee")


def codes_of(numbers, fmt):
    """Return the codes of numbers that a format has."""
    of = operand_format(fmt)
    is_integer = of.sign == "twos-complement"
    found = [x % 256 if is_integer else encode(float(x), of, None, _IEEE) for x in numbers]
    assert [of.value(code) for code in found] == [float(x) for x in numbers]
    return found


def scales_of(a, b, fmt, block):
    return Scales(codes_of(a, fmt), codes_of(b, fmt), operand_format(fmt), block)


def chunks(profile, a, b, c=0.0, fmt="e4m3", scales=None):
    """Return the chunks of a dot product of numbers."""
    of = operand_format(fmt), operand_format(fmt)
    row = DOT_PROFILES[profile] if isinstance(profile, str) else profile
    return dot_chunks(codes_of(a, fmt), codes_of(b, fmt), c, row, of, scales)


def result(*given, **named):
    return chunks(*given, **named)[-1].c


def drawn_codes(random, fmt, shape, special):
    """Return codes in three kinds of rows: any, close exponents, and small numbers."""
    found = random.integers(0, fmt.code_count, shape, dtype=np.uint32)
    fields, mantissa = 1 << fmt.exponent_bits, (1 << fmt.mantissa_bits) - 1
    kind = random.integers(0, 3, (shape[0], 1))
    near = random.integers(0, fields, (shape[0], 1)) + random.integers(-3, 4, shape)
    near = np.clip(near, 0, fields - 1).astype(np.uint32) << np.uint32(fmt.mantissa_bits)
    found = np.where(kind == 1, found & (fmt.sign_bit | mantissa) | near, found)
    small = fmt.sign_bit | (4 << fmt.mantissa_bits) - 1
    found = np.where(kind == 2, found & small, found)
    found = np.where(random.random(shape) < 0.1, found & fmt.sign_bit, found)
    if not special:
        values = mor_ref.decode(found, fmt)
        found = np.where(np.isfinite(values), found, 1)
    return found.astype(code_dtype(fmt))
