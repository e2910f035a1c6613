"""The instructions of GPUs that convert to and from small formats: their numbers in kernels."""

import functools
from dataclasses import replace

from mor_ref.definitions.encoding import Rounding
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

WRITTEN_OUT = 0  # for other formats; all numbers are those of conversions.cuh
_CONVERTED = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
_TO_POWERS: dict[Rounding, int] = {"rtp": 6, "rtz": 7}


@functools.cache
def conversion(fmt: Format) -> int:
    """Return the instruction that rounds to nearest in a format, and that widens its codes."""
    numbers = (number for number, name in enumerate(_CONVERTED, 1) if _is_like(fmt, name))
    return next(numbers, WRITTEN_OUT)


def conversion_to_powers(fmt: Format, rounding: Rounding) -> int:
    """Return the instruction that rounds to powers of two."""
    return _TO_POWERS.get(rounding, WRITTEN_OUT) if _is_like(fmt, "e8m0") else WRITTEN_OUT


def _is_like(fmt: Format, name: str) -> bool:
    """Return whether a format is one of the catalogue, by any name."""
    return replace(fmt, name=name) == formats[name]
