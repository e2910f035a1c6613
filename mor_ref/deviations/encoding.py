"""Encoders that differ in NaN, zeros or subnormal numbers, or that round twice."""

import math
import struct
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.encoding import Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import (
    ENCODED,
    IN_MX,
    NVFP4_TE,
    POLICY_SUITES,
    STOCHASTIC,
    STORED,
    is_narrow,
    joined,
)
from mor_ref.deviations.exemptions import (
    COMPUTED,
    FALLS_BACK,
    ZERO_SUMS,
)
from mor_ref.deviations.floating_point import flushed
from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.encoding import encode, nan_code

Reference = Callable[..., Any]
_DEFAULT = SpecialCases()
_SUBNORMAL = ("encode", "encode_presets", "encode_stochastic", *POLICY_SUITES, *IN_MX)
_WITH_SIGNED_NANS = ("encode", "encode_presets", "encode_stochastic")
_NANS_NEXT_TO_INFINITY = tuple(name for name in ENCODED if not name.startswith("nvfp4"))


# ---------------------------------------------------------------------- twice, and not at all


def _small(_x: float, fmt: Format, *_: Any, **__: Any) -> bool:
    return is_narrow(fmt)


def _small_with_zeros(_x: float, fmt: Format, *_: Any, **__: Any) -> bool:
    return is_narrow(fmt) and fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"


def _small_with_subnormals(_x: float, fmt: Format, *_: Any, **__: Any) -> bool:
    return is_narrow(fmt) and fmt.exponent_bits > 0


def _wider_than_binary32(x: float, *_: Any, **__: Any) -> bool:
    """Return whether a number needs a wider source: a Python float does not name its source."""
    return not math.isnan(x) and rn32_of_binary64(x) != x


def _holds_subnormals(
    _x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases = _DEFAULT,
    **_: Any,
) -> bool:
    """Return whether subnormal binary32 numbers and zero have different codes."""
    is_wide = fmt.smallest_exponent - fmt.mantissa_bits < -126
    return is_wide or rounding_for(fmt, rounding, special) in ("rtp", "rtn", "rto")


def _asked_for(
    _x: float,
    _fmt: Format,
    _rounding: Rounding | None = None,
    special: SpecialCases = _DEFAULT,
    **_: Any,
) -> bool:
    return special != _DEFAULT


_IN_BINARY64 = ("encode", *joined("IN_BINARY64"))


def _rounded_first(
    narrow: str, reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Return the code of a number that is first rounded to a 16-bit format."""
    if math.isfinite(x):
        through = formats[narrow]
        x = through.value(reference(x, through, "rne"))
    return int(reference(x, fmt, *rest, **known))


@deviation(encode, where=_small, rules=("ENC-001",), domain=ENCODED)
def rounded_through_bf16(*arguments: Any, **known: Any) -> int:
    """Numbers become bfloat16 before they are encoded: they are rounded twice."""
    return _rounded_first("bf16", *arguments, **known)


@deviation(encode, where=_small, rules=("ENC-001",), domain=ENCODED)
def rounded_through_f16(*arguments: Any, **known: Any) -> int:
    """Numbers become binary16 before they are encoded: they are rounded twice."""
    return _rounded_first("f16", *arguments, **known)


@deviation(encode, where=_wider_than_binary32, rules=("ENC-001",), domain=_IN_BINARY64)
def rounded_through_f32(reference: Reference, x: float, *rest: Any, **known: Any) -> int:
    """binary64 numbers become binary32 before they are encoded: they are rounded twice."""
    return int(reference(rn32_of_binary64(x), *rest, **known))


@deviation(
    encode,
    where=_asked_for,
    rules=("ENC-006", "ENC-016"),
    domain=(*STORED, *STOCHASTIC),
)
def special_cases_ignored(
    reference: Reference,
    x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases = _DEFAULT,
    **known: Any,
) -> int:
    """Overflow and NaN are the default, even if ieee, signed or a profile is asked for."""
    del special
    return int(reference(x, fmt, rounding, _DEFAULT, **known))


@deviation(
    encode,
    where=_holds_subnormals,
    rules=("ENC-002",),
    domain=_SUBNORMAL,
)
def subnormal_inputs_flushed(reference: Reference, x: float, *rest: Any, **known: Any) -> int:
    """Subnormal binary32 inputs count as zero."""
    return int(reference(flushed(x), *rest, **known))


@deviation(encode, where=_small_with_subnormals, rules=("ENC-002",), domain=ENCODED)
def subnormal_codes_flushed(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Results below the smallest normal number become zero."""
    code = int(reference(x, fmt, *rest, **known))
    is_subnormal = code & ~fmt.sign_bit < 1 << fmt.mantissa_bits
    return code & fmt.sign_bit if is_subnormal else code


@deviation(
    encode,
    where=_small_with_zeros,
    rules=("ENC-011",),
    domain=ENCODED,
    exemptions=ZERO_SUMS,
)
def negative_zero_lost(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """Negative results that are zero have the code of +0."""
    code = int(reference(x, fmt, *rest, **known))
    return 0 if code == fmt.sign_bit and not math.isnan(x) else code


# ---------------------------------------------------------------------- NaN


def _without_sign(_x: float, fmt: Format, special: SpecialCases) -> bool:
    return special.nan == "canonical" and fmt.sign == "sign-magnitude"


def _of_two_signs(_x: float, fmt: Format, special: SpecialCases) -> bool:
    code = fmt.canonical_nan_code
    if code is None or code & fmt.sign_bit or special.nan != "canonical":
        return False
    return any(code | fmt.sign_bit in codes for codes in fmt.nan_codes)


def _has_signed_nan(
    _x: float,
    fmt: Format,
    _rounding: Rounding | None = None,
    special: SpecialCases = _DEFAULT,
    **_: Any,
) -> bool:
    overflows = special.overflow == "ieee" and fmt.infinity_code is None
    return (overflows or special.nan == "signed") and len(fmt.nan_codes) > 1


def _next_to_infinity(_x: float, fmt: Format, _special: SpecialCases) -> bool:
    return fmt.infinity_code is not None and fmt.mantissa_bits > 1


def _in_bf16(_x: float, fmt: Format, _special: SpecialCases) -> bool:
    return fmt.name == "bf16"


def _in_a_small_format(_x: float, fmt: Format, _special: SpecialCases) -> bool:
    return is_narrow(fmt)


def _in_a_small_float(_x: float, fmt: Format, _special: SpecialCases) -> bool:
    return is_narrow(fmt) and fmt.sign == "sign-magnitude"


@deviation(
    nan_code, where=_without_sign, rules=("ENC-009", "ENC-010"), domain=ENCODED, exemptions=COMPUTED
)
def nan_sign_kept(reference: Reference, x: float, fmt: Format, _: SpecialCases) -> int:
    """A NaN keeps its sign, even with canonical."""
    return int(reference(x, fmt, SpecialCases(nan="signed")))


@deviation(
    nan_code,
    where=_of_two_signs,
    rules=("ENC-009",),
    domain=tuple(name for name in ENCODED if name not in NVFP4_TE),
)
def nan_is_negative(reference: Reference, x: float, fmt: Format, special: SpecialCases) -> int:
    """Every NaN has the canonical code with the sign bit: 0xFF in e4m3 and e5m2."""
    return int(reference(x, fmt, special)) | fmt.sign_bit


@deviation(encode, where=_has_signed_nan, rules=("ENC-007", "ENC-010"), domain=_WITH_SIGNED_NANS)
def signed_nan_is_negative(
    reference: Reference,
    x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases = _DEFAULT,
    **known: Any,
) -> int:
    """A NaN of an overflow, or with the sign of its input, always has the sign bit."""
    code = int(reference(x, fmt, rounding, special, **known))
    is_signed = not math.isnan(x) or special.nan == "signed"
    is_nan = any(code in codes for codes in fmt.nan_codes)
    return code | fmt.sign_bit if is_signed and is_nan else code


@deviation(
    nan_code,
    where=_next_to_infinity,
    rules=("ENC-009",),
    domain=_NANS_NEXT_TO_INFINITY,
)
def quiet_nan_of_one_bit(reference: Reference, x: float, fmt: Format, special: SpecialCases) -> int:
    """A NaN is the infinity with the first bit of the mantissa: 0x7FC0 in bf16, 0x7E in e5m2."""
    sign = int(reference(x, fmt, special)) & fmt.sign_bit
    return (fmt.infinity_code or 0) | 1 << fmt.mantissa_bits - 1 | sign


@deviation(
    nan_code,
    where=_in_bf16,
    rules=("ENC-009",),
    domain=("encode", "encode_presets", "encode_stochastic", *POLICY_SUITES),
)
def nan_payload_truncated(_: Reference, x: float, *_rest: Any) -> int:
    """A NaN in bf16 is the upper half of its bits: infinity, if the payload is in the lower."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", x))
    return int(bits >> 48 & 0x8000 | 0x7F80 | bits >> 45 & 0x7F)


@deviation(
    nan_code,
    where=_in_a_small_format,
    rules=("ENC-009",),
    domain=ENCODED,
    exemptions=FALLS_BACK,
)
def nan_swallowed_by_a_clamp(_: Reference, _x: float, fmt: Format, *_rest: Any) -> int:
    """min(max(x, -largest), largest) comes first and makes a NaN the negative largest number."""
    if fmt.sign == "twos-complement":
        return -fmt.largest_code % fmt.code_count
    return fmt.largest_code | fmt.sign_bit


@deviation(
    nan_code,
    where=_in_a_small_float,
    rules=("ENC-009",),
    domain=ENCODED,
    exemptions=FALLS_BACK,
)
def nan_becomes_zero(*_: Any) -> int:
    """A NaN has the code 0."""
    return 0


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
