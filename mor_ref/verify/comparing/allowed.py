"""Other bits than the expected ones that a user allows: of NaN, of zero, and next to a tie."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mor_ref.argument_checks import known_name
from mor_ref.definitions.format import Format

Nans = Literal["exact", "any", "canonical-or-quiet"]
Zeros = Literal["exact", "any"]


@dataclass(frozen=True)
class Allowed:
    """Differences of bits that do not count.

    `nan` is where a NaN is expected: "any" allows every NaN, and "canonical-or-quiet" the canonical
    one and those whose first fraction bit is set. `zero_sign` is where a zero is expected. Codes
    may be those on the other side of a tie if their number is next to it, at most `ties` of the
    distance of the two.
    """

    nan: Nans = "exact"
    zero_sign: Zeros = "exact"
    ties: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        known_name("nan", self.nan, get_args(Nans))
        known_name("zero-sign", self.zero_sign, get_args(Zeros))

    @property
    def is_nothing(self) -> bool:
        """Whether every bit counts."""
        return self == EVERY_BIT

    def nans(
        self, actual: NDArray[np.integer], expected: NDArray[np.integer], fmt: Format
    ) -> NDArray[np.bool_]:
        """Return where another NaN is allowed."""
        if self.nan == "exact" or not fmt.nan_codes:
            return np.zeros(expected.shape, np.bool_)
        both = is_nan(actual, fmt) & is_nan(expected, fmt)
        if self.nan == "canonical-or-quiet":
            quiet = (1 << fmt.mantissa_bits) >> 1  # none in a format without fractions
            both &= (actual == fmt.canonical_nan_code) | (actual & quiet != 0)
        other: NDArray[np.bool_] = both & (actual != expected)
        return other

    def either(
        self, actual: NDArray[np.integer], expected: NDArray[np.integer], fmt: Format
    ) -> NDArray[np.bool_]:
        """Return where another NaN, or a zero of the other sign, is allowed."""
        return self.nans(actual, expected, fmt) | self.zeros(actual, expected, fmt)

    def zeros(
        self, actual: NDArray[np.integer], expected: NDArray[np.integer], fmt: Format
    ) -> NDArray[np.bool_]:
        """Return where a zero of the other sign is allowed."""
        if self.zero_sign == "exact" or fmt.sign != "sign-magnitude":
            return np.zeros(expected.shape, np.bool_)
        zeros = np.array([0, fmt.sign_bit], expected.dtype)
        other: NDArray[np.bool_] = np.isin(actual, zeros) & np.isin(expected, zeros)
        # A format without -0 has a NaN at its bits.
        other &= (actual != expected) & ~is_nan(actual, fmt) & ~is_nan(expected, fmt)
        return other


EVERY_BIT = Allowed()


def is_nan(codes: NDArray[np.integer], fmt: Format) -> NDArray[np.bool_]:
    """Return where codes are a NaN of a format."""
    found = np.zeros(codes.shape, np.bool_)
    for nans in fmt.nan_codes:
        found |= (codes >= nans.start) & (codes < nans.stop)
    return found
