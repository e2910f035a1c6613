"""The limits of a format, in the manner of the function `finfo` of array libraries."""

import math
from dataclasses import dataclass

from mor_ref.definitions.formats import FormatLike, as_format


@dataclass(frozen=True)
class Finfo:
    """The limits of a format.

    `eps` is the distance from 1 to the next number, and `epsneg` that to the one before. `tiny` is
    the smallest normal number. `maxexp` is the exponent of the first power of two that is too
    large, and `minexp` that of `tiny`. `nmant` and `nexp` are bits.
    """

    name: str
    bits: int
    max: float
    min: float
    tiny: float
    smallest_subnormal: float
    eps: float
    epsneg: float
    nmant: int
    nexp: int
    maxexp: int
    minexp: int

    @property
    def smallest_normal(self) -> float:
        """The same as `tiny`."""
        return self.tiny


def finfo(fmt: FormatLike) -> Finfo:
    """Return the limits of a format, given it, its name or a dtype.

    >>> limits = finfo("e4m3")
    >>> limits.max, limits.tiny, limits.smallest_subnormal, limits.eps
    (448.0, 0.015625, 0.001953125, 0.125)
    """
    target = as_format(fmt)
    if not target.exponent_bits:
        raise ValueError(
            f"format {target.name!r} has integers, which have no exponent; give a format of floats,"
            " such as e4m3"
        )
    tiny = math.ldexp(1.0, target.smallest_exponent)
    unit = math.ldexp(1.0, -target.mantissa_bits)
    least = target.value(0)
    if target.sign != "none":
        least = -target.largest
    smallest = tiny if target.is_power_of_two else target.value(1)
    return Finfo(
        target.name,
        target.bits,
        target.largest,
        least,
        tiny,
        smallest,
        unit,
        max(unit / 2, smallest),
        target.mantissa_bits,
        target.exponent_bits,
        math.frexp(target.largest)[1],
        target.smallest_exponent,
    )
