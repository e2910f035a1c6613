"""How far apart two codes are, and how bits are shown to people."""

import struct

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.operations.fields import INTEGERS


def code_shown(code: int, fmt: Format) -> str:
    """Return a code in hexadecimal, and its number."""
    width = -(-fmt.bits // 4)
    meaning = f"{fmt.value(code):.9g}" if 0 <= code < fmt.code_count else f"not of {fmt.bits} bits"
    return f"0x{code:0{width}X} ({meaning})"


def shown(bits: int, fmt: str) -> str:
    """Return bits in hexadecimal, and the number that they are of if it is of a format."""
    if fmt == "f64":
        (number,) = struct.unpack("<d", struct.pack("<Q", bits))
        return f"0x{bits:016X} ({number:.17g})"
    return str(bits) if fmt in INTEGERS else code_shown(bits, formats[fmt])


def ulps(found: int, right: int, fmt: Format) -> int | None:
    """Return the number of codes from one number up to another; None if one is not a number."""
    if max(found, right) >= fmt.code_count or min(found, right) < 0:
        return None
    if any(code in codes for codes in fmt.nan_codes for code in (found, right)):
        return None
    return _rank(found, fmt) - _rank(right, fmt)


def distance(found: int, right: int, fmt: str) -> str:
    """Return the distance of two bit patterns in words; '' if one is a NaN."""
    if fmt in INTEGERS:
        return f"{found - right:+,}"
    return code_distance(found, right, formats[fmt])


def code_distance(found: int, right: int, fmt: Format) -> str:
    """Return the distance of two codes of a format in words; '' if one is a NaN."""
    steps = ulps(found, right, fmt)
    if steps is None:
        return ""
    if steps == 0:
        return "the sign of zero"
    return f"{abs(steps):,} ulp {'above' if steps > 0 else 'below'}"


def _rank(code: int, fmt: Format) -> int:
    """Return the place of a code among the codes of the format in the order of their values."""
    if fmt.sign == "twos-complement":
        return code - (fmt.code_count if code & fmt.sign_bit else 0)
    magnitude = code & ~fmt.sign_bit
    return -magnitude if code & fmt.sign_bit else magnitude
