"""Numbers with every scale and every code, and blocks with the special numbers.

A kernel may take scales and codes from a table: each entry needs a block of its own.
"""

import functools
import math
from collections.abc import Iterator

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.exact import mx
from mor_ref.golden.inputs.edges import Bits, in_source
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.operations.bits import Unsigned, f32_array

# The exponents of the smallest and the largest number of a source, and its bits of significand.
_SOURCES = {"bf16": (-133, 127, 8), "f16": (-24, 15, 11), "f32": (-149, 127, 24)}
# A positive and a negative infinity, NaN and signalling NaN, and one.
SPECIALS: dict[str, Unsigned] = {
    "bf16": np.array([0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7F81, 0xFF81, 0x3F80], np.uint16),
    "f16": np.array([0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFC01, 0x3C00], np.uint16),
    "f32": np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001,
                     0x3F800000], np.uint32),
}  # fmt: skip


def every_code(fmt: Format, rule: str, source: str) -> Tensor:
    """Return blocks of each scale, with each code if the source has enough of them, and specials.

    The amax is the first number of a block, or the second; it is positive, or negative.
    """
    bits = in_source([x for pair in _pairs(fmt, rule, source) for x in pair], source)
    pairs = bits.reshape(-1, 2)
    pairs[1::2] = pairs[1::2, ::-1].copy()
    rows = np.concatenate([pairs, special_pairs(source)])
    return Tensor(f"every_code.{source}", source, rows)


def every_value(fmt: Format) -> Tensor:
    """Return every finite number of a format of at most 8 bits: the scale of all is 1."""
    values = [fmt.value(code) for code in range(fmt.code_count)]
    x = in_source([value for value in values if math.isfinite(value)], "bf16")
    return Tensor("every_value.bf16", "bf16", x.reshape(2, -1))


def every_amax() -> Bits:
    """Return an amax in each binade of binary32, down to the smallest number."""
    return f32_array(math.ldexp(1.25, n) for n in range(-149, 128))


def special_pairs(source: str) -> Unsigned:
    """Return pairs of infinities, NaNs and ordinary numbers, each in both orders."""
    infinity, below, nan, negative, signalling, negative_signalling, one = SPECIALS[source]
    pairs = [
        (infinity, nan), (nan, infinity), (below, negative), (negative, below), (nan, one),
        (one, nan), (negative, 0), (0, negative), (below, one), (one, below), (infinity, below),
        (infinity, one), (signalling, one), (one, negative_signalling),
        (negative - nan, negative - nan),
    ]  # fmt: skip
    return np.array(pairs, SPECIALS[source].dtype)


def _pairs(fmt: Format, rule: str, source: str) -> Iterator[tuple[float, float]]:
    """Yield an amax for each scale, and with it a number that becomes another code."""
    amaxes = _amax_of_each_scale(fmt, rule, source)
    values = [fmt.value(code) for code in range(fmt.code_count)]
    left = [value for value in values if math.isfinite(value)]
    for n, (scale, amax) in enumerate(amaxes.items()):
        fitting = (v for v in left if _fits(math.ldexp(v, scale - 127), amax, source))
        value = next(fitting, None)
        if value is not None:
            left.remove(value)
        yield _signed(n // 2, amax), math.ldexp(0.0 if value is None else value, scale - 127)
    if source != "f16":  # binary16 has fewer scales than there are codes
        for value in left:
            scales = (scale for scale in (127, *amaxes) if scale in amaxes)
            reaching = (s for s in scales if _fits(math.ldexp(value, s - 127), amaxes[s], source))
            found = next(reaching, None)
            if found is not None:
                yield amaxes[found], math.ldexp(value, found - 127)


@functools.cache
def _amax_of_each_scale(fmt: Format, rule: str, source: str) -> dict[int, float]:
    """Return an amax for each scale that finite numbers of a source have, by its code.

    It is the largest whose significand is 1, that of the largest number of the format, or the
    largest of all: the codes of all smaller numbers occur in its block.
    """
    low, high, bits = _SOURCES[source]
    largest = math.frexp(fmt.largest)[0] * 2
    found: dict[int, float] = {}
    for significand in (largest, 1.0, 2 - math.ldexp(1.0, 1 - bits)):
        for exponent in range(low, high + 1):
            amax = math.ldexp(significand, exponent)
            if _is_of(amax, source):
                scale = mx.scale_code([amax], fmt, rule)
                found[scale] = max(found.get(scale, 0.0), amax)
    return dict(sorted(found.items()))


def _signed(n: int, amax: float) -> float:
    return -amax if n % 2 else amax


def _fits(value: float, amax: float, source: str) -> bool:
    return abs(value) <= amax and _is_of(value, source)


def _is_of(value: float, source: str) -> bool:
    """Return whether a number is one of a source, exactly."""
    low, high, bits = _SOURCES[source]
    if value == 0:
        return True
    exponent = math.frexp(value)[1] - 1
    step = max(exponent - bits + 1, low)
    return exponent <= high and math.ldexp(value, -step).is_integer()
