"""Decoding."""

import math
import struct

from mor_ref.definitions.format import Format
from mor_ref.exact.step import step


@step
def decode(code: int, fmt: Format) -> int:
    """Return the binary32 bits of the value of `code` (DEC-001 to DEC-003).

    >>> from mor_ref.definitions.formats import formats
    >>> hex(decode(0x38, formats["e4m3"])), hex(decode(0xFF, formats["e4m3"]))
    ('0x3f800000', '0x7fffffff')
    """
    value = fmt.value(code)
    if math.isnan(value):
        return nan_bits(value)
    return int.from_bytes(struct.pack(">f", value))


@step
def nan_bits(x: float) -> int:
    """Return the binary32 bits of a NaN: the same for every sign and payload (ART-003, DEC-002)."""
    del x
    return 0x7FFFFFFF
