"""The chapter on formats: a format, its special cases and a rounding as rows of words for loops.

The rows are made here from the rules, apart from `mor_ref.exact`, which finds the same codes its
own way.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mor_ref.definitions.encoding import Rounding, SpecialCases
from mor_ref.definitions.format import Format


class Source(NamedTuple):
    """The words that numbers arrive in."""

    word: type[np.unsignedinteger[Any]]
    width: int
    fraction_bits: int
    bias: int

    @property
    def infinity(self) -> int:
        """The bits of +infinity, which are also the mask of the exponent field."""
        return (1 << (self.width - 1)) - self.hidden_bit

    @property
    def hidden_bit(self) -> int:
        """The bit above the fraction, and the step from one exponent field to the next."""
        return 1 << self.fraction_bits

    def row(self, numbers: dict[str, int]) -> dict[str, Any]:
        """Return the same numbers as words."""
        return {field: self.word(number) for field, number in numbers.items()}


BINARY32 = Source(np.uint32, 32, 23, 127)
BINARY64 = Source(np.uint64, 64, 52, 1023)


class Target(NamedTuple):
    """A format with significands. `.._flip` has the bits that a sign or a parity inverts."""

    infinity_bits: Any  # of the source, as are the next four
    hidden_bit: Any
    magnitude_mask: Any
    fraction_bits: Any
    last_bit: Any
    smallest_normal: Any  # the format's, as an exponent field of the source, in place
    shift_base: Any  # how many bits a number drops, plus its exponent field
    shift_cap: Any  # a shift that leaves less than half a unit
    threshold: Any  # the smallest fraction that goes up, if negative and odd are false
    threshold_negative_flip: Any
    threshold_odd_flip: Any
    cap: Any  # the code of a magnitude that overflows
    sign_bit: Any
    nan: Any
    exceptions: Any  # None where the sign, and whether a number is infinite or 0, change none of it
    twos_complement_count: Any  # how many codes there are; 0 for another sign


class Exceptions(NamedTuple):
    """The other numbers of a format and its special cases."""

    cap_negative_flip: Any
    infinity: Any
    negative_zero: Any
    nan_negative_flip: Any


class PowerOfTwoTarget(NamedTuple):
    """A format whose values are powers of two."""

    infinity_bits: Any  # of the source, as are the next two
    magnitude_mask: Any
    fraction_bits: Any
    fraction_shift: Any  # brings a fraction to the top of a word
    smallest: Any  # the format's smallest value, as bits of the source
    field_offset: Any  # the source's exponent field of code 0
    threshold: Any
    threshold_above_smallest: Any
    largest_code: Any
    cap: Any  # the code of a finite number that overflows
    infinity: Any
    zero: Any
    has_negative: Any
    negative: Any
    nan: Any


@lru_cache
def target_for(fmt: Format, rounding: Rounding, special: SpecialCases, source: Source) -> Target:
    """Return the row of a format with significands."""
    threshold, odd, negative = _thresholds(rounding, source)
    flips = -1 if fmt.sign != "none" else 0
    cap, negative_cap = (_overflow_code(fmt, rounding, special, sign) for sign in (False, True))
    nan, negative_nan = _nan_codes(fmt, special)
    smallest_field = fmt.smallest_exponent + source.bias
    has_negative_zero = fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"
    numbers = {
        "infinity_bits": source.infinity,
        "hidden_bit": source.hidden_bit,
        "magnitude_mask": (1 << (source.width - 1)) - 1,
        "fraction_bits": source.fraction_bits,
        "last_bit": source.width - 1,
        "smallest_normal": smallest_field << source.fraction_bits,
        "shift_base": source.fraction_bits - fmt.mantissa_bits + smallest_field,
        "shift_cap": source.fraction_bits + 2,
        "threshold": threshold,
        "threshold_negative_flip": (threshold ^ negative) & flips,
        "threshold_odd_flip": threshold ^ odd,
        "cap": cap,
        "sign_bit": fmt.sign_bit,
        "nan": nan,
        "twos_complement_count": fmt.code_count if fmt.sign == "twos-complement" else 0,
    }
    exceptions = {
        "cap_negative_flip": (cap ^ negative_cap) & flips,
        "infinity": _infinity_code(fmt, special),
        "negative_zero": fmt.sign_bit if has_negative_zero else 0,
        "nan_negative_flip": (nan ^ negative_nan) & flips,
    }
    plain = dict.fromkeys(exceptions, 0) | {"infinity": cap, "negative_zero": fmt.sign_bit}
    row = None if exceptions == plain else Exceptions(**source.row(exceptions))
    return Target(**source.row(numbers), exceptions=row)


@lru_cache
def power_of_two_target_for(
    fmt: Format, rounding: Rounding, special: SpecialCases, source: Source
) -> PowerOfTwoTarget:
    """Return the row of a format whose values are powers of two."""
    threshold, _, _ = _thresholds(rounding, source)
    field_offset = source.bias - fmt.bias
    # 2^-127 lies below the normal numbers of binary32: half of its hidden bit.
    smallest = field_offset << source.fraction_bits or source.hidden_bit >> 1
    goes_up = special.above_smallest_goes_up and rounding == "rna"
    above_smallest, _, _ = _thresholds("rtp" if goes_up else rounding, source)
    nan, _ = _nan_codes(fmt, special)
    numbers = {
        "infinity_bits": source.infinity,
        "magnitude_mask": (1 << (source.width - 1)) - 1,
        "fraction_bits": source.fraction_bits,
        "fraction_shift": source.width - source.fraction_bits,
        "smallest": smallest,
        "field_offset": field_offset,
        "threshold": threshold,
        "threshold_above_smallest": above_smallest,
        "largest_code": fmt.largest_code,
        "cap": _overflow_code(fmt, rounding, special, negative=False),
        "infinity": _infinity_code(fmt, special),
        "zero": special.zero_code or 0,
        "has_negative": int(special.negative_code is not None),
        "negative": special.negative_code or 0,
        "nan": nan,
    }
    return PowerOfTwoTarget(**source.row(numbers))


def _thresholds(rounding: Rounding, source: Source) -> tuple[int, int, int]:
    """ENC-003: the smallest fraction that goes up; for even, for odd, and for negative numbers."""
    half = 1 << (source.width - 1)
    never = (1 << source.width) - 1  # no fraction is so large: its lowest bits are zero
    any_rest = 1
    table = {
        "rne": (half + 1, half, half + 1),
        "rna": (half, half, half),
        "rtz": (never, never, never),
        "rtp": (any_rest, any_rest, never),
        "rtn": (never, never, any_rest),
        "rto": (any_rest, never, any_rest),
        "sr": (never, never, never),
    }
    return table[rounding]


def _overflow_code(fmt: Format, rounding: Rounding, special: SpecialCases, negative: bool) -> int:
    """ENC-007: the magnitude's code, for a finite number that is rounded above the largest."""
    toward_zero = ("rtz", "rto", "rtp") if negative else ("rtz", "rto", "rtn")
    return fmt.largest_code if rounding in toward_zero else _infinity_code(fmt, special)


def _infinity_code(fmt: Format, special: SpecialCases) -> int:
    """ENC-008: the magnitude's code for an infinite input."""
    if special.overflow == "satfinite" or fmt.specials == "none":
        return fmt.largest_code
    # Infinity follows the largest number, and so does the NaN of a format without infinity.
    return fmt.largest_code + 1


def _nan_codes(fmt: Format, special: SpecialCases) -> tuple[int, int]:
    """ENC-009, ENC-010: the codes of a NaN without and with the sign bit."""
    if isinstance(special.nan, tuple):
        return special.nan
    if fmt.sign == "twos-complement":
        return 0, 0
    positive = fmt.largest_code if fmt.canonical_nan_code is None else fmt.canonical_nan_code
    return positive, positive | (fmt.sign_bit if special.nan == "signed" else 0)
