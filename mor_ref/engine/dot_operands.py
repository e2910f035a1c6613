"""Operands of dot products: rows of numbers with their exponents, in whole chunks.

Each number is a binary64 that stands for an integer times a power of two: products of two of them
are exact, and no mode of the processor changes an exact result.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, code_dtype, in_order
from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.engine.decoding import decode
from mor_ref.engine.kernel import Direct, integer_kernel

_WHOLE_ROW = 1 << 62
_TABLE_BITS, _SHORT_TABLE_BITS = 16, 8  # of formats whose numbers are looked up
_STRIP = 1 << 14  # codes that are looked up at once
_FEW = 1 << 10  # rows
_NO_EXPONENT = -8192  # of a zero: the sum of four is below all others, and fits 16 bits


class Operand(NamedTuple):
    """The numbers of rows, (n, K), and those of their scales, (n, blocks), if there are any.

    Numbers are those of `codes`, if tables have what follows from these. A scale has a significand
    of `scale_bits`, is a multiple of 2^scale_unit and below 2^scale_top; the smallest normal one
    has the exponent `lowest_scale`.
    """

    value: NDArray[np.float64] | None
    fmt: Format
    scales: NDArray[np.float64] | None = None
    block: int = _WHOLE_ROW
    scale_bits: int = 0
    scale_unit: int = 0
    scale_top: int = 0
    lowest_scale: int = 0
    codes: Bits | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and that of their numbers."""
        numbers: Any = self.codes if self.value is None else self.value
        return numbers.shape  # type: ignore[no-any-return]

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers of the rows."""
        if self.value is not None:
            return self.value
        return _looked_up(_numbers(self.fmt), np.asarray(self.codes))

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
    numbers = None if is_known else numbers_of(codes, fmt, profile.ignored_bits)
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
    (rows, columns), codes = operand.shape, operand.codes
    shape = rows, *_chunks_of(profile, columns)
    wholes = rows if has_wholes else 0
    value, exponent = np.empty(shape, np.float64), np.empty(shape, np.int16)
    special, whole = np.empty(shape[:2], np.bool_), np.empty((wholes, *shape[1:]), np.int64)
    in_chunks = value, exponent, special, whole
    scale, scale_exponent = _scales_of(operand)
    block = np.int64(max(operand.block, 1))
    if codes is not None and profile.family not in _CHANGED:
        codes = in_order(codes)
        kind = codes.dtype, codes.flags.num
        _fill_from_codes(kind, codes, _tables(operand.fmt, has_wholes), *in_chunks)
    else:
        _fill(operand, profile, scale, scale_exponent, *in_chunks)
    if profile.family == "exact" and operand.scales is not None:
        special |= ~np.isfinite(scale).all(axis=1, keepdims=True)
    return Rows(value, whole, exponent, special, scale, scale_exponent, block)


# Families whose numbers are not those of codes alone.
_CHANGED = frozenset({"st_fdpa", "ftz_mul_add"})


@functools.lru_cache(maxsize=1024)
def _chunks_of(profile: DotProfile, columns: int) -> tuple[int, int]:
    """DOT-003: return how many chunks are summed at once, and their length."""
    length = chunk_length(profile)
    if length == 0:
        return 1, columns
    inner = 1 if profile.family == "f32_fma" else profile.chunk
    return chunk_count(profile, columns) * length // inner, inner


class Tables(NamedTuple):
    """What follows from each code of a format; there are integers only if a rule takes them."""

    number: NDArray[np.float64]
    exponent: NDArray[np.int16]
    whole: NDArray[np.int64]


@functools.cache
def _tables(fmt: Format, has_wholes: bool) -> Tables:
    whole = _wholes(fmt) if has_wholes else np.empty(0, np.int64)
    return Tables(_numbers(fmt), _exponents(fmt), whole)


@integer_kernel
def fill_from_codes(codes, tables, value, exponent, special, whole):
    """DOT-003 to DOT-005: fill chunks with the numbers of codes, and the last one with zeros."""
    rows, columns = codes.shape
    inner = value.shape[2]
    for i in range(rows):
        for chunk in range(value.shape[1]):
            start = chunk * inner
            count, has_special = max(0, min(inner, columns - start)), False
            for k in range(count):
                code = codes[i, start + k]
                number = tables.number[code]
                value[i, chunk, k], exponent[i, chunk, k] = number, tables.exponent[code]
                has_special = has_special or not np.isfinite(number)
                if whole.shape[0] != 0:
                    whole[i, chunk, k] = tables.whole[code]
            for k in range(count, inner):
                value[i, chunk, k], exponent[i, chunk, k] = 0.0, _NO_EXPONENT
                if whole.shape[0] != 0:
                    whole[i, chunk, k] = 0
            special[i, chunk] = has_special


_fill_from_codes = Direct(fill_from_codes)


def _fill(
    operand: Operand,
    profile: DotProfile,
    scale: NDArray[np.float64],
    scale_exponent: NDArray[np.int16],
    value: NDArray[np.float64],
    exponent: NDArray[np.int16],
    special: NDArray[np.bool_],
    whole: NDArray[np.int64],
) -> None:
    """Fill chunks with the numbers of an operand, which may be scaled or flushed first."""
    numbers, fmt = operand.numbers, operand.fmt
    exponents = exponents_of(numbers, fmt.smallest_exponent, _NO_EXPONENT)
    if profile.family == "st_fdpa" and operand.scales is not None:
        block_of_column = np.arange(numbers.shape[1]) // operand.block
        numbers = numbers * scale[:, block_of_column]
        scaled = exponents + scale_exponent[:, block_of_column]
        exponents = np.where(numbers == 0, _NO_EXPONENT, scaled).astype(np.int16)
    if profile.family == "ftz_mul_add":  # DOT-016: a subnormal operand and a zero are +0
        numbers = np.where(np.abs(numbers) < 2.0**fmt.smallest_exponent, 0.0, numbers)
    rows, columns = numbers.shape
    for room, of_row, zero in ((value, numbers, 0), (exponent, exponents, _NO_EXPONENT)):
        flat = room.reshape(rows, -1)
        flat[:, :columns], flat[:, columns:] = of_row, zero
    if _is_finite(fmt) and operand.scales is None:
        special[:] = False
    else:
        with np.errstate(invalid="ignore"):  # opposite infinities; no sum of numbers is that large
            special[:] = ~np.isfinite(value.sum(axis=2))
    if whole.size:
        whole[:] = wholes_of(value, fmt)


def _is_finite(fmt: Format) -> bool:
    """Return whether a format has neither infinities nor NaN."""
    return fmt.infinity_code is None and fmt.canonical_nan_code is None


def _ones(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
    return np.ones((rows, 1)), np.zeros((rows, 1), np.int16)


_no_scales = functools.lru_cache(_ones)  # those of calls in a loop; nobody writes to them


def wholes_of(value: NDArray[np.float64], fmt: Format) -> NDArray[np.float64]:
    """Return numbers in units of the smallest one of their format, as far as they are finite."""
    return np.ldexp(np.where(np.isfinite(value), value, 0.0), -unit_of(fmt))


def _scales_of(operand: Operand) -> tuple[NDArray[np.float64], NDArray[np.int16]]:
    """DOT-006: the numbers and exponents of scales; one more block of ones is behind the last."""
    rows = operand.shape[0]
    if operand.scales is None:
        return _no_scales(rows) if rows <= _FEW else _ones(rows)
    scales = np.pad(operand.scales, ((0, 0), (0, 1)), constant_values=1.0)
    return scales, exponents_of(scales, operand.lowest_scale, _NO_EXPONENT)
