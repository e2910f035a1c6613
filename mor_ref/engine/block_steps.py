"""The chapter on block formats: the steps that kernels made of formulas call."""

import numpy as np

from mor_ref.engine.decoding import decoded
from mor_ref.engine.encoding import encoded, encoded_as_power_of_two
from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import step
from mor_ref.engine.nearest import nearest, with_sign
from mor_ref.engine.strips import segment

_U = np.uint32
_F = np.float32
_SIGN, _MAGNITUDE, _INFINITY = _U(0x80000000), _U(0x7FFFFFFF), _U(0x7F800000)
_ONE, _HIDDEN, _FRACTION = _U(0x3F800000), _U(0x00800000), _U(0x007FFFFF)
_HALF_HIDDEN = _U(0x00400000)  # 2^-127
_UP, _DOWN = _F(2.0**24), _F(2.0**-24)


# ---------------------------------------------------------------------- functions of formulas


@step
def smaller_of(a, b):
    """Return b if a is above it, else a: a NaN of a stays."""
    if a > b:  # not min, which Numba may give another NaN
        return b
    return a


@step
def larger_of(a, b):
    """Return b if a is below it, else a: a NaN of a stays."""
    if a < b:
        return b
    return a


@step
def square(a):
    """Return a * a."""
    return _F(a * a)


@step
def magnitude_of(a):
    """Return |a|."""
    return float_of(_U(bits_of(a) & _MAGNITUDE))


@step
def unless_zero(a, b):
    """Return b where a is 0, else a."""
    return a if a != _F(0) else b


@step
def pow2(x, turn):
    """Return the power of two of a binade, or the next one if the significand is >= turn."""
    bits = bits_of(x)
    magnitude = _U(bits & _MAGNITUDE)
    is_small = magnitude < _HIDDEN
    normal = float_of(magnitude) * _UP if is_small else float_of(magnitude)
    normal_bits = bits_of(_F(normal))
    goes_up = float_of(_U(_U(normal_bits & _FRACTION) | _ONE)) >= turn
    field = _U(_U(normal_bits & _INFINITY) + (_HIDDEN if goes_up else _U(0)))
    power = _F(float_of(field) * _DOWN) if is_small else float_of(field)
    is_itself = (magnitude == _U(0)) | (magnitude >= _INFINITY)
    return x if is_itself else float_of(_U(bits_of(power) | _U(bits & _SIGN)))


# ---------------------------------------------------------------------- formats


@step
def stored_in_binary32(number):
    """Return a number of binary32, which is stored as it is, and its bits; NaNs are one."""
    bits = bits_of(number)
    return (bits if number == number else _MAGNITUDE), number


@step
def to_nearest(number, row):
    """Return the code of a number that is not negative in a narrow format, and that of the code."""
    code, value = nearest(number, row.grid)
    is_number = number == number
    return code if is_number else row.grid.nan_code, value if is_number else row.nan


@step
def to_format(number, row):
    """Return the code of a number in a format, and the number of the code."""
    target = row.target
    code = encoded(bits_of(number), target, _U)
    if target.twos_complement_count != _U(0) and _U(code & target.sign_bit) != _U(0):
        code = _U(target.twos_complement_count - _U(code ^ target.sign_bit))
    return code, float_of(decoded(code, row.layout))


@step
def to_power_of_two(number, row):
    """Return the code of a number in a format of powers of two, and the number of the code."""
    code = encoded_as_power_of_two(bits_of(number), row.target, _U)
    field = _U(code + row.target.field_offset)
    power = _U(field << _U(23)) if field != _U(0) else _HALF_HIDDEN
    return code, float_of(_MAGNITUDE if code == row.nan_code else power)


# ---------------------------------------------------------------------- elements and their errors


@step
def value_of(code, value, scaled, bits, grid, nan):
    """Return the number of the code of an element, given those of its scaled magnitude."""
    v = with_sign_of(code, value, scaled, bits, grid, grid.signs_of_zero, grid.twos_complement_mask)
    return v if scaled == scaled else nan


@step
def with_sign_of(code, value, scaled, bits, grid, signs_of_zero, twos_complement_mask):
    """Return the number with the sign of its code."""
    if signs_of_zero is None and twos_complement_mask is None:
        v = float_of(_U(bits_of(value) | _U(bits & _SIGN)))
    else:
        is_negative = _U(with_sign(code, scaled, bits, grid) & grid.sign_bit) != _U(0)
        v = _F(-value) if is_negative else value
    return v


@step
def add_from_left(errors, left, right, block, first, row, sums):
    """BLF-005: add the errors of a row of a strip to those of its blocks."""
    for j in range(left // block.columns, (right - 1) // block.columns + 1):
        begin, end = segment(j, block, left, right)
        total = sums[j - first, row]
        for q in range(begin, end):
            total = _F(total + errors[q])
        sums[j - first, row] = total


@step
def add_rows(sums):
    """BLF-005: add up the rows of a block in halves; those that it does not have are zero."""
    half = sums.size // 2
    while half > 0:
        for row in range(half):
            sums[row] = _F(sums[row] + sums[row + half])
        half //= 2
    return sums[0]


@step
def sign_unless_nan(number):
    """Return the sign bit of a number that is not NaN."""
    return _U(bits_of(number) & _SIGN) if number == number else _U(0)
