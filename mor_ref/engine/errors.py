"""The chapter on errors: the error of a number, and the sums of a block."""

import numpy as np

from mor_ref.engine.intrinsics import bits_of, float_of
from mor_ref.engine.kernel import step
from mor_ref.engine.strips import segment

_U = np.uint32
_W = np.uint64
_F = np.float32
_MAGNITUDE = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_ONE = _U(0x3F800000)
_BELOW_LOST = _U(0x00008000)  # patterns from the first that bfloat16 rounds to infinity
_NONFINITE = _U(1 << 16)  # in a count that holds the non-zero elements below


@step
def error_terms(x, y):
    """ERR-001: d, r and u of a finite x that is not zero."""
    d = _F(abs(_F(x - y)))
    r = _F(d / abs(x))
    r = r if r < _F(1) else _F(1)
    return d, r, _U(bits_of(_F(_F(1) + r)) - _ONE)


@step
def error_of(bits, y):
    """ERR-001 to ERR-003: u, and a count of one if it counts or if it is lost.

    y is negative where its sign is not that of the number.
    """
    magnitude = _U(bits & _MAGNITUDE)
    _, _, u = error_terms(float_of(magnitude), y)
    return counted(magnitude, u, _U(bits_of(y) & _MAGNITUDE))


@step
def error_of_any(bits, y):
    """ERR-001 to ERR-003, as `error_of`; y is the bits of a number of any sign."""
    magnitude = _U(bits & _MAGNITUDE)
    _, _, u = error_terms(float_of(bits), float_of(y))
    return counted(magnitude, u, _U(y & _MAGNITUDE))


@step
def counted(magnitude, u, y):
    """ERR-002 and ERR-003: u if it counts, and the counts, from the magnitudes of x and y."""
    counts = _U(_U(magnitude - _U(1)) < _U(_INFINITY - _U(1)))
    is_lost = _U(max(magnitude, _U(y + _BELOW_LOST)) >= _INFINITY)
    return _U(u & _U(_U(0) - counts)), _U(counts | _U(is_lost * _NONFINITE))


@step
def add_errors(sums, counts, entry):
    """ERR-004: add the sums of some columns to those of their block."""
    total, nonzero, nonfinite = _W(0), _W(0), _W(0)
    for k in range(sums.size):
        total += _W(sums[k])
        nonzero += _W(_U(counts[k] & _U(_NONFINITE - _U(1))))
        nonfinite += _W(_U(counts[k] >> _U(16)))
    entry[0] += total
    entry[1] += nonzero
    entry[2] += nonfinite


@step
def add_strip(sums, counts, block_errors, part, left, right, block):
    """ERR-004: add the sums of the columns from left to right to each block of a row of blocks."""
    for column in range(left // block.columns, (right - 1) // block.columns + 1):
        first, last = segment(column, block, left, right)
        j = column - part.left // block.columns
        add_errors(sums[first:last], counts[first:last], block_errors[j])
