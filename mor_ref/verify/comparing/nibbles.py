"""Bytes that have two codes of four bits each: the even one is in the low nibble (VEC-005)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.model.views import DIGEST, split
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.distance import code_distance, code_shown

_PAIRS, _MASK, _SHIFT = "pairs", 15, 4


def format_of_nibbles(operation: str, fmt: str, *names: str) -> str | None:
    """Return the format of the codes in the bytes of a field; None if its entries are not pairs.

    `fmt` is the format of the field, and `names` are its names in the suite and in the answer.

    >>> format_of_nibbles("nvfp4", "u8", "packed"), format_of_nibbles("nvfp4", "e2m1", "code")
    ('e2m1', None)
    >>> format_of_nibbles("mx", "e2m1", "code", "code@packed")
    'e2m1'
    """
    views = {view for name in names for view in split(name)[1]}
    if DIGEST in views:
        return None
    if "packed" in views:
        return fmt
    declared = OPERATIONS[operation]
    is_pair = declared.axes_of(split(names[0])[0]) == _PAIRS
    return declared.field("code").format if is_pair else None


def halves_of(packed: NDArray[Any]) -> NDArray[Any]:
    """Return the low nibbles of bytes, and then the high ones."""
    return np.concatenate([packed & _MASK, packed >> _SHIFT])


def first_unlike(actual: NDArray[Any], expected: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the nibbles of bytes that differ: the high ones where the low ones are equal."""
    high = actual & _MASK == expected & _MASK
    return np.where(high, actual >> _SHIFT, actual & _MASK), np.where(
        high, expected >> _SHIFT, expected & _MASK
    )


def of_halves(
    kind: Callable[[NDArray[Any], NDArray[Any], Format], NDArray[np.bool_]],
    actual: NDArray[Any],
    expected: NDArray[Any],
    fmt: Format,
) -> NDArray[np.bool_]:
    """Return where bytes differ, and each nibble is equal or of a kind of codes."""
    found: NDArray[np.bool_] = actual != expected
    for shift in (0, _SHIFT):
        halves = actual >> shift & _MASK, expected >> shift & _MASK
        found &= (halves[0] == halves[1]) | kind(*halves, fmt)
    return found


def one_of_each_half(
    actual: NDArray[Any], expected: NDArray[Any], other: NDArray[Any]
) -> NDArray[np.bool_]:
    """Return where each nibble of a byte is the expected or the other one."""
    found = np.ones(actual.shape, np.bool_)
    for shift in (0, _SHIFT):
        halves = [bits >> shift & _MASK for bits in (actual, expected, other)]
        found &= (halves[0] == halves[1]) | (halves[0] == halves[2])
    return found


def byte_shown(bits: int, fmt: str) -> str:
    """Return a byte in hexadecimal, and its two codes.

    >>> byte_shown(0x6A, "e2m1")
    '0x6A (low 0xA = -1, high 0x6 = 4)'
    """
    low, high = (code_shown(code, formats[fmt]) for code in (bits & _MASK, bits >> _SHIFT))
    return f"0x{bits:02X} (low {_inline(low)}, high {_inline(high)})"


def _inline(code: str) -> str:
    """Return a code and its number without brackets."""
    return code.replace(" (", " = ").removesuffix(")")


def distance_of_nibbles(actual: int, expected: int, fmt: str) -> str:
    """Say which nibbles of a byte differ, and by how much.

    >>> distance_of_nibbles(0x6A, 0x5A, "e2m1"), distance_of_nibbles(0x6A, 0x51, "e2m1")
    ('high nibble 1 ulp above', 'low nibble 3 ulp below, high nibble 1 ulp above')
    """
    said = []
    for name, shift in (("low", 0), ("high", _SHIFT)):
        found, right = (byte >> shift & _MASK for byte in (actual, expected))
        if found != right:
            said.append(f"{name} nibble {code_distance(found, right, formats[fmt])}".rstrip())
    return ", ".join(said)
