"""Binary32 arithmetic on columns of numbers.

An operation on each pair of binary32 numbers is done in binary64, and its result is rounded to
binary32. That is RN32 of the real result (ART-002), as if there were no rounding before:

* A product of two 24-bit significands has 48 bits, which binary64 holds.
* A sum is inexact in binary64 only if one number is less than 2^-29 of the other, and then both
  ways lead to the larger one.
* A quotient a / b that is not halfway is away from each halfway number h, which has at most 25
  significant bits, by at least |a - h * b| / b, which is more than 2^-50 of h; binary64 errs by
  2^-53 at most. So both are on the same side of h. This holds below the normal numbers as well,
  where h has fewer bits.
"""

import functools
import math
import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import add, mul, sub, truediv
from typing import NamedTuple

from mor_ref.definitions.encoding import ElementRounding, Rounding
from mor_ref.definitions.format import Format
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.exact.arithmetic import quotient
from mor_ref.exact.encoding import encode, nearest_toward_zero
from mor_ref.exact.table_format import codes_in_table
from mor_ref.processor_modes import check_processor

Column = Sequence[float]
AT_ONCE = 1 << 13  # numbers: several columns of so many stay in the cache of a processor
_INFINITY = 0x7F800000  # bits of binary32
_UPPER_HALVES = 1 << 15  # of the numbers of one sign
_IS_LITTLE = sys.byteorder == "little"


def rounded(numbers: Iterable[float]) -> "array[float]":
    """Round binary64 numbers to binary32, ties to even."""
    check_processor()
    values = tuple(numbers)
    packed = _binary32(len(values)).pack(*values)  # beyond the largest number, an infinity
    return array("f", packed)


@functools.lru_cache
def _binary32(count: int) -> struct.Struct:
    """Return the layout of so many binary32 numbers, one after another."""
    return struct.Struct(f"{count}f")


def are_finite(numbers: Column) -> bool:
    """Return whether all of some binary32 numbers are finite: their sum is, in binary64."""
    return math.isfinite(sum(numbers))


def products(a: Column, b: Column) -> "array[float]":
    """Return RN32(a * b) of each pair."""
    return rounded(map(mul, a, b))


def quotients(a: Column, b: Column) -> "array[float]":
    """Return RN32(a / b) of each pair."""
    try:
        return rounded(map(truediv, a, b))
    except ZeroDivisionError:
        return rounded(map(quotient, a, b))


def totals(a: Column, b: Column) -> "array[float]":
    """Return RN32(a + b) of each pair."""
    return rounded(map(add, a, b))


def differences(a: Column, b: Column) -> "array[float]":
    """Return RN32(a - b) of each pair."""
    return rounded(map(sub, a, b))


AnyRounding = Rounding | ElementRounding


def encoded(numbers: Column, fmt: ElementFormat, rounding: AnyRounding = "rne") -> list[int]:
    """Return the codes of binary32 numbers (ENC-001, BLF-014)."""
    if isinstance(fmt, TableFormat):
        return codes_in_table(numbers, fmt)
    tables = _tables(fmt, rounding)
    if tables is None:
        return _searched(numbers, fmt, rounding)
    upper, lower = halves_of(numbers)
    exact, above = tables
    if not lower.tobytes().strip(b"\0"):
        return list(map(exact.__getitem__, upper))
    return [above[u] if low else exact[u] for u, low in zip(upper, lower, strict=True)]


def _searched(numbers: Column, fmt: Format, rounding: AnyRounding) -> list[int]:
    above, codes = _steps(fmt, rounding, 1.0)
    below, negative_codes = _steps(fmt, rounding, -1.0)

    def special(x: float) -> int:  # NaN or a zero
        return _code(x, fmt, rounding)

    return [
        codes[bisect_right(above, x)]
        if x > 0
        else negative_codes[bisect_right(below, -x)]
        if x < 0
        else special(x)
        for x in numbers
    ]


def halves_of(numbers: Column) -> "tuple[array[int], array[int]]":
    """Return the upper and the lower 16 bits of binary32 numbers."""
    words = numbers if isinstance(numbers, array) else rounded(numbers)
    halves = array("H", words.tobytes())
    return (halves[1::2], halves[::2]) if _IS_LITTLE else (halves[::2], halves[1::2])


def decoded(codes: Iterable[int], fmt: ElementFormat) -> list[float]:
    """Return the numbers that codes stand for (DEC-001)."""
    return list(map(_values(fmt).__getitem__, codes))


@functools.lru_cache
def _values(fmt: ElementFormat) -> list[float]:
    return [fmt.value(code) for code in range(fmt.code_count)]


class _Tables(NamedTuple):
    """Codes of binary32 numbers by their upper 16 bits.

    The lower 16 bits are 0 for `exact`, and others for `above`: which others is no matter.
    """

    exact: list[int]
    above: list[int]


@functools.lru_cache
def _tables(fmt: Format, rounding: AnyRounding) -> _Tables | None:
    """Return the codes by the upper bits of numbers; None if lower bits decide as well.

    They do not if each magnitude at which the code changes has at most 8 significant bits, or is
    the next one above such a number.
    """
    tables = _Tables([], [])
    for sign in (1.0, -1.0):
        magnitudes, codes = _steps(fmt, rounding, sign)
        changes = [_bits_of(magnitude) for magnitude in magnitudes]
        if any(bits & 0xFFFF > 1 for bits in changes):
            return None
        zero, nan = (_code(math.copysign(x, sign), fmt, rounding) for x in (0.0, math.nan))
        exact, above = [zero], list[int]()
        for code, bits in zip(codes, [*changes, _INFINITY + 1], strict=True):
            exact += [code] * ((bits + 0xFFFF >> 16) - len(exact))
            above += [code] * ((bits >> 16) - len(above))
        tables.exact.extend(exact + [nan] * (_UPPER_HALVES - len(exact)))
        tables.above.extend(above + [nan] * (_UPPER_HALVES - len(above)))
    return tables


@functools.lru_cache
def _steps(fmt: Format, rounding: AnyRounding, sign: float) -> tuple[list[float], list[int]]:
    """Return the magnitudes at which the code of a number changes, and the codes between them.

    They are searched with the encoder, whose values never fall where numbers rise.
    """
    least, most = 1, _INFINITY
    codes = {bits: _code(sign * _number_of(bits), fmt, rounding) for bits in (least, most)}
    magnitudes: list[float] = []
    between = [codes[least]]
    open_ranges = [(least, most)]
    while open_ranges:
        low, high = open_ranges.pop()
        if codes[low] == codes[high]:
            continue
        if high == low + 1:
            magnitudes.append(_number_of(high))
            between.append(codes[high])
            continue
        middle = (low + high) // 2
        codes[middle] = _code(sign * _number_of(middle), fmt, rounding)
        open_ranges += [(middle, high), (low, middle)]
    return magnitudes, between


def _code(x: float, fmt: Format, rounding: AnyRounding) -> int:
    return nearest_toward_zero(x, fmt) if rounding == "rnz" else encode(x, fmt, rounding)


def _bits_of(number: float) -> int:
    """Return the bits of a binary32 number."""
    return int.from_bytes(struct.pack("<f", number), "little")


def _number_of(bits: int) -> float:
    """Return the binary32 number of these bits."""
    (number,) = struct.unpack("<f", bits.to_bytes(4, "little"))
    return float(number)
