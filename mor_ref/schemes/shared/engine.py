"""The chapter on shared exponents, in integers alone: no mode of the processor changes a bit."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Numbers
from mor_ref.engine.blocks import binary32_rows, binary32_words
from mor_ref.engine.intrinsics import shift_left, shift_right, use_full_vectors
from mor_ref.engine.kernel import integer_kernel, step
from mor_ref.engine.parallel import for_each, thread_count
from mor_ref.engine.strips import STRIP
from mor_ref.schemes.shared.definition import (
    BLOCK,
    LARGEST_EXPONENT,
    NAN_BLOCK,
    PAIR,
    SharedKind,
    SharedProfile,
)

_U = np.uint32
_I = np.int32
_B = np.uint8
_NAN = _U(0x7FFFFFFF)
_INFINITY = _U(0x7F800000)
_SPECIAL = _I(NAN_BLOCK)
_LAST = _I(LARGEST_EXPONENT)
_ROWS = 1 << 14  # blocks of a slice, about


class SharedRule(NamedTuple):
    """The numbers of a kind, and the choices of a profile, as the loops take them."""

    bits: np.int32
    most: np.uint32
    shifts: Any  # None if a kind has none
    carries: Any
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
def nearest(word, lift, rule):
    """SHX-005: a finite number in units of its pair, ties to even; 0 if subnormal.

    `lift` is the exponent of the block less the shift of the pair.
    """
    field = field_of(word)
    distance = _U(min(max(_I(lift - field + _I(24) - rule.bits), _I(1)), _I(26)))
    significand = _U(_U(word & _U(0x007FFFFF)) | _U(0x00800000))
    below = shift_right(significand, distance)
    half = _U(shift_left(_U(1), distance) - _U(1)) >> _U(1)
    units = shift_right(_U(_U(significand + half) + _U(below & _U(1))), distance)
    return _U(0) if field == _I(0) else units


@step
def bits_of_y(size, unit):
    """SHX-006: the bits of size * 2^(unit - 149), which is 0 or normal; size is at most 128."""
    last = _U(0)  # the place of the leading bit
    for k in range(1, 8):
        last = _U(last + _U(size >= _U(1 << k)))
    field = _U(unit + _I(last) - _I(22))
    fraction = _U(shift_left(size, _U(_U(23) - last)) & _U(0x007FFFFF))
    bits = _U(_U(field << _U(23)) | fraction)
    return _U(0) if size == _U(0) else bits


@step
def exponent_of(words, rule, carries):
    """SHX-002 and SHX-004: the exponent of a block."""
    exponent, lost = _I(0), _I(0)
    for i in range(words.size):
        field = field_of(words[i])
        lost = _I(lost | _I(field == _SPECIAL))
        exponent = max(exponent, finite_field(words[i]))
    if lost != _I(0) and rule.nan_blocks:
        return _SPECIAL
    if carries is not None and exponent < _LAST:
        goes_up = _I(0)
        for i in range(words.size):
            is_positive = words[i] < _INFINITY
            goes_up = _I(
                goes_up | _I(is_positive and nearest(words[i], exponent, rule) > rule.most)
            )
        exponent = _I(exponent + goes_up)
    return exponent


@step
def lift_pairs(words, exponent, shifts, taus, lifts):
    """SHX-003: the shift of each pair of a block, and the exponent without it."""
    for j in range(taus.size):
        first, last = PAIR * j, min(PAIR * j + 1, words.size - 1)
        tau = _I(0)
        if shifts is not None:
            largest = max(finite_field(words[first]), finite_field(words[last]))
            tau = _I(largest < exponent and exponent != _SPECIAL)
        taus[j] = _B(tau)
        lifts[first] = lifts[last] = _I(exponent - tau)


@step
def store_row(words, lifts, rule, carries, signs, magnitudes, codes, ys):
    """SHX-005 to SHX-007: the fields of numbers."""
    use_full_vectors()
    for i in range(words.size):
        word = _U(words[i])
        size, is_lost = _U(word & _U(0x7FFFFFFF)), lifts[i] == _SPECIAL
        most = rule.most
        if carries is not None:
            most = _U(most + _U(_U(word >> _U(31)) & _U(lifts[i] < _LAST)))
        limited = min(nearest(word, lifts[i], rule), most)
        finite = rule.most if size == _INFINITY else limited
        magnitude = _U(0) if is_lost or size > _INFINITY else finite
        has_sign = rule.keeps_signs or size >= _U(0x00800000)
        sign = _U(word >> _U(31)) if has_sign and not (is_lost or size > _INFINITY) else _U(0)
        if carries is not None:
            code = _U(_U(_U(0) - magnitude) & _U(255)) if sign else magnitude
        else:
            code = _U(_U(sign << _U(rule.bits)) | magnitude)
        unit = _I(lifts[i] + _I(23) - rule.bits)
        y = _U(bits_of_y(magnitude, unit) | _U(sign << _U(31)))
        passed = word if size == _INFINITY else y
        signs[i], magnitudes[i], codes[i] = _B(sign), _B(magnitude), _B(code)
        ys[i] = _NAN if is_lost or size > _INFINITY else passed


@integer_kernel
def quantize_blocks(words, columns, first, last, rule, fields):
    """SHX-001: rows `first` to `last`, whose words begin with those of the first."""
    use_full_vectors()
    blocks, pairs = -(-columns // BLOCK), -(-columns // PAIR)
    lifts = np.empty(STRIP, _I)
    for row in range(first, last):
        for left in range(0, columns, STRIP):
            right = min(left + STRIP, columns)
            start = (row - first) * columns
            for j in range(left, right, BLOCK):
                end = min(j + BLOCK, columns)
                block, at = words[start + j : start + end], row * pairs + j // PAIR
                exponent = exponent_of(block, rule, rule.carries)
                fields.exponent[row * blocks + j // BLOCK] = _B(exponent)
                taus = fields.tau[at : at + -(-(end - j) // PAIR)]
                lift_pairs(block, exponent, rule.shifts, taus, lifts[j - left : end - left])
            at, to = row * columns + left, row * columns + right
            store_row(
                words[start + left : start + right], lifts, rule, rule.carries,
                fields.sign[at:to], fields.magnitude[at:to], fields.code[at:to], fields.y[at:to],
            )  # fmt: skip


@integer_kernel
def quantize_numbers(words, rule, fields):
    """SHX-005 to SHX-007: numbers that have a shared exponent and a shift each."""
    use_full_vectors()
    lifts = np.empty(words.size, _I)
    for i in range(words.size):
        exponent = _I(fields.exponent[i])
        lifts[i] = exponent if exponent == _SPECIAL else _I(exponent - _I(fields.tau[i]))
    store_row(
        words, lifts, rule, rule.carries,
        fields.sign, fields.magnitude, fields.code, fields.y,
    )  # fmt: skip


def rule_of(kind: SharedKind, profile: SharedProfile) -> SharedRule:
    """Return the numbers of a kind and the choices of a profile (SHX-002 to SHX-007)."""
    return SharedRule(
        _I(kind.magnitude_bits),
        _U((1 << kind.magnitude_bits) - 1),
        True if kind.shifts else None,
        True if kind.carries else None,
        profile.nan_blocks,
        profile.keeps_signs,
    )


def _fields_of(exponent: NDArray[np.uint8], tau: NDArray[np.uint8], size: int) -> SharedFields:
    """Return fields with room for `size` numbers."""
    sign, magnitude, code = (np.empty(size, _B) for _ in range(3))
    return SharedFields(exponent, tau, sign, magnitude, code, np.empty(size, _U))


def quantize_with(
    numbers: Numbers,
    exponent: NDArray[np.uint8],
    tau: NDArray[np.uint8],
    kind: SharedKind,
    profile: SharedProfile,
) -> SharedFields:
    """Quantize numbers that have a shared exponent and a shift each."""
    fields = _fields_of(exponent, tau, numbers.bits.size)
    quantize_numbers(binary32_words(numbers), rule_of(kind, profile), fields)
    return fields


def quantize_shared(
    numbers: Numbers,
    sides: tuple[int, int],
    kind: SharedKind,
    profile: SharedProfile,
    threads: int | None,
) -> SharedFields:
    """Quantize a tensor of `sides` rows and columns."""
    rows, columns = sides
    blocks, pairs = -(-columns // BLOCK), -(-columns // PAIR)
    exponent, tau = np.empty(rows * blocks, _B), np.empty(rows * pairs, _B)
    fields, rule = _fields_of(exponent, tau, rows * columns), rule_of(kind, profile)
    height = max(1, _ROWS * BLOCK // max(columns, 1))

    def work(top: int) -> None:
        bottom = min(top + height, rows)
        words = binary32_rows(numbers, columns, top, bottom)
        quantize_blocks(words, columns, top, bottom, rule, fields)

    if columns:
        for_each(work, range(0, rows, height), thread_count(threads, rows * columns))
    return fields
