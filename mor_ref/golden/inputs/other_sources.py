"""Numbers of binary64, bfloat16 and binary16 at which encoders of these sources differ."""

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.golden.inputs.edges import Bits, edges_of, narrowed
from mor_ref.operations.bits import Unsigned

_FRACTION = {"f64": (52, 1023), "bf16": (7, 127), "f16": (10, 15)}  # bits, and exponent bias
# Bits at the ends of words and half words, which a sticky bit can miss.
_STICKY = {"f64": (0, 1, 15, 16, 28, 31, 32, 33), "bf16": (0, 1), "f16": (0, 1)}

# NaNs with a payload in the lower word alone, of both signs of that word.
_FEW_BITS = 15  # of a significand: enough for 2^n, and for values and ties of up to 8 bits
_NANS = (0x7FF0000000000001, 0xFFF0000000000001, 0x7FF0000080000000, 0xFFF0000080000000)
# Exponents that 8, 9 and 10 bits do not hold, with a bias or without one.
_HUGE = (
    0x47F0000000000000, 0x4C7C000000000000, 0x4FF4000000000000, 0x657C000000000000,
    0x7FEFFFFFFFFFFFFF,
)  # fmt: skip
_TINY = (
    0x0000000000000001, 0x0004000000000000, 0x017C000000000000, 0x1A7C000000000000,
    0x3690000000000000,
)  # fmt: skip
_NEXT_TO_ONE = (0x3FF0000000000001, 0xBFF0000000000001)


def _signed(patterns: tuple[int, ...]) -> list[int]:
    return [bits | sign for bits in patterns for sign in (0, 1 << 63)]


def _far_below() -> list[int]:
    """Return numbers whose distances to the smallest exponent of a format span 256 binades.

    An encoder that keeps 5 to 8 bits of the distance takes one of them for a larger number.
    """
    fields = range(1023 - 144, 1023 - 144 - 9 * 32, -32)
    return [k % 2 << 63 | (field + 1 << 52) - 1 for k, field in enumerate(fields)]


def _single_bits(fmt: Format, source: str) -> list[int]:
    """Return an even and an odd tie next to 1, and both 1 and the even tie with one more bit."""
    bits, bias = _FRACTION[source]
    one = bias << bits
    cut = bits - fmt.mantissa_bits + max(fmt.smallest_exponent, 0)
    if cut <= 0:
        return []
    tie = one | 1 << (cut - 1)
    sticky = [1 << bit for bit in _STICKY[source] if bit < cut - 1]
    points = (one,) if fmt.is_power_of_two else (one, tie)
    odd = tie + (1 << cut)
    return [tie, odd, *(point | bit for point in points for bit in sticky)]


def binary64(fmt: Format, edges: Bits, *, ties: bool = False) -> Unsigned:
    """Return binary64 numbers at edges and a step to each side, where rounding twice goes wrong.

    Only edges with a short significand have these neighbours. With `ties` all edges have them, and
    so do the midpoints of binary32 numbers. NaNs, and numbers that binary32 lacks, follow.
    """
    with np.errstate(invalid="ignore"):  # widening a signalling NaN is not an error here
        at = edges.view(np.float32).astype(np.float64)
    finite = at[np.isfinite(at)]
    if ties:
        finite = np.concatenate([finite, finite * (1 + 2.0**-24)])
    significands = np.frexp(finite)[0] * (1 << _FEW_BITS)
    points = finite if ties else finite[significands == np.rint(significands)]
    found = np.concatenate(
        [np.nextafter(points, -np.inf), finite, np.nextafter(points, np.inf), at[~np.isfinite(at)]]
    ).view(np.uint64)
    quiet = (0x7FF8000000000000, 0x7FF0000000000000)
    more = [*_signed((*quiet, *_HUGE, *_TINY)), *_NANS, *_NEXT_TO_ONE, *_far_below()]
    more += _single_bits(fmt, "f64")
    return np.concatenate([found, np.setdiff1d(np.array(more, np.uint64), found)])


def sixteen_bits(fmt: Format, source: str, edges: Bits | None = None) -> Unsigned:
    """Return the numbers of 16 bits at the edges of a format, and a step to each side."""
    at = narrowed(edges_of(fmt) if edges is None else edges, source).astype(np.int64)
    near = np.array([at - 1, at, at + 1]).clip(0, 0xFFFF).ravel()
    # The smallest bfloat16 numbers are far below other formats, at distances that 5 bits cut.
    far = range(0x00FF, 0x3F80, 4 << 7) if source == "bf16" else ()
    return np.unique([*near, *far, *_single_bits(fmt, source)]).astype(np.uint16)
