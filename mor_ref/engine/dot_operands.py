"""Operands of dot products: rows of numbers with their exponents, in whole chunks.

Each number is a binary64 that stands for an integer times a power of two: products of two of them
are exact, and no mode of the processor changes an exact result.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, code_dtype
from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.engine.decoding import decode

_WHOLE_ROW = 1 << 62
_TABLE_BITS, _SHORT_TABLE_BITS = 16, 8  # of formats whose numbers are looked up
_STRIP = 1 << 14  # codes that are looked up at once
_NO_EXPONENT = -8192  # of a zero: the sum of four is below all others, and fits 16 bits


class Operand(NamedTuple):
    """The numbers of rows, (n, K), and those of their scales, (n, blocks), if there are any.

    A scale has a significand of `scale_bits`, is a multiple of 2^scale_unit and below
    2^scale_top; the smallest normal one has the exponent `lowest_scale`.
    """

    value: NDArray[np.float64]
    fmt: Format
    scales: NDArray[np.float64] | None = None
    block: int = _WHOLE_ROW
    scale_bits: int = 0
    scale_unit: int = 0
    scale_top: int = 0
    lowest_scale: int = 0
    codes: Bits | None = None  # of the numbers, if tables have what follows from them

    def scaled(self, scales: NDArray[np.float64], fmt: Format, block: int) -> "Operand":
        """Return the same rows with scales, which are numbers of a format."""
        return self._replace(
            scales=scales,
            block=block,
            scale_bits=fmt.mantissa_bits + 1,
            scale_unit=unit_of(fmt),
            scale_top=top_of(fmt),
            lowest_scale=fmt.smallest_exponent,
        )


def operand_of(
    codes: Bits,
    fmt: Format,
    profile: DotProfile,
    scales: Bits | None = None,
    scale_format: Format | None = None,
    block: int = 1,
) -> Operand:
    """Return rows of codes, with the codes of their scales (DOT-005, DOT-006)."""
    is_known = _is_known(codes, fmt, profile.ignored_bits)
    numbers = numbers_of(codes, fmt, profile.ignored_bits)
    plain = Operand(numbers, fmt, codes=codes if is_known else None)
    if scales is None or scale_format is None:
        return plain
    return plain.scaled(scale_numbers(scales, scale_format), scale_format, block)


def scale_numbers(codes: Bits, fmt: Format) -> NDArray[np.float64]:
    """DOT-006: return the numbers of scales; the sign of e4m3 is not read."""
    is_unsigned = fmt.name == "e4m3"
    return numbers_of(codes & codes.dtype.type(fmt.sign_bit - 1) if is_unsigned else codes, fmt)


class Rows(NamedTuple):
    """An operand as loops take it; scales lie apart from the numbers, one for each block.

    Numbers have the shape (n, chunks, products of a chunk).
    """

    value: NDArray[np.float64]
    whole: NDArray[np.int64]  # numbers as integers, if a rule adds up integers
    exponent: NDArray[np.int16]
    special: NDArray[np.bool_]  # whether a number of a chunk is infinite or NaN
    scale: NDArray[np.float64]
    scale_exponent: NDArray[np.int16]
    block: np.int64


def unit_of(fmt: Format) -> int:
    """Return the exponent of the last bit of the smallest number of a format."""
    return fmt.smallest_exponent - fmt.mantissa_bits


def top_of(fmt: Format) -> int:
    """Return an exponent above all finite numbers of a format, -128 of int8 among them."""
    return int(np.frexp(fmt.largest)[1]) + 1


def chunk_length(profile: DotProfile) -> int:
    """DOT-003: the number of products of a chunk; 0 if all products form one chunk."""
    return {"f32_fma": 1, "promoted": PERIOD}.get(profile.family, profile.chunk)


def chunk_count(profile: DotProfile, columns: int) -> int:
    """DOT-003: the number of chunks of a row."""
    length = chunk_length(profile)
    return -(-columns // length) if length else 1


def numbers_of(codes: Bits, fmt: Format, ignored_bits: int = 0) -> NDArray[np.float64]:
    """DOT-005: the numbers of codes whose lowest bits are read as 0."""
    is_known = _is_known(codes, fmt, ignored_bits)
    return _looked_up(_numbers(fmt), codes) if is_known else _computed(codes, fmt, ignored_bits)


def _is_known(codes: Bits, fmt: Format, ignored_bits: int) -> bool:
    """Return whether a table has the numbers of codes; a long one is made for many codes."""
    if ignored_bits or fmt.bits > _TABLE_BITS:
        return False
    return fmt.bits <= _SHORT_TABLE_BITS or codes.size >= fmt.code_count


def _looked_up(table: NDArray[Any], codes: Bits) -> NDArray[Any]:
    """Return the entries of codes, in strips: the indices of a strip stay in the cache."""
    if codes.size <= _STRIP:
        return table.take(codes, mode="clip")
    entries = np.empty(codes.shape, table.dtype)
    flat, room = codes.reshape(-1), entries.reshape(-1)
    for first in range(0, flat.size, _STRIP):
        part = slice(first, first + _STRIP)
        table.take(flat[part], out=room[part], mode="clip")  # no code is outside of the table
    return entries


@functools.cache
def _numbers(fmt: Format) -> NDArray[np.float64]:
    """Return the number of each code of a format."""
    return _computed(np.arange(fmt.code_count, dtype=code_dtype(fmt)), fmt, 0)


@functools.cache
def _exponents(fmt: Format) -> NDArray[np.int16]:
    """DOT-004: return the exponent of each code of a format."""
    return exponents_of(_numbers(fmt), fmt.smallest_exponent, _NO_EXPONENT)


@functools.cache
def _wholes(fmt: Format) -> NDArray[np.int64]:
    """Return the number of each code in units of the smallest one of a format."""
    return wholes_of(_numbers(fmt), fmt).astype(np.int64)


def _computed(codes: Bits, fmt: Format, ignored_bits: int) -> NDArray[np.float64]:
    read = codes >> ignored_bits << ignored_bits if ignored_bits else codes
    words = np.ascontiguousarray(read).reshape(-1)
    words.flags.writeable = False
    numbers = decode(words, fmt).view(np.uint32).astype(np.int64).reshape(codes.shape)
    return _widened(numbers)


def _widened(words: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return binary32 bits as binary64, by integers: a mode may flush subnormal numbers."""
    field, fraction = words >> 23 & 0xFF, words & 0x7FFFFF
    significand = np.where(field == 0, fraction, fraction | 0x800000).astype(np.float64)
    finite = np.ldexp(significand, np.maximum(field, 1) - 150)
    magnitudes = np.where(field == 0xFF, np.where(fraction == 0, np.inf, np.nan), finite)
    return np.where(words >> 31 != 0, -magnitudes, magnitudes)


def exponents_of(
    numbers: NDArray[np.float64], lowest: int, zero_exponent: int
) -> NDArray[np.int16]:
    """DOT-004: the exponents of numbers; that of a zero is `zero_exponent`."""
    floor_log2 = ((numbers.view(np.int64) >> 52).astype(np.int16) & np.int16(0x7FF)) - np.int16(
        1023
    )
    return np.where(numbers == 0, np.int16(zero_exponent), np.maximum(floor_log2, np.int16(lowest)))


def rows_of(operand: Operand, profile: DotProfile, has_wholes: bool) -> Rows:
    """Return an operand in whole chunks: the last one is filled with zeros (DOT-003)."""
    value, codes, fmt = operand.value, operand.codes, operand.fmt
    if codes is not None:
        exponent = _looked_up(_exponents(fmt), codes)
    else:
        exponent = exponents_of(value, fmt.smallest_exponent, _NO_EXPONENT)
    scale, scale_exponent = _scales_of(operand)
    if profile.family == "st_fdpa" and operand.scales is not None:
        block_of_column = np.arange(value.shape[1]) // operand.block
        value = value * scale[:, block_of_column]
        exponent = np.where(value == 0, _NO_EXPONENT, exponent + scale_exponent[:, block_of_column])
        exponent = exponent.astype(np.int16)
    if profile.family == "ftz_mul_add":  # DOT-016: a subnormal operand and a zero are +0
        value = np.where(np.abs(value) < 2.0**fmt.smallest_exponent, 0.0, value)
    value, exponent = (_in_chunks(x, profile, z) for x, z in ((value, 0), (exponent, _NO_EXPONENT)))
    if _is_finite(fmt) and operand.scales is None:
        special = np.zeros(value.shape[:2], np.bool_)
    else:
        with np.errstate(invalid="ignore"):  # opposite infinities; no sum of numbers is that large
            special = ~np.isfinite(value.sum(axis=2))
    if profile.family == "exact" and operand.scales is not None:
        special |= ~np.isfinite(scale).all(axis=1, keepdims=True)
    if not has_wholes:
        whole = np.empty((0, *value.shape[1:]), np.int64)
    elif codes is not None:
        whole = _in_chunks(_looked_up(_wholes(fmt), codes), profile, 0)
    else:
        whole = wholes_of(value, fmt).astype(np.int64)
    block = np.int64(max(operand.block, 1))
    return Rows(value, whole, exponent, special, scale, scale_exponent, block)


def _is_finite(fmt: Format) -> bool:
    """Return whether a format has neither infinities nor NaN."""
    return fmt.infinity_code is None and fmt.canonical_nan_code is None


def _in_chunks(x: NDArray[Any], profile: DotProfile, zero: int) -> NDArray[Any]:
    """DOT-003: return rows in chunks that are summed at once, filled with zeros."""
    rows, columns = x.shape
    length = chunk_length(profile)
    if length == 0:
        return x.reshape(rows, 1, columns)
    room = chunk_count(profile, columns) * length - columns
    inner = 1 if profile.family == "f32_fma" else profile.chunk
    filled = np.pad(x, ((0, 0), (0, room)), constant_values=zero) if room else x
    return filled.reshape(rows, (columns + room) // inner, inner)


def wholes_of(value: NDArray[np.float64], fmt: Format) -> NDArray[np.float64]:
    """Return numbers in units of the smallest one of their format, as far as they are finite."""
    return np.ldexp(np.where(np.isfinite(value), value, 0.0), -unit_of(fmt))


def _scales_of(operand: Operand) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
    """DOT-006: the numbers and exponents of scales; one more block of ones is behind the last."""
    rows = len(operand.value)
    if operand.scales is None:
        return np.ones((rows, 1)), np.zeros((rows, 1), np.int16)
    scales = np.pad(operand.scales, ((0, 0), (0, 1)), constant_values=1.0)
    return scales, exponents_of(scales, operand.lowest_scale, _NO_EXPONENT)
