"""Sums of chunks of dot products that are rounded otherwise, as steps of the exact model."""

import math
from dataclasses import replace
from fractions import Fraction

from mor_ref import formats
from mor_ref.exact import dot_nvidia
from mor_ref.exact.dot_terms import rounded


def are_finite(terms, c):
    """Return whether all terms and c are numbers."""
    return all(math.isfinite(x) for x in (*(term.value for term in terms), c))


def changed_sum(more, negative=0.0):
    """Return a sum to which a function of all terms and c, in units, adds more.

    A negative sum that becomes 0 is `negative`.
    """

    def cut_chunk(reference, terms, c, profile):
        found = reference(terms, c, profile)
        if found.exponent is None or not are_finite(terms, c):
            return found
        unit = Fraction(2) ** (found.exponent - profile.fraction_bits)
        value = (found.cut_sum + more([t.value / unit for t in terms], Fraction(c) / unit)) * unit
        number = dot_nvidia.result(value, profile)
        return replace(found, c=negative if number == 0 and value < 0 else number)

    return cut_chunk


def lost(x, rounding):
    """Return how much more a rounding has of a number than a cut."""
    return rounding(x) - math.trunc(x)


def rounded_by(rounding, value, profile):
    """Return a sum in the format of the result, without a negative zero."""
    return rounded(value, profile.result_bits, formats[profile.result], rounding) + 0.0


def to_nearest(_, value, profile):
    """Return a sum in the format of the result, rounded the other way."""
    return rounded_by("rne" if profile.result == "f32" else "rtz", value, profile)
