"""Decoding: the codes of every format."""

from collections.abc import Iterator

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.edges import edges_and_random
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.bits import Unsigned, codes_array

_EVERY = 7  # of the codes of 16 bits


def _step_cases(_: Size) -> Iterator[Case]:
    for fmt in map(formats.__getitem__, formats.specified):
        codes = _codes(fmt).tolist()
        yield Case(fmt.name, {"format": fmt.name}, {"code": codes_array(codes, fmt)})


def _codes(fmt: Format) -> Unsigned:
    """Return all codes of a small format; of 16 bits, some of each exponent, and every seventh."""
    if fmt.bits > 16:
        return edges_and_random(fmt, Size())
    codes: Unsigned = np.arange(fmt.code_count, dtype=np.uint32)
    if fmt.bits <= 8:
        return codes
    mantissa, half = codes & (1 << fmt.mantissa_bits) - 1, 1 << (fmt.mantissa_bits - 1)
    is_edge = np.isin(mantissa, (0, 1, half - 1, half, half + 1, 2 * half - 1))
    chosen: Unsigned = codes[is_edge | (codes % _EVERY == 0)]
    return chosen


STEPS = suite(
    "decode",
    "Codes to binary32 numbers",
    "decode",
    tuple(f"FMT-{k:03}" for k in range(1, 10)),
    _step_cases,
)
