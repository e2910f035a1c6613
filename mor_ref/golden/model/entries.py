"""What the entries of a field are: bits of which format, and how many.

The format is one of the catalogue, f64, or a whole number of 8, 32 or 64 bits.
"""

from mor_ref.definitions.formats import formats
from mor_ref.golden.model.suite import Parameters

INTEGERS = ("u8", "u32", "u64")
_BITS = {"u8": 8, "u32": 32, "u64": 64, "f64": 64}


def format_meant(fmt: str, parameters: Parameters) -> str:
    """The name of a format that a field may leave to the parameter of a case."""
    return str(parameters.get(fmt, fmt))


def bits_of(fmt: str) -> int:
    """How many bits a number of a format has."""
    return _BITS.get(fmt) or formats[fmt].bits


def bytes_of(fmt: str) -> int:
    """How many bytes an entry has: the smallest whole number that there is for its bits."""
    return next(size for size in (1, 2, 4, 8) if bits_of(fmt) <= 8 * size)
