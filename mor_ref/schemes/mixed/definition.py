"""Mixtures of formats: candidates in an order, and the units of squared errors."""

from dataclasses import dataclass

from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.format import Format

FRACTION_BITS = 20  # an error of one binade of the unit is 2^20 (MFQ-002)
LARGEST_ERROR = 1 << 22
FEWEST_BITS, MOST_BITS = 3, 8  # of integers
MOST_CANDIDATES = 16


@dataclass(frozen=True)
class Mixture:
    """Candidates by name: of equal squared errors, the first is taken (MFQ-004)."""

    name: str
    candidates: tuple[str, ...]


MIXTURES: Catalogue[Mixture] = Catalogue(
    "mixture",
    Mixture,
    (
        Mixture("int8_or_e4m3", ("int8", "e4m3")),
        Mixture("e4m3_or_int8", ("e4m3", "int8")),
        Mixture("int4_or_e2m1", ("int4", "e2m1")),
        Mixture("e2m1_or_int4", ("e2m1", "int4")),
        Mixture("int4_or_e2m1_ieee", ("int4", "e2m1_ieee")),
        Mixture("e4m3_or_e5m2_or_int8", ("e4m3", "e5m2", "int8")),
    ),
    namespace=NAMES_OF_REPRESENTATIONS,
)


def integer_format(bits: int) -> Format:
    """Return the format of the integers of `bits` bits, in two's complement (MFQ-001).

    >>> integer_format(4).largest
    7.0
    """
    return Format(
        f"int{bits}",
        exponent_bits=0,
        mantissa_bits=bits - 1,
        bias=2 - bits,
        specials="none",
        sign="twos-complement",
    )
