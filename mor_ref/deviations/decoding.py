"""Decoders that differ."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import DECODED, IN_MX, IN_NVFP4, MX_DECODED, SCALED, is_narrow
from mor_ref.exact import mx, nvfp4, quantization
from mor_ref.exact.decoding import decode

Reference = Callable[..., Any]


def _bits(value: float) -> int:
    return int.from_bytes(struct.pack(">f", value))


@deviation(decode, rules=("DEC-001",), domain=DECODED)
def subnormals_decode_to_zero(reference: Reference, code: int, fmt: Format) -> int:
    """Codes of subnormal numbers stand for zero."""
    magnitude = code & ~fmt.sign_bit
    if fmt.exponent_bits and fmt.mantissa_bits and magnitude < 1 << fmt.mantissa_bits:
        code &= fmt.sign_bit
    return int(reference(code, fmt))


@deviation(decode, rules=("DEC-001",), domain=DECODED)
def hidden_bit_in_subnormals(reference: Reference, code: int, fmt: Format) -> int:
    """Codes of subnormal numbers are read with the hidden bit and an exponent one lower."""
    magnitude = code & ~fmt.sign_bit
    if fmt.exponent_bits and 0 < magnitude < 1 << fmt.mantissa_bits and is_narrow(fmt):
        unit = Fraction(2) ** (fmt.smallest_exponent - 1 - fmt.mantissa_bits)
        value = float((magnitude + (1 << fmt.mantissa_bits)) * unit)
        return _bits(math.copysign(value, -1 if code & fmt.sign_bit else 1))
    return int(reference(code, fmt))


@deviation(decode, rules=("DEC-002",), domain=DECODED)
def nan_codes_decode_as_numbers(reference: Reference, code: int, fmt: Format) -> int:
    """The codes of NaN decode to ordinary numbers: 0x7F is 480 in e4m3."""
    magnitude = code & ~fmt.sign_bit
    if is_narrow(fmt) and magnitude and math.isnan(fmt.value(code)):
        exponent_field, mantissa = divmod(magnitude, 1 << fmt.mantissa_bits)
        significand = (1 << fmt.mantissa_bits) + mantissa
        value = math.ldexp(significand, exponent_field - fmt.bias - fmt.mantissa_bits)
        return _bits(math.copysign(value, -1 if code & fmt.sign_bit else 1))
    return int(reference(code, fmt))


@deviation(decode, rules=("DEC-003",), domain=DECODED)
def e8m0_decoded_by_a_shift(reference: Reference, code: int, fmt: Format) -> int:
    """e8m0 is decoded as code << 23: 0 becomes 0.0, and 255 infinity."""
    return code << 23 if fmt.is_power_of_two else int(reference(code, fmt))


def _without_sign(reference: Reference, code: int, fmt: Format) -> int:
    bits = int(reference(code, fmt))
    return 0 if bits == 0x80000000 else bits


def _restored_without_sign(reference: Reference, value: float, scale: Any) -> float:
    return float(reference(value or 0.0, scale))


_ALSO_RESTORED = (quantization.restored, nvfp4.restored, mx.restored)
_ON_THE_WAY_BACK = tuple(dict.fromkeys((*DECODED, *SCALED, *IN_NVFP4, *IN_MX, *MX_DECODED)))


NEGATIVE_ZERO = Deviation(
    "negative_zero_decodes_to_zero",
    "The code of -0 stands for +0: its sign is lost on the way back from codes.",
    ("DEC-001", "QNT-002", "NVF-010", "MXS-008"),
    _ON_THE_WAY_BACK,
    (
        Change(decode, _without_sign),
        *(Change(step, _restored_without_sign) for step in _ALSO_RESTORED),
    ),
)


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
