"""The chapter on decoding: by arithmetic, or by a table that was made by arithmetic."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.arrays import Bits
from mor_ref.definitions.format import Format
from mor_ref.definitions.table_format import ElementFormat, TableFormat
from mor_ref.engine.intrinsics import bits_of, shift_left, shift_right, use_full_vectors
from mor_ref.engine.kernel import Direct, integer_kernel, step
from mor_ref.engine.parallel import for_each_slice, thread_count

_U = np.uint32
_I = np.int32
_F = np.float32
_LOWEST = -126  # exponent of a normal binary32 number
_NAN = 0x7FFF_FFFF
_NEVER = 0xFFFF_FFFF  # as a code, only a NaN of 32 bits; as a magnitude, none


class Layout(NamedTuple):
    """A format as 32-bit words."""

    sign_bit: np.uint32
    mantissa_bits: np.uint32
    smallest_field: np.uint32  # the exponent field of the smallest normal number
    unit_at_field_zero: np.uint32  # a unit is 2^(field + this), modulo 2^32
    infinity_magnitude: np.uint32
    first_nan_magnitude: np.uint32
    nan_code: np.uint32
    twos_complement_count: np.uint32  # how many codes there are; 0 for another sign
    first_field: np.uint32  # of binary32, less that of the format, in its place
    raised: np.uint32  # how far a mantissa goes up to that of binary32
    smallest: np.float32 | None  # a unit of subnormal numbers, if it is normal in binary32
    numbers: Any = None  # which a table has


class TableLayout(NamedTuple):
    """The bits of the values of a table by their codes; codes that it does not have are NaN."""

    numbers: NDArray[np.uint32]
    mantissa_bits: None = None  # which other formats have


def layout_of_elements(fmt: ElementFormat) -> Layout | TableLayout:
    """Return the row of the format of elements, which may be a table."""
    return _layout_of_table(fmt) if isinstance(fmt, TableFormat) else layout_of(fmt)


@functools.lru_cache
def _layout_of_table(fmt: TableFormat) -> TableLayout:
    numbers = np.full(1 << fmt.bits, _NAN, _U)
    numbers[: fmt.code_count] = np.array(fmt.values, _F).view(_U)
    return TableLayout(numbers)


@functools.lru_cache
def layout_of(fmt: Format) -> Layout:
    """Return the row of a format; for a code that it lacks, a code that never comes."""
    magnitude_nan = fmt.nan_codes and fmt.specials != "fnuz"
    numbers = {
        "sign_bit": fmt.sign_bit,
        "mantissa_bits": fmt.mantissa_bits,
        "smallest_field": 0 if fmt.is_power_of_two else 1,
        "unit_at_field_zero": -(fmt.bias + fmt.mantissa_bits) % 2**32,
        "infinity_magnitude": _NEVER if fmt.infinity_code is None else fmt.infinity_code,
        "first_nan_magnitude": fmt.nan_codes[0][0] if magnitude_nan else _NEVER,
        "nan_code": fmt.sign_bit if fmt.specials == "fnuz" else _NEVER,
        "twos_complement_count": fmt.code_count if fmt.sign == "twos-complement" else 0,
    }
    words = {field: _U(number) for field, number in numbers.items()}
    is_small = fmt.bits <= 8 and not fmt.is_power_of_two
    exponent = fmt.smallest_exponent - fmt.mantissa_bits
    return Layout(
        **words,
        first_field=_U(((127 - fmt.bias) << 23) % 2**32),
        raised=_U(23 - fmt.mantissa_bits),
        smallest=_F(math.ldexp(1.0, exponent)) if is_small and exponent >= _LOWEST else None,
    )


@step
def product_bits(significand, unit):
    """Return the binary32 bits of significand * 2^unit, which is a binary32 number."""
    # The conversion is exact, and no result below the normal numbers meets the processor's
    # arithmetic, which another library may have set to flush them.
    normalised = bits_of(np.float32(_I(significand)))
    field = _I(_I(shift_right(normalised, _U(23))) + _I(unit))
    normal = _U(normalised + _U(unit << _U(23)))
    subnormal = shift_left(significand, _U(min(_U(unit + _U(149)), _U(31))))
    bits = normal if field > _I(0) else subnormal
    return bits if significand != _U(0) else _U(0)


@step
def bits_of_magnitude(magnitude, layout, smallest):
    """Return the binary32 bits of a finite magnitude: of few bits, a shift or a product."""
    hidden = shift_left(_U(1), layout.mantissa_bits)
    if smallest is None:
        field = shift_right(magnitude, layout.mantissa_bits)
        significand = _U(magnitude & _U(hidden - _U(1)))
        significand = _U(significand | hidden) if field >= layout.smallest_field else significand
        unit = _U(max(field, layout.smallest_field) + layout.unit_at_field_zero)
        bits = product_bits(significand, unit)
    else:
        normal = _U(shift_left(magnitude, layout.raised) + layout.first_field)
        subnormal = bits_of(_F(_F(_I(magnitude)) * smallest))
        bits = normal if magnitude >= hidden else subnormal
    return bits


@step
def decoded(code, layout):
    """DEC-001, DEC-002 and DEC-003: the binary32 bits of a code; every NaN becomes 0x7FFFFFFF."""
    return bits_of_code(code, layout, layout.numbers, layout.mantissa_bits)


@step
def bits_of_code(code, layout, numbers, mantissa_bits):
    """Return the binary32 bits of a code: those of a table, or by arithmetic without one."""
    bits = _U(0)
    if numbers is not None:
        bits = numbers[code]
    if mantissa_bits is not None:
        bits = bits_by_arithmetic(code, layout)
    return bits


@step
def bits_by_arithmetic(code, layout):
    """DEC-001 to DEC-003, by arithmetic."""
    negative = _U(code & layout.sign_bit) != _U(0)
    magnitude = _U(code & ~layout.sign_bit)
    is_complement = negative & (layout.twos_complement_count != _U(0))
    magnitude = _U(layout.twos_complement_count - code) if is_complement else magnitude
    bits = bits_of_magnitude(magnitude, layout, layout.smallest)
    bits = _U(0x7F800000) if magnitude == layout.infinity_magnitude else bits
    bits = _U(bits | _U(0x80000000)) if negative else bits
    is_nan = (magnitude >= layout.first_nan_magnitude) | (code == layout.nan_code)
    return _U(0x7FFFFFFF) if is_nan else bits


@integer_kernel
def decode_array(codes, out, layout):
    """Return the binary32 bits of each code."""
    use_full_vectors()
    for i in range(codes.size):
        out[i] = decoded(_U(codes[i]), layout)


@integer_kernel
def look_up(codes, out, table):
    """Return table[code] of each code."""
    for i in range(codes.size):
        out[i] = table[codes[i]]


# ---------------------------------------------------------------------- whole arrays


def decode(codes: Bits, fmt: ElementFormat) -> NDArray[np.float32]:
    """Return the binary32 number of each code."""
    bits = np.empty(codes.size, np.uint32)
    decode_into(bits, np.require(codes, None, ["C", "A"]), fmt, None)
    return bits.view(np.float32)


def decode_into(
    bits: NDArray[np.uint32], codes: Bits, fmt: ElementFormat, threads: int | None
) -> None:
    """Write the binary32 bits of each code."""
    decode_with(loop_for(fmt), bits, codes, threads)


def decode_with(loop: Direct, bits: NDArray[np.uint32], codes: Bits, threads: int | None) -> None:
    """Write the binary32 bits of each code, with the loop of its format; codes lie in order."""
    count, dtype = thread_count(threads, codes.size), codes.dtype
    if count == 1:
        loop(dtype, codes, bits)
    else:

        def decode_slice(part: slice) -> None:
            loop(dtype, codes[part], bits[part])

        for_each_slice(decode_slice, codes.size, count)


@functools.lru_cache
def loop_for(fmt: ElementFormat) -> Direct:
    """Return the loop of a format: a table is slower than the arithmetic of few bits."""
    if isinstance(fmt, TableFormat):
        return Direct(look_up, _layout_of_table(fmt).numbers)
    layout = layout_of(fmt)
    has_table = fmt.bits <= 8 and layout.smallest is None
    return Direct(look_up, _table(fmt)) if has_table else Direct(decode_array, layout)


@functools.lru_cache(maxsize=64)
def _table(fmt: Format) -> NDArray[Any]:
    codes = np.arange(fmt.code_count, dtype=np.uint8)
    codes.flags.writeable = False
    bits = np.empty(codes.size, np.uint32)
    decode_array(codes, bits, layout_of(fmt))
    bits.flags.writeable = False
    return bits
