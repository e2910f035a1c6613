"""Numbers as people type them: decimals, hexadecimal floats, and bit patterns."""

import math
import re
import struct
from fractions import Fraction

from mor_ref import exact
from mor_ref.argument_checks import known_name
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

# The source formats of a bit pattern: width, and the struct codes of the float and the integer.
_SOURCES = {
    "f64": (64, "<d", "<Q"),
    "f32": (32, "<f", "<I"),
    "f16": (16, "<e", "<H"),
    "bf16": (16, "", ""),
}


class NotBinary64Error(ValueError):
    """A number that is not a binary64 and must not be rounded silently."""


def _not_binary64(text: str) -> NotBinary64Error:
    return NotBinary64Error(
        f"NUMBER is {text!r}, which binary64 does not have; give a number from 5e-324 to 1.79e308 "
        "in magnitude, of at most 53 bits if it is hexadecimal"
    )


def parse_number(text: str, source: str | None = None) -> float:
    """Parse a decimal, a hexadecimal float (0x1.8p3) or the 0x bit pattern of `source`.

    Without `source`, 16 hexadecimal digits are a binary64 and 8 are a binary32. A decimal becomes
    the nearest binary64, which must be a number of `source` if `source` is given.

    >>> parse_number("0x3f800000"), parse_number("0x3f80", "bf16"), parse_number("-0x1.8p1")
    (1.0, 1.0, -3.0)
    """
    if source is not None:
        known_name("source", source, _SOURCES)
    pattern = re.fullmatch(r"0[xX]([0-9a-fA-F]+)", text.strip())
    if pattern:
        return _from_pattern(pattern[1], source)
    try:
        is_hexadecimal = bool(re.match(r"[+-]?0[xX].*[.pP]", text.strip()))
        x = _from_hexadecimal(text) if is_hexadecimal else _from_decimal(text)
    except NotBinary64Error:
        raise
    except ValueError:
        raise ValueError(
            f"NUMBER is {text!r}; give a decimal such as 0.3, a hexadecimal float such as "
            "0x1.8p-2, or a bit pattern such as 0x3f800000"
        ) from None
    if source is not None and source != "f64" and not _is_exact(x, formats[source]):
        raise ValueError(
            f"NUMBER is {text!r}, which is not a number of {source}; leave out --source to take "
            "the nearest binary64, or give its bit pattern"
        )
    return x


def _from_decimal(text: str) -> float:
    """Return the nearest binary64; refuse a finite number that would become 0 or infinite."""
    x = float(text)
    is_a_word = not any(character.isdigit() for character in text)
    if not is_a_word and (math.isinf(x) or (x == 0 and _has_digits(re.split("[eE]", text)[0]))):
        raise _not_binary64(text)
    return x


def _from_hexadecimal(text: str) -> float:
    """Return a hexadecimal float, which must be a binary64 as written."""
    try:
        x = float.fromhex(text)
    except OverflowError:
        raise _not_binary64(text) from None
    digits, _, exponent = text.strip().lower().partition("p")
    if x == 0:  # a power of two with this exponent could fill the memory
        if _has_digits(digits.replace("0x", "")):
            raise _not_binary64(text)
        return x
    whole, _, fraction = digits.replace("0x", "").partition(".")
    written = Fraction(int(whole + fraction or "0", 16)) * Fraction(2) ** (
        int(exponent or "0") - 4 * len(fraction)
    )
    if Fraction(x) != written:
        raise _not_binary64(text)
    return x


def _has_digits(text: str) -> bool:
    """Return whether a digit is not 0."""
    return any(character.isalnum() and int(character, 16) for character in text)


def _from_pattern(digits: str, source: str | None) -> float:
    name = source or {16: "f64", 8: "f32"}.get(len(digits))
    if name is None:
        raise ValueError(
            f"NUMBER is a bit pattern of {len(digits)} hexadecimal digits; give 16 for binary64 or "
            "8 for binary32, or name its format with --source"
        )
    width, float_code, int_code = _SOURCES[name]
    bits = int(digits, 16)
    if bits >> width:
        raise ValueError(f"NUMBER is 0x{digits}, which has more than the {width} bits of {name}")
    if name == "bf16":
        bits, float_code, int_code = bits << 16, "<f", "<I"
    (x,) = struct.unpack(float_code, struct.pack(int_code, bits))
    return float(x)


def binary64_bits(x: float) -> int:
    """Return the bit pattern of a number as a binary64."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    return int(bits)


def _is_exact(x: float, fmt: Format) -> bool:
    return not math.isfinite(x) or fmt.value(exact.encode(x, fmt, "rtz")) == x
