"""Rounding to nearest by one addition: how scaled numbers become codes, and codes numbers.

To a magnitude v of exponent p, add 2^(p - M + 23). The sum in binary32 has just the M bits of the
fraction that the format has. It is rounded to nearest even by the addition itself, and its low
bits are the count of units. The codes are those of the chapter on encoding with rne, satfinite
and canonical.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mor_ref.definitions.elements import ElementRule
from mor_ref.definitions.encoding import ElementRounding
from mor_ref.definitions.format import Format
from mor_ref.definitions.table_format import TableFormat
from mor_ref.engine.intrinsics import bits_of, float_of, shift_right, sign_mask
from mor_ref.engine.kernel import step
from mor_ref.engine.table_format import Table, table_of

_U = np.uint32
_F = np.float32
_INFINITY = _U(0x7F800000)
_LARGEST_EXPONENT = 127
_UNIT = _F(2.0**-23)  # of the number that is added


class Grid(NamedTuple):
    """The numbers of a format, for magnitudes in binary32."""

    largest: Any
    shrink: Any  # a power of two that keeps 2^(p - M + 23) within binary32, or None for 1
    grow: Any  # its reciprocal
    smallest_field: Any  # exponent of the smallest normal number, as a field in place
    distance: Any  # from the field of p to that of 2^(p - M + 23)
    dropped_bits: Any
    sign_bit: Any
    signs_of_zero: Any  # None if zeros have the sign bit as all others do
    twos_complement_mask: Any  # that of the codes' bits, or None for a sign and a magnitude
    nan_code: Any
    nan: Any  # the number of that code
    below_zero: Any  # what a negative number counts as without a sign, or None with one
    ties: Any = None  # where those go that are halfway, or None for the even one
    limits: Any = None  # which a table has


class Ties(NamedTuple):
    """How far a number goes on that is halfway, if it was rounded to the other side: in units."""

    units: Any
    count: Any


class SignsOfZero(NamedTuple):
    """The sign bits of the code 0, where they are not that of other codes."""

    small: Any  # where a number other than zero has become zero
    zero: Any


_TIES: dict[ElementRounding, Ties | None] = {
    "rne": None,
    "rna": Ties(_F(1), _U(1)),
    "rnz": Ties(_F(-1), _U(0xFFFFFFFF)),
}


def elements_of(rule: ElementRule) -> Grid | Table:
    """Return the row of the format of elements, which may be a table."""
    if isinstance(rule.fmt, TableFormat):
        return table_of(rule.fmt)
    grid = grid_of(rule.fmt)._replace(ties=_TIES[rule.rounding])
    if not rule.has_negative_zero:
        return grid._replace(signs_of_zero=SignsOfZero(_U(0), _U(0)))
    if rule.drops_sign_of_zero and grid.signs_of_zero is None:
        return grid._replace(signs_of_zero=SignsOfZero(grid.sign_bit, _U(0)))
    return grid


@lru_cache
def grid_of(fmt: Format) -> Grid:
    """Return the row of a format."""
    dropped = 23 - fmt.mantissa_bits
    has_negative_zero = fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"
    is_integer = fmt.sign == "twos-complement"
    nan_code = fmt.largest_code if fmt.canonical_nan_code is None else fmt.canonical_nan_code
    # A format of at most 7 exponent bits has a smallest exponent of -23 at least if its largest
    # number is so large: shrunk, all fits, with the bits of binary32 that decide a tie.
    reaches_too_high = math.frexp(fmt.largest)[1] + dropped > _LARGEST_EXPONENT
    shift = 64 if reaches_too_high else 0
    factors = (_F(2.0**-shift), _F(2.0**shift)) if shift else (None, None)
    numbers = {
        "smallest_field": (fmt.smallest_exponent - shift + 127) << 23,
        "distance": dropped << 23,
        "dropped_bits": dropped,
        "sign_bit": fmt.sign_bit,
        "nan_code": 0 if is_integer else nan_code,
    }
    words: dict[str, Any] = {name: _U(number) for name, number in numbers.items()}
    words["nan"] = _F(fmt.value(int(words["nan_code"])))
    words["signs_of_zero"] = words["twos_complement_mask"] = None
    words["below_zero"] = _F(0) if fmt.sign == "none" else None
    if is_integer:
        words["twos_complement_mask"] = _U(fmt.code_count - 1)
    elif not has_negative_zero:
        words["signs_of_zero"] = SignsOfZero(_U(0), _U(0))
    return Grid(_F(fmt.largest), *factors, **words)


@step
def times(number, factor):
    """Return a product if there is a factor, else the number."""
    if factor is None:
        product = number
    else:
        product = _F(number * factor)
    return product


@step
def after_ties(v, units, value, unit, ties):
    """BLF-014: return the units of a number, and its value, if those halfway do not go to even."""
    if ties is None:
        found = units, value
    else:
        rest = _F(v - value)
        is_turned = _F(rest + rest) == _F(ties.units * unit)
        found = (
            _U(units + (ties.count if is_turned else _U(0))),
            _F(value + (_F(ties.units * unit) if is_turned else _F(0))),
        )
    return found


@step
def nearest(magnitude, grid):
    """Return the code of a magnitude without its sign, and the number that it stands for.

    Saturation comes first, for nothing above the largest number rounds to anything else; under the
    scales of the rules only infinities are far above it (THM-001). A NaN counts as above it.
    """
    v = times(magnitude if magnitude < grid.largest else grid.largest, grid.shrink)
    field = max(_U(bits_of(v) & _INFINITY), grid.smallest_field)  # ENC-002
    power = _U(field + grid.distance)
    shifted = _F(v + float_of(power))  # ENC-003
    even = _U(bits_of(shifted) - power), _F(shifted - float_of(power))
    units, value = after_ties(v, *even, _F(float_of(power) * _UNIT), grid.ties)
    code = _U(units + shift_right(_U(field - grid.smallest_field), grid.dropped_bits))  # ENC-004
    return code, times(value, grid.grow)


@step
def one_sided(scaled, bits, below_zero):
    """BLF-004: return a scaled magnitude; a negative number is zero in a format without sign."""
    if below_zero is None:
        magnitude = scaled
    else:
        is_negative = (sign_mask(bits) != _U(0)) & (scaled == scaled)
        magnitude = below_zero if is_negative else scaled
    return magnitude


@step
def sign_bit_of(code, scaled, grid, signs_of_zero):
    """Return the sign bit of a negative number (ENC-011)."""
    if signs_of_zero is None:
        sign_bit = grid.sign_bit
    else:
        zero_sign_bit = signs_of_zero.small if scaled != _F(0) else signs_of_zero.zero
        sign_bit = grid.sign_bit if code != _U(0) else zero_sign_bit
    return sign_bit


@step
def signed(code, scaled, sign, grid, twos_complement_mask):
    """Return the code with a sign, which is all ones or 0 (ENC-011, ENC-015)."""
    if twos_complement_mask is None:
        signed_code = _U(code | _U(sign & sign_bit_of(code, scaled, grid, grid.signs_of_zero)))
    else:
        signed_code = _U(_U(_U(code ^ sign) - sign) & twos_complement_mask)
    return signed_code


@step
def with_sign(code, scaled, bits, grid):
    """Return the code with the sign of these bits, or that of NaN (ENC-009)."""
    signed_code = signed(code, scaled, sign_mask(bits), grid, grid.twos_complement_mask)
    return signed_code if scaled == scaled else grid.nan_code
