"""The chapter on shared exponents, in integers alone: no mode of the processor changes a bit."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.definitions.shared import (
    BLOCK,
    LARGEST_EXPONENT,
    NAN_BLOCK,
    PAIR,
    SharedKind,
    SharedProfile,
)
from mor_ref.engine.blocks import binary32_rows
from mor_ref.engine.intrinsics import shift_left, shift_right
from mor_ref.engine.kernel import integer_kernel, step
from mor_ref.engine.parallel import for_each, thread_count

_U = np.uint32
_I = np.int32
_B = np.uint8
_NAN = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_SPECIAL = _I(NAN_BLOCK)
_LAST = _I(LARGEST_EXPONENT)
_ROWS = 1 << 14  # blocks of a slice, about


class Rule(NamedTuple):
    """The numbers of a kind, and the choices of a profile, as the loops take them."""

    bits: np.int32
    most: np.uint32
    shifts: bool
    carries: bool
    nan_blocks: bool
    keeps_signs: bool


class SharedFields(NamedTuple):
    """The fields of a tensor: those of blocks, of pairs and of numbers."""

    exponent: NDArray[np.uint8]
    tau: NDArray[np.uint8]
    sign: NDArray[np.uint8]
    magnitude: NDArray[np.uint8]
    code: NDArray[np.uint8]
    y: NDArray[np.uint32]


@step
def field_of(word):
    """SHX-002: the exponent field."""
    return _I(_U(word >> _U(23)) & _U(255))


@step
def finite_field(word):
    """SHX-003: the exponent field, 0 for infinities and NaN."""
    field = field_of(word)
    return _I(0) if field == _SPECIAL else field


@step
def nearest(word, exponent, tau, rule):
    """SHX-005: a finite number in units of its pair, ties to even; 0 if subnormal."""
    field = field_of(word)
    if field == _I(0):
        return _U(0)
    distance = _U(min(exponent - field - tau + _I(24) - rule.bits, _I(26)))
    significand = _U(_U(word & _U(0x007FFFFF)) | _U(0x00800000))
    below = shift_right(significand, distance)
    half = _U(shift_left(_U(1), distance) - _U(1)) >> _U(1)
    return shift_right(_U(_U(significand + half) + _U(below & _U(1))), distance)


@step
def bits_of_y(size, unit):
    """SHX-006: the bits of size * 2^(unit - 149), which is 0 or normal."""
    if size == _U(0):
        return _U(0)
    last = _I(0)
    while _U(size >> _U(last + _I(1))) != _U(0):
        last = _I(last + _I(1))
    field = _I(unit + last - _I(22))
    fraction = _U(shift_left(size, _U(_I(23) - last)) & _U(0x007FFFFF))
    return _U(_U(_U(field) << _U(23)) | fraction)


@step
def exponent_of(words, start, end, rule):
    """SHX-002 and SHX-004: the exponent of a block."""
    exponent = _I(0)
    for i in range(start, end):
        field = field_of(words[i])
        if field != _SPECIAL:
            exponent = max(exponent, field)
        elif rule.nan_blocks:
            return _SPECIAL
    if rule.carries and exponent < _LAST:
        for i in range(start, end):
            is_positive = words[i] < _INFINITY
            if is_positive and nearest(words[i], exponent, _I(0), rule) > rule.most:
                return _I(exponent + _I(1))
    return exponent


@step
def magnitude_of(word, exponent, tau, rule):
    """SHX-005: the magnitude of a number of a block that is not NaN."""
    size = _U(word & _U(0x7FFFFFFF))
    if size > _INFINITY:
        return _U(0)
    if size == _INFINITY:
        return rule.most
    is_lower = rule.carries and word != size and exponent < _LAST
    return min(nearest(word, exponent, tau, rule), _U(rule.most + _U(is_lower)))


@step
def store(word, exponent, tau, rule, i, fields):
    """SHX-005 to SHX-007: the fields of a number."""
    if exponent == _SPECIAL:
        fields.sign[i], fields.magnitude[i], fields.code[i] = _B(0), _B(0), _B(0)
        fields.y[i] = _NAN
        return
    size = magnitude_of(word, exponent, tau, rule)
    is_nan = _U(word & _U(0x7FFFFFFF)) > _INFINITY
    has_sign = not is_nan and (rule.keeps_signs or field_of(word) != _I(0))
    sign = _U(word >> _U(31)) if has_sign else _U(0)
    fields.sign[i], fields.magnitude[i] = _B(sign), _B(size)
    if rule.carries:
        fields.code[i] = _B(_U(_U(0) - size) & _U(255)) if sign else _B(size)
    else:
        fields.code[i] = _B(shift_left(sign, _U(rule.bits)) | size)
    if is_nan:
        fields.y[i] = _NAN
    elif field_of(word) == _SPECIAL:
        fields.y[i] = word
    else:
        unit = _I(exponent - tau + _I(23) - rule.bits)
        fields.y[i] = _U(bits_of_y(size, unit) | _U(sign << _U(31)))


@integer_kernel
def quantize_blocks(words, columns, first, last, rule, fields):
    """SHX-001: rows `first` to `last`, whose words begin with those of the first."""
    blocks, pairs = -(-columns // BLOCK), -(-columns // PAIR)
    for row in range(first, last):
        for k in range(blocks):
            left, right = k * BLOCK, min(k * BLOCK + BLOCK, columns)
            start = (row - first) * columns
            exponent = exponent_of(words, start + left, start + right, rule)
            fields.exponent[row * blocks + k] = _B(exponent)
            for j in range(left, right, PAIR):
                tau = _I(0)
                end = min(j + PAIR, right)
                if rule.shifts and exponent != _SPECIAL:
                    largest = _I(0)
                    for i in range(j, end):
                        largest = max(largest, finite_field(words[start + i]))
                    tau = min(_I(exponent - largest), _I(1))
                fields.tau[row * pairs + j // PAIR] = _B(tau)
                for i in range(j, end):
                    word = _U(words[start + i])
                    store(word, exponent, tau, rule, row * columns + i, fields)


def quantize_shared(
    numbers: Numbers,
    sides: tuple[int, int],
    kind: SharedKind,
    profile: SharedProfile,
    threads: int | None,
) -> SharedFields:
    """Quantize a tensor of so many rows and columns."""
    rows, columns = sides
    blocks, pairs = -(-columns // BLOCK), -(-columns // PAIR)
    fields = SharedFields(
        np.empty(rows * blocks, _B),
        np.empty(rows * pairs, _B),
        np.empty(rows * columns, _B),
        np.empty(rows * columns, _B),
        np.empty(rows * columns, _B),
        np.empty(rows * columns, _U),
    )
    rule = Rule(
        _I(kind.magnitude_bits),
        _U((1 << kind.magnitude_bits) - 1),
        kind.shifts,
        kind.carries,
        profile.nan_blocks,
        profile.keeps_signs,
    )
    height = max(1, _ROWS * BLOCK // max(columns, 1))

    def work(top: int) -> None:
        bottom = min(top + height, rows)
        words = binary32_rows(numbers, columns, top, bottom)
        quantize_blocks(words, columns, top, bottom, rule, fields)

    if columns:
        for_each(work, range(0, rows, height), thread_count(threads, rows * columns))
    return fields
