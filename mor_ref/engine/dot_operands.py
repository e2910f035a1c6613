"""Operands of dot products: rows of numbers with their exponents, in whole chunks.

Each number is a binary64 that stands for an integer times a power of two: products of two of them
are exact, and no mode of the processor changes an exact result. A kernel makes the rows of its
pairs itself: of codes of a byte by a table, and of all others from their numbers in binary32.
"""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits, code_dtype
from mor_ref.definitions.dot import PERIOD, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.engine.decoding import decode
from mor_ref.engine.intrinsics import bits_of_double, float_of
from mor_ref.engine.kernel import step

_WHOLE_ROW = 1 << 62
TABLE_BITS = 8  # of formats whose numbers are looked up
_NO_EXPONENT = -8192  # of a zero: the sum of four is below all others, and fits 16 bits
_D, _S, _I, _U = np.float64, np.int16, np.int64, np.uint64


class Scales(NamedTuple):
    """The numbers of scales, one for each block and a last one; without columns if there are none.

    The smallest normal one has the exponent `lowest`.
    """

    number: NDArray[np.float64]
    block: int
    lowest: int


class Range(NamedTuple):
    """Scales have a significand of so many bits, are multiples of 2^unit, and are below 2^top."""

    bits: int
    unit: int
    top: int


NO_SCALES, NO_RANGE = Scales(np.empty((0, 0)), _WHOLE_ROW, 0), Range(0, 0, 0)


class Operand(NamedTuple):
    """The entries of rows, (n, K), and their scales, if there are any.

    Entries of a byte are codes, and others the bits of binary32.
    """

    entries: Bits
    fmt: Format
    scales: Scales = NO_SCALES
    range: Range = NO_RANGE

    @property
    def in_binary32(self) -> Bits:
        """The entries as the bits of binary32."""
        is_coded = self.fmt.bits <= TABLE_BITS
        return binary32_of(self.entries, self.fmt) if is_coded else self.entries


def operand_of(
    codes: Bits,
    fmt: Format,
    profile: DotProfile,
    scales: Bits | None = None,
    scale_format: Format | None = None,
    block: int = 1,
) -> Operand:
    """Return rows of codes, with the codes of their scales (DOT-005, DOT-006)."""
    if fmt.bits > TABLE_BITS:
        codes = binary32_of(codes, fmt, profile.ignored_bits)
    if scales is None or scale_format is None:
        return Operand(codes, fmt)
    numbers, lowest = scale_numbers(scales, scale_format), scale_format.smallest_exponent
    return Operand(codes, fmt, scales_of(numbers, block, lowest), range_of(scale_format))


def scales_of(numbers: NDArray[np.float64], block: int, lowest: int) -> Scales:
    """DOT-006: return scales for blocks; one more block of ones is behind the last."""
    padded = np.pad(numbers, ((0, 0), (0, 1)), constant_values=1.0)
    return Scales(padded, max(block, 1), lowest)


def range_of(fmt: Format) -> Range:
    """Return the range of scales of a format."""
    return Range(fmt.mantissa_bits + 1, unit_of(fmt), top_of(fmt))


def scale_numbers(codes: Bits, fmt: Format) -> NDArray[np.float64]:
    """DOT-006: return the numbers of scales; the sign of e4m3 is not read."""
    is_unsigned = fmt.name == "e4m3"
    return numbers_of(codes & codes.dtype.type(fmt.sign_bit - 1) if is_unsigned else codes, fmt)


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


def numbers_of(codes: Bits, fmt: Format) -> NDArray[np.float64]:
    """DOT-005: the numbers of codes."""
    if fmt.bits > TABLE_BITS:
        return _widened(binary32_of(codes, fmt))
    return _numbers(fmt).take(codes, mode="clip")  # no code is outside of the table


@functools.cache
def _numbers(fmt: Format) -> NDArray[np.float64]:
    """Return the number of each code of a format, and NaN for bytes that are none."""
    codes = np.arange(fmt.code_count, dtype=code_dtype(fmt))
    numbers = np.full(1 << TABLE_BITS, np.nan)
    numbers[: codes.size] = _widened(binary32_of(codes, fmt))
    return numbers


def binary32_of(codes: Bits, fmt: Format, ignored_bits: int = 0) -> NDArray[np.uint32]:
    """DOT-005: the bits of binary32 of codes whose lowest bits are read as 0."""
    read = codes >> ignored_bits << ignored_bits if ignored_bits else codes
    words = np.ascontiguousarray(read).reshape(-1)
    words.flags.writeable = False
    return decode(words, fmt).view(np.uint32).reshape(codes.shape)


def _widened(bits: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return binary32 bits as binary64, by integers: a mode may flush subnormal numbers."""
    words = bits.astype(np.int64)
    field, fraction = words >> 23 & 0xFF, words & 0x7FFFFF
    significand = np.where(field == 0, fraction, fraction | 0x800000).astype(np.float64)
    finite = np.ldexp(significand, np.maximum(field, 1) - 150)
    magnitudes = np.where(field == 0xFF, np.where(fraction == 0, np.inf, np.nan), finite)
    return np.where(words >> 31 != 0, -magnitudes, magnitudes)


# ---------------------------------------------------------------------- as kernels take them


class Form(NamedTuple):
    """What follows from the format of an operand."""

    numbers: NDArray[np.float64] | None  # of codes; None for the bits of binary32
    lowest: int  # exponent of normal numbers
    smallest: float  # number that is not flushed to +0 (DOT-016)


class Forms(NamedTuple):
    """What follows from the formats and the profile of both operands."""

    a: Form
    b: Form
    length: int  # of a chunk; 0 if all products form one
    inner: int  # products that are summed at once
    has_exponents: bool  # which no exact sum needs
    multiplies: bool  # numbers by their scales
    sees_scales: bool  # in what is special


class Room(NamedTuple):
    """Room for the rows of both operands, without shape; a kernel makes its own if there is none.

    Room for long rows is NumPy's, in large pages.
    """

    value: NDArray[np.float64]
    exponent: NDArray[np.int16]
    special: NDArray[np.bool_]


def room_of(count: int) -> Room:
    """Return room for so many numbers, whether a rule reads all of it or not."""
    return Room(np.empty(count, _D), np.empty(count, _S), np.empty(count, np.bool_))


NO_ROOM = room_of(0)


class Rows(NamedTuple):
    """Rows as loops take them; scales lie apart from the numbers, one for each block.

    Numbers have the shape (n, chunks, products of a chunk).
    """

    value: NDArray[np.float64]
    exponent: NDArray[np.int16]  # if a rule reads them
    special: NDArray[np.bool_]  # whether a number of a chunk is infinite or NaN
    scale: NDArray[np.float64]
    block: np.int64
    lowest_scale: np.int16  # exponent of normal numbers


_WITHOUT_EXPONENTS = frozenset(
    {"exact", "e_fdpa", "f32_fma", "f32_pairwise", "ftz_mul_add", "int32", "switchback"}
)


def forms_of(a: Format, b: Format, profile: DotProfile, *, has_codes: bool) -> Forms:
    """Return what follows from the formats and the profile of both operands."""
    family = profile.family
    form_a, form_b = (
        Form(
            _numbers(fmt) if has_codes else None,
            fmt.smallest_exponent,
            2.0**fmt.smallest_exponent if family == "ftz_mul_add" else 0.0,
        )
        for fmt in (a, b)
    )
    return Forms(
        form_a,
        form_b,
        chunk_length(profile),
        1 if family == "f32_fma" else profile.chunk,
        family not in _WITHOUT_EXPONENTS,
        family == "st_fdpa",
        family == "exact",
    )


@step
def rows_of_pairs(entries_a, entries_b, scales_a, scales_b, forms, pairs, room):
    """DOT-003 to DOT-006: return the rows of pairs, whose last chunks are filled with zeros."""
    rows_a, rows = pairs.last_a - pairs.first_a, pairs.last_b - pairs.first_b
    rows += rows_a
    chunks, inner = 1, entries_a.shape[1]
    if forms.length != 0:
        chunks = (inner + forms.length - 1) // forms.length * (forms.length // forms.inner)
        inner = forms.inner
    exponents = rows if forms.has_exponents else 0
    size = chunks * inner
    if room.value.size < rows * size or room.special.size < rows * chunks:
        room = Room(
            np.empty(rows * size, _D),
            np.empty(exponents * size, _S),
            np.empty(rows * chunks, np.bool_),
        )
    parts = (
        room.value[: rows * size].reshape((rows, chunks, inner)),
        room.exponent[: exponents * size].reshape((exponents, chunks, inner)),
        room.special[: rows * chunks].reshape((rows, chunks)),
    )
    a = rows_in(parts, 0, rows_a, scales_a)
    b = rows_in(parts, rows_a, rows, scales_b)
    fill_rows(a, entries_a, scales_a, forms.a, forms, pairs.first_a)
    fill_rows(b, entries_b, scales_b, forms.b, forms, pairs.first_b)
    return a, b


@step
def rows_in(parts, first, last, scales):
    """Return some of the rows that there is room for."""
    value, exponent, special = parts
    scale = np.empty((last - first, max(scales.number.shape[1], 1)), _D)
    block, lowest = _I(scales.block), _S(scales.lowest)
    part = slice(first, last)
    return Rows(value[part], exponent[part], special[part], scale, block, lowest)


@step
def fill_rows(rows, entries, scales, form, forms, first):
    """DOT-003 to DOT-006: fill rows with numbers and scales from the first row on."""
    for i in range(rows.value.shape[0]):
        has_special_scale = False
        for k in range(rows.scale.shape[1]):
            number = scales.number[first + i, k] if scales.number.shape[1] != 0 else _D(1)
            rows.scale[i, k] = number
            has_special_scale = has_special_scale or not np.isfinite(number)
        fill_row(rows, i, entries[first + i], form, forms)
        for chunk in range(rows.value.shape[1]):
            is_special = forms.sees_scales and has_special_scale
            for k in range(rows.value.shape[2]):
                is_special = is_special or not np.isfinite(rows.value[i, chunk, k])
            rows.special[i, chunk] = is_special


@step
def fill_row(rows, i, entries, form, forms):
    """DOT-003 to DOT-005: fill a row with numbers, and then with zeros."""
    value = rows.value[i].reshape(-1)
    for k in range(entries.size):
        number = number_of(entries[k], form.numbers)
        value[k] = _D(0) if abs(number) < form.smallest else number
    value[entries.size :] = _D(0)
    if forms.has_exponents:
        exponent, lowest = rows.exponent[i].reshape(-1), _S(form.lowest)
        for k in range(value.size):
            exponent[k] = exponent_of(value[k], lowest)
    if forms.multiplies:
        exponent, lowest = rows.exponent[i].reshape(-1), rows.lowest_scale
        for k in range(entries.size):
            scale = rows.scale[i, k // rows.block]
            value[k] = _D(value[k] * scale)
            own = _S(exponent[k] + exponent_of(scale, lowest))
            exponent[k] = own if value[k] != _D(0) else _S(_NO_EXPONENT)


@step
def number_of(entry, numbers):
    """DOT-005: return the number of a code, or of the bits of binary32."""
    return _D(float_of(np.uint32(entry))) if numbers is None else numbers[entry]


@step
def exponent_of(number, lowest):
    """DOT-004: the exponent of a number; that of a zero is below all others."""
    field = _S(_U(bits_of_double(number) >> _U(52)) & _U(0x7FF))
    own = max(_S(field - _S(1023)), lowest)
    return own if number != _D(0) else _S(_NO_EXPONENT)
