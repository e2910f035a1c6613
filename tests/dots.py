"""Dot products of the exact model, of numbers instead of codes."""

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
