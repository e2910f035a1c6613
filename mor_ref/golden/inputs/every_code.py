"""Numbers with every scale and every code, and blocks with the special numbers.

A kernel may take scales and codes from a table: each entry needs a block of its own.
"""

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact import mx
from mor_ref.golden.inputs.edges import Bits, in_source
from mor_ref.golden.inputs.hard_numbers import SOURCES, fits, hard_numbers, is_of, signed
from mor_ref.golden.inputs.tensors import Tensor
from mor_ref.operations.bits import Unsigned, f32_array

_ENOUGH, _LISTS = 128, 16  # counts: hard numbers, and lists of them
# A positive and a negative infinity, NaN and signalling NaN, and one.
SPECIALS: dict[str, Unsigned] = {
    "bf16": np.array([0x7F80, 0xFF80, 0x7FC0, 0xFFC0, 0x7F81, 0xFF81, 0x3F80], np.uint16),
    "f16": np.array([0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFC01, 0x3C00], np.uint16),
    "f32": np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001,
                     0x3F800000], np.uint32),
}  # fmt: skip
# 2^15, and a number that becomes 0 next to it.
_FAR_APART = {"bf16": (0x4700, 0x2140), "f16": (0x7800, 3), "f32": (0x47000000, 0x21400000)}


def every_code(fmt: Format, rule: str, source: str) -> Tensor:
    """Return blocks with each scale, with a hard number for each code, and with special numbers.

    The amax is the first or the second number of a block, and is positive or negative.
    """
    bits = in_source([x for pair in _pairs(fmt, rule, source) for x in pair], source)
    pairs = bits.reshape(-1, 2)
    pairs[1::2] = pairs[1::2, ::-1].copy()
    rows = np.concatenate([pairs, special_pairs(source)])
    return Tensor(f"every_code.{source}", source, rows)


def every_value(fmt: Format) -> Tensor:
    """Return every finite number of a format of at most 8 bits, with the scale 1."""
    values = [fmt.value(code) for code in range(fmt.code_count)]
    x = in_source([value for value in values if math.isfinite(value)], "bf16")
    return Tensor("every_value.bf16", "bf16", x.reshape(2, -1))


def every_amax() -> Bits:
    """Return an amax in each binade of binary32, down to the smallest number."""
    return f32_array(math.ldexp(1.25, n) for n in range(-149, 128))


def special_pairs(source: str) -> Unsigned:
    """Return pairs of infinities, NaNs and ordinary numbers, each in both orders."""
    infinity, below, nan, negative, signalling, negative_signalling, one = SPECIALS[source]
    sign, (large, tiny) = negative - nan, _FAR_APART[source]
    pairs = [
        (infinity, nan), (nan, infinity), (below, negative), (negative, below), (nan, one),
        (one, nan), (negative, 0), (0, negative), (below, one), (one, below), (infinity, below),
        (infinity, one), (signalling, one), (one, negative_signalling),
        (sign, sign), (large, tiny), (sign + tiny, large),
    ]  # fmt: skip
    return np.array(pairs, SPECIALS[source].dtype)


def _pairs(fmt: Format, rule: str, source: str) -> Iterator[tuple[float, float]]:
    """Yield an amax for each scale, and an amax for each number left, with a hard number each."""
    amaxes = _amax_of_each_scale(fmt, rule, source)
    numbers = itertools.chain.from_iterable(hard_numbers(fmt, source, k) for k in range(_LISTS))
    left = dict(enumerate(numbers))
    for n, (scale, amax) in enumerate(amaxes.items()):
        there = (k for k, x in left.items() if fits(math.ldexp(x, scale - 127), amax, source))
        x = left.pop(next(there, -1), 0.0)
        yield signed(n // 2, amax), math.ldexp(x, scale - 127)
    for x in (x for k, x in left.items() if k < max(fmt.code_count, _ENOUGH)):
        scales = (scale for scale in (127, *amaxes) if scale in amaxes)
        reaching = (s for s in scales if fits(math.ldexp(x, s - 127), amaxes[s], source))
        found = next(reaching, None)
        if found is not None:
            yield amaxes[found], math.ldexp(x, found - 127)


@functools.cache
def _amax_of_each_scale(fmt: Format, rule: str, source: str) -> dict[int, float]:
    """Return an amax for each scale that finite numbers of a source can have, by scale code.

    The amax is the largest number that has this scale and one of four significands: 1, the one of
    the format's largest number, one that is rounded to it, or the largest of all. So the codes of
    all smaller numbers occur in its block.
    """
    low, high, bits = SOURCES[source]
    largest = math.frexp(fmt.largest)[0] * 2
    found: dict[int, float] = {}
    below_turn = float(SCALE_RULES["even"].turn_of(fmt)) - math.ldexp(1.0, 1 - bits)
    for significand in (largest, 1.0, below_turn, 2 - math.ldexp(1.0, 1 - bits)):
        for exponent in range(low, high + 1):
            amax = math.ldexp(significand, exponent)
            if is_of(amax, source):
                scale = mx.scale_code([amax], fmt, rule)
                found[scale] = max(found.get(scale, 0.0), amax)
    return dict(sorted(found.items()))
