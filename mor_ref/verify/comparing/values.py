"""The numbers of bits, as float64: all formats that inputs and fields have."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.formats import formats
from mor_ref.operations.bits import tensor_of

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
_OF_MACHINES = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
_WIDEST = 16  # bits: the values of wider codes are not listed


def values_of(bits: NDArray[np.integer], fmt: str) -> Floats:
    """Return the numbers of bits of a format; whole numbers if they are of no format."""
    if fmt in _OF_MACHINES:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            found: Floats = tensor_of(np.ascontiguousarray(bits), fmt).astype(np.float64)
        return found
    if fmt not in formats or formats[fmt].bits > _WIDEST:
        return bits.astype(np.float64)
    table = all_values(fmt)
    of_codes: Floats = table[np.minimum(bits, len(table) - 1).astype(np.intp)]
    return of_codes


@cache
def all_values(fmt: str) -> Floats:
    """Return the number of each code of a format."""
    return np.array([formats[fmt].value(code) for code in range(formats[fmt].code_count)])


def is_subnormal(values: Floats, fmt: str) -> Marks:
    """Return which of some numbers of a format are subnormal."""
    least = _OF_MACHINES.get(fmt)
    if least is None and fmt in formats:
        least = formats[fmt].smallest_normal
    found: Marks = (values != 0) & (np.abs(values) < (least or 0.0))
    return found
