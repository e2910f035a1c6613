"""Encoders whose overflow, NaN, zeros or subnormal numbers differ, or that round twice."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.catalogue import formats
from mor_ref.conventions import Rounding, SpecialCases
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import (
    ELEMENTS,
    ENCODING,
    IN_BINARY32,
    SCALED_ELEMENTS,
    is_narrow,
)
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.conversions import (
    encode,
    nan_code,
    overflow_code,
)
from mor_ref.format import Format

Reference = Callable[..., Any]


@deviation(overflow_code, rules=("ENC-007",), domain=("encode",))
def saturates_in_every_mode(
    reference: Reference,
    code: int,
    negative: bool,
    fmt: Format,
    mode: Rounding,
    special: SpecialCases,
) -> int:
    """An overflow gives the largest number, under ieee too."""
    del special
    return int(reference(code, negative, fmt, mode, SpecialCases(overflow="satfinite")))


@deviation(overflow_code, rules=("ENC-006", "ENC-007"), domain=ENCODING)
def no_saturation(
    reference: Reference,
    code: int,
    negative: bool,
    fmt: Format,
    mode: Rounding,
    special: SpecialCases,
) -> int:
    """An overflow gives infinity or NaN under satfinite too, in formats that have one."""
    del special
    return int(reference(code, negative, fmt, mode, SpecialCases(overflow="ieee")))


@deviation(overflow_code, rules=("ENC-007",), domain=ENCODING)
def first_code_above_is_kept(
    reference: Reference, code: int, negative: bool, fmt: Format, *rest: Any
) -> int:
    """Only what is beyond the next code saturates: 464 becomes NaN in e4m3, not 448."""
    if code == fmt.largest_code + 1 and is_narrow(fmt) and fmt.bits == 8:
        return code | (fmt.sign_bit if negative else 0)
    return int(reference(code, negative, fmt, *rest))


@deviation(overflow_code, rules=("ENC-007",), domain=("encode",))
def infinity_stops_at_the_largest(
    reference: Reference, code: int, negative: bool, fmt: Format, mode: Rounding, *rest: Any
) -> int:
    """Overflow ignores the direction of a rounding: rtz too goes to infinity under ieee."""
    del mode
    return int(reference(code, negative, fmt, "rne", *rest))


@deviation(encode, rules=("ENC-007",), domain=("encode",))
def overflow_before_rounding(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """What is above the largest number overflows, also where it would round to it."""
    if math.isfinite(x) and abs(x) > fmt.largest and fmt.sign == "sign-magnitude":
        beyond = math.copysign(2 * fmt.largest, x)
        if math.isfinite(beyond):
            return int(reference(beyond, fmt, *rest, **known))
    return int(reference(x, fmt, *rest, **known))


def _rounded_first(
    narrow: str, reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Encoding after a rounding to a 16-bit format."""
    if is_narrow(fmt) and math.isfinite(x):
        through = formats[narrow]
        x = through.value(reference(x, through, "rne"))
    return int(reference(x, fmt, *rest, **known))


@deviation(encode, rules=("ENC-001",), domain=IN_BINARY32)
def rounded_through_bf16(*arguments: Any, **known: Any) -> int:
    """Numbers become bfloat16 before they are encoded: they are rounded twice."""
    return _rounded_first("bf16", *arguments, **known)


@deviation(encode, rules=("ENC-001",), domain=IN_BINARY32)
def rounded_through_f16(*arguments: Any, **known: Any) -> int:
    """Numbers become binary16 before they are encoded: they are rounded twice."""
    return _rounded_first("f16", *arguments, **known)


@deviation(encode, rules=("ENC-001",), domain=("encode",))
def rounded_through_f32(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """binary64 numbers become binary32 before they are encoded: they are rounded twice."""
    if math.isfinite(x) and x:
        x = math.copysign(rn32(Fraction(abs(x))), x)
    return int(reference(x, fmt, *rest, **known))


@deviation(encode, rules=("ENC-006", "ENC-016"), domain=("encode", "encode_presets"))
def special_cases_ignored(
    reference: Reference,
    x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases | None = None,
    **known: Any,
) -> int:
    """Overflow and NaN are as by default, whatever is asked for: ieee, signed or a preset."""
    del special
    return int(reference(x, fmt, rounding, SpecialCases(), **known))


@deviation(encode, rules=("ENC-002",), domain=("encode",))
def subnormal_inputs_flushed(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Subnormal binary32 inputs count as zero."""
    if abs(x) < 2.0**-126:
        x = math.copysign(0.0, x)
    return int(reference(x, fmt, *rest, **known))


@deviation(encode, rules=("ENC-002",), domain=SCALED_ELEMENTS)
def subnormal_codes_flushed(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Results below the smallest normal number become zero."""
    code = int(reference(x, fmt, *rest, **known))
    magnitude = code & ~fmt.sign_bit
    if is_narrow(fmt) and fmt.exponent_bits and magnitude < 1 << fmt.mantissa_bits:
        return code & fmt.sign_bit
    return code


@deviation(encode, rules=("ENC-011",), domain=ELEMENTS)
def negative_zero_lost(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Negative results that are zero have the code of +0."""
    code = int(reference(x, fmt, *rest, **known))
    is_zero = is_narrow(fmt) and fmt.sign == "sign-magnitude" and code == fmt.sign_bit
    return 0 if is_zero and not math.isnan(x) else code


@deviation(nan_code, rules=("ENC-009", "ENC-010"), domain=("encode",))
def nan_sign_kept(reference: Reference, x: float, fmt: Format, special: SpecialCases) -> int:
    """A NaN keeps its sign under canonical too."""
    del special
    return int(reference(x, fmt, SpecialCases(nan="signed")))


@deviation(nan_code, rules=("ENC-009",), domain=("encode",))
def quiet_nan_of_one_bit(reference: Reference, x: float, fmt: Format, special: SpecialCases) -> int:
    """A NaN is the infinity with the first bit of the mantissa: 0x7FC0 in bf16, 0x7E in e5m2."""
    if fmt.infinity_code is not None and fmt.mantissa_bits > 1:
        sign = int(reference(x, fmt, special)) & fmt.sign_bit
        return fmt.infinity_code | 1 << fmt.mantissa_bits - 1 | sign
    return int(reference(x, fmt, special))


@deviation(nan_code, rules=("ENC-009",), domain=("encode", "policies"))
def nan_payload_truncated(
    reference: Reference, x: float, fmt: Format, special: SpecialCases
) -> int:
    """A NaN in bf16 is the upper half of its bits: infinity, if the payload is in the lower."""
    if fmt.name == "bf16":
        (bits,) = struct.unpack(">Q", struct.pack(">d", x))
        return int(bits >> 48 & 0x8000 | 0x7F80 | bits >> 45 & 0x7F)
    return int(reference(x, fmt, special))


@deviation(nan_code, rules=("ENC-009",), domain=ENCODING)
def nan_swallowed_by_a_clamp(
    reference: Reference, x: float, fmt: Format, special: SpecialCases
) -> int:
    """min(max(x, -largest), largest) comes first and makes a NaN the negative largest number."""
    if not is_narrow(fmt):
        return int(reference(x, fmt, special))
    if fmt.sign == "twos-complement":
        return -fmt.largest_code % fmt.code_count
    return fmt.largest_code | fmt.sign_bit


@deviation(nan_code, rules=("ENC-009",), domain=ENCODING)
def nan_becomes_zero(reference: Reference, x: float, fmt: Format, special: SpecialCases) -> int:
    """A NaN has the code 0."""
    if fmt.sign == "twos-complement" or not is_narrow(fmt):
        return int(reference(x, fmt, special))
    return 0


@deviation(overflow_code, rules=("ENC-015",), domain=("encode", "mx_blocks", "mx"))
def int8_reaches_128(
    reference: Reference, code: int, negative: bool, fmt: Format, *rest: Any
) -> int:
    """Negative numbers of int8_mx reach the code 0x80, which the reference never writes."""
    if fmt.sign == "twos-complement" and negative:
        return fmt.largest_code + 1
    return int(reference(code, negative, fmt, *rest))


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
