"""Encoding."""

import math
from fractions import Fraction
from typing import NamedTuple

from mor_ref.definitions.encoding import (
    RandomBits,
    Rounding,
    SpecialCases,
    rounding_for,
    takes_random_bits,
)
from mor_ref.definitions.format import Format
from mor_ref.exact.step import step

_OURS = SpecialCases()


class Ratio(NamedTuple):
    """A rational number that need not be in lowest terms; its denominator is positive."""

    numerator: int
    denominator: int

    @classmethod
    def of(cls, a: float, b: float) -> "Ratio":
        """Return a / b exactly; b is positive."""
        (p, q), (r, s) = a.as_integer_ratio(), b.as_integer_ratio()
        return cls(p * s, q * r)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return both, as a float and a Fraction do."""
        return self


@step
def encode(
    x: float,
    fmt: Format,
    rounding: Rounding | None = None,
    special: SpecialCases = _OURS,
    *,
    random_word: int | None = None,
    n_random_bits: int | None = None,
) -> int:
    """Return the code of `x` in `fmt` (ENC-001).

    >>> from mor_ref.definitions.formats import formats
    >>> hex(encode(0.3, formats["e4m3"])), hex(encode(-1000.0, formats["e4m3"]))
    ('0x2a', '0xfe')
    """
    mode = rounding_for(fmt, rounding, special)
    if mode == "sr" or random_word is not None or n_random_bits is not None:
        takes_random_bits(mode, random_word=random_word, n_random_bits=n_random_bits)
    if fmt.is_power_of_two:
        return power_of_two_code(x, fmt, mode, special)
    negative = fmt.sign != "none" and math.copysign(1.0, x) < 0  # ENC-012
    if math.isnan(x):
        return nan_code(x, fmt, special)
    if math.isinf(x):
        return infinite_code(negative, fmt, special)  # ENC-008
    exponent = max(floor_log2(abs(x)) if x else fmt.smallest_exponent, fmt.smallest_exponent)
    below, rest, whole = in_units_of(exponent - fmt.mantissa_bits, abs(x))  # ENC-002
    if random_word is not None and n_random_bits is not None:
        up = goes_up_at_random(rest, whole, random_word, n_random_bits)
    else:
        up = code_goes_up(fmt, mode, rest, whole, odd=below % 2 == 1, negative=negative)
    code = ((exponent - fmt.smallest_exponent) << fmt.mantissa_bits) + below + up  # ENC-004
    if code > fmt.largest_code:  # ENC-007: judged after rounding
        return overflow_code(code, negative, fmt, mode, special)
    return with_sign(code, negative, fmt)  # ENC-011


def nearest_toward_zero(x: float, fmt: Format) -> int:
    """Return the code of the nearest number; if `x` is halfway, that toward zero (BLF-014)."""
    toward_zero, away = encode(x, fmt, "rtz"), encode(x, fmt, "rna")
    if toward_zero == away:
        return away
    middle = (Fraction(fmt.value(toward_zero)) + Fraction(fmt.value(away))) / 2
    return toward_zero if Fraction(x) == middle else away


def floor_log2(magnitude: float | Fraction | Ratio) -> int:
    """Return the exponent e with 2^e <= magnitude < 2^(e + 1); magnitude is positive and finite."""
    if isinstance(magnitude, float):
        return math.frexp(magnitude)[1] - 1
    numerator, denominator = magnitude.as_integer_ratio()
    exponent = numerator.bit_length() - denominator.bit_length()
    if exponent < 0:
        is_reached = numerator << -exponent >= denominator
    else:
        is_reached = numerator >= denominator << exponent
    return exponent if is_reached else exponent - 1


def in_units_of(unit: int, magnitude: float | Fraction | Ratio) -> tuple[int, int, int]:
    """Return `magnitude` as below + rest / whole units of 2^unit, with rest < whole."""
    numerator, denominator = magnitude.as_integer_ratio()
    if unit < 0:
        numerator <<= -unit
    else:
        denominator <<= unit
    below, rest = divmod(numerator, denominator)
    return below, rest, denominator


def goes_up(mode: Rounding, rest: int, whole: int, *, odd: bool, negative: bool) -> bool:
    """Return whether below + rest / whole becomes below + 1 (ENC-003); `odd` describes below."""
    match mode:
        case "rne":
            return 2 * rest > whole or (2 * rest == whole and odd)
        case "rna":
            return 2 * rest >= whole
        case "rtz":
            return False
        case "rtp":
            return rest > 0 and not negative
        case "rtn":
            return rest > 0 and negative
        case "rto":
            return rest > 0 and not odd
    raise ValueError(f"mode is {mode!r}, which is not a rounding without random bits")


@step
def code_goes_up(
    fmt: Format, mode: Rounding, rest: int, whole: int, *, odd: bool, negative: bool
) -> bool:
    """Return whether a number takes the code above (ENC-003), alike in every format."""
    del fmt
    return goes_up(mode, rest, whole, odd=odd, negative=negative)


@step
def goes_up_at_random(rest: int, whole: int, random_word: int, n_random_bits: int) -> bool:
    """Return whether F + r >= 2^n, with the random bits of the caller (ENC-005)."""
    if not 1 <= n_random_bits <= 32:
        raise ValueError(f"n_random_bits is {n_random_bits}; give 1 to 32")
    if not 0 <= random_word < 1 << n_random_bits:
        raise ValueError(f"random_word is {random_word}, which does not fit {n_random_bits} bits")
    fraction = (rest << n_random_bits) // whole
    return fraction + random_word >= 1 << n_random_bits


def random_words(word: int, bits: RandomBits) -> list[int]:
    """ENC-017. Return the random words of elements that share a word."""
    words = []
    for ranges in bits.places:
        random_word = 0
        for highest, lowest in ranges:
            step_to = 1 if lowest > highest else -1
            for place in range(highest, lowest + step_to, step_to):
                random_word = 2 * random_word + (word >> place) % 2
        for bit in bits.ending:
            random_word = 2 * random_word + int(bit)
        words.append(random_word)
    return words


def with_sign(code: int, negative: bool, fmt: Format) -> int:
    """Return the code of a magnitude with its sign (ENC-011, ENC-015)."""
    if not negative or (code == 0 and fmt.specials == "fnuz"):
        return code
    if fmt.sign == "twos-complement":
        return -code % fmt.code_count
    return code | fmt.sign_bit


@step
def overflow_code(
    code: int, negative: bool, fmt: Format, mode: Rounding, special: SpecialCases
) -> int:
    """Return the code of a finite input that rounds to above the largest (ENC-006, ENC-007).

    `code` is the code of the rounded magnitude in a format without an end.
    """
    del code
    toward_zero = mode in ("rtz", "rto") or mode == ("rtp" if negative else "rtn")
    if toward_zero:
        return with_sign(fmt.largest_code, negative, fmt)
    return infinite_code(negative, fmt, special)


@step
def infinite_code(negative: bool, fmt: Format, special: SpecialCases) -> int:
    """Return the code of an infinity, which is not an overflow: no rounding applies (ENC-008)."""
    code: int | None = None
    if special.overflow == "ieee":
        code = fmt.infinity_code if fmt.infinity_code is not None else fmt.canonical_nan_code
    return with_sign(fmt.largest_code if code is None else code, negative, fmt)


@step
def nan_code(x: float, fmt: Format, special: SpecialCases) -> int:
    """Return the code of a NaN (ENC-009, ENC-010)."""
    negative = fmt.sign != "none" and math.copysign(1.0, x) < 0  # ENC-012
    if isinstance(special.nan, tuple):
        return special.nan[negative]
    if fmt.sign == "twos-complement":
        return 0
    code = fmt.largest_code if fmt.canonical_nan_code is None else fmt.canonical_nan_code
    return with_sign(code, negative and special.nan == "signed", fmt)


@step
def power_of_two_code(x: float, fmt: Format, mode: Rounding, special: SpecialCases) -> int:
    """Return the code in a format that holds only powers of two (ENC-013, ENC-014)."""
    if math.isnan(x):
        return nan_code(x, fmt, special)
    if x == 0 and special.zero_code is not None:
        return special.zero_code
    if x < 0 and special.negative_code is not None:
        return special.negative_code
    if math.isinf(x):
        return infinite_code(False, fmt, special)  # ENC-014
    if abs(x) <= math.ldexp(1.0, fmt.smallest_exponent):
        return 0
    exponent = floor_log2(abs(x))
    _, rest, whole = in_units_of(exponent, abs(x))
    if mode == "rna" and exponent == fmt.smallest_exponent and special.above_smallest_goes_up:
        mode = "rtp"
    code = exponent - fmt.smallest_exponent
    code += code_goes_up(fmt, mode, rest, whole, odd=False, negative=False)
    return code if code <= fmt.largest_code else overflow_code(code, False, fmt, mode, special)
