"""Kinds of calls of encoders: the formats, roundings and special cases in which mistakes are made.

Functions of a format say whether it is of a kind. The others read the arguments of a step, or
return a function that does.
"""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.encoding import Rounding, SpecialCases, rounding_for
from mor_ref.definitions.format import Format
from mor_ref.deviations.domains import is_narrow
from mor_ref.exact.arithmetic import rn32_of_binary64

_DEFAULT = SpecialCases()
Test = Callable[[Format], bool]
Call = Callable[..., bool]


# ---------------------------------------------------------------------- formats


def is_float(fmt: Format) -> bool:
    """Return whether a format has more than powers of two."""
    return not fmt.is_power_of_two


def is_power_of_two(fmt: Format) -> bool:
    """Return whether a format has powers of two alone."""
    return fmt.is_power_of_two


def is_signed(fmt: Format) -> bool:
    """Return whether a format has negative numbers."""
    return fmt.sign != "none"


def is_integer(fmt: Format) -> bool:
    """Return whether a format is in two's complement."""
    return fmt.sign == "twos-complement"


def is_fnuz(fmt: Format) -> bool:
    """Return whether the code of negative zero is NaN."""
    return fmt.specials == "fnuz"


def is_fn(fmt: Format) -> bool:
    """Return whether the code of all ones is NaN, next to numbers."""
    return fmt.specials == "fn" and not fmt.is_power_of_two


def is_ieee(fmt: Format) -> bool:
    """Return whether a format has infinities and several NaN."""
    return fmt.specials == "ieee"


def is_of_8_bits(fmt: Format) -> bool:
    """Return whether a format of numbers has 8 bits."""
    return is_narrow(fmt) and fmt.bits == 8


def has_nan(fmt: Format) -> bool:
    """Return whether a narrow format has NaN."""
    return is_narrow(fmt) and bool(fmt.nan_codes)


def has_signed_nan(fmt: Format) -> bool:
    """Return whether a format has NaN of both signs."""
    return len(fmt.nan_codes) > 1


def has_negative_zero(fmt: Format) -> bool:
    """Return whether a narrow format has two zeros."""
    return is_narrow(fmt) and fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"


def has_subnormals(fmt: Format) -> bool:
    """Return whether a format has subnormal numbers."""
    return bool(fmt.exponent_bits and fmt.mantissa_bits)


def has_narrow_subnormals(fmt: Format) -> bool:
    """Return whether a narrow format has subnormal numbers."""
    return is_narrow(fmt) and has_subnormals(fmt)


def is_named(name: str) -> Test:
    """Return whether a format is that of a name."""
    return lambda fmt: fmt.name == name


# ---------------------------------------------------------------------- encode


def to(test: Test) -> Call:
    """Return whether a number is encoded to a format of a kind."""
    return lambda _x, fmt, *_, **__: test(fmt)


def without_random_bits(test: Test) -> Call:
    """Return whether a number is encoded to a format of a kind, and no random bits decide."""
    return lambda _x, fmt, *_, random_word=None, **__: random_word is None and test(fmt)


def at_random(*_: Any, random_word: int | None = None, **__: Any) -> bool:
    """Return whether random bits decide."""
    return random_word is not None


def _asked(
    rounding: Rounding | None = None, special: SpecialCases = _DEFAULT
) -> tuple[Rounding | None, SpecialCases]:
    """Return the rounding and the special cases of a call, after a number and a format."""
    return rounding, special


def of_special_cases(_x: float, _fmt: Format, *rest: Any, **_: Any) -> bool:
    """Return whether overflow, NaN or a profile is asked for."""
    return _asked(*rest)[1] != _DEFAULT


def under_ieee(_x: float, fmt: Format, *rest: Any, **_: Any) -> bool:
    """Return whether numbers with a sign overflow as in IEEE 754."""
    return _asked(*rest)[1].overflow == "ieee" and fmt.sign == "sign-magnitude"


def under_satfinite(_x: float, fmt: Format, *rest: Any, **_: Any) -> bool:
    """Return whether overflow saturates in a format that has NaN."""
    return _asked(*rest)[1].overflow == "satfinite" and bool(fmt.nan_codes)


def at_random_under_ieee(x: float, fmt: Format, *rest: Any, **random: Any) -> bool:
    """Return whether random bits decide about an overflow as in IEEE 754."""
    return bool(random) and under_ieee(x, fmt, *rest)


def directed_under_ieee(x: float, fmt: Format, *rest: Any, **_: Any) -> bool:
    """Return whether some overflows end at the largest number, as the rounding is directed."""
    return _asked(*rest)[0] in ("rtz", "rtp", "rtn", "rto") and under_ieee(x, fmt, *rest)


def under_rna(_x: float, fmt: Format, *rest: Any, **_: Any) -> bool:
    """Return whether a number is rounded with ties away from zero."""
    return _asked(*rest)[0] == "rna" and not fmt.is_power_of_two


def wider_than_binary32(x: float, *_: Any, **__: Any) -> bool:
    """Return whether a number needs a wider source: a Python float does not name its source."""
    return not math.isnan(x) and rn32_of_binary64(x) != x


def telling_subnormals(_x: float, fmt: Format, *rest: Any, **_: Any) -> bool:
    """Return whether subnormal binary32 numbers and zero have different codes."""
    if fmt.smallest_exponent - fmt.mantissa_bits < -126:
        return True
    return rounding_for(fmt, *_asked(*rest)) in ("rtp", "rtn", "rto")


# ---------------------------------------------------------------------- its steps


def rounded_by(test: Test, *modes: Rounding) -> Call:
    """Return whether a format of a kind is rounded to by one of some modes."""
    return lambda fmt, mode, *_, **__: mode in modes and test(fmt)


def beyond(test: Test) -> Call:
    """Return whether a number overflows a format of a kind."""
    return lambda _code, _negative, fmt, *_: test(fmt)


def beyond_under_satfinite(
    _code: int, _negative: bool, fmt: Format, _mode: Rounding, special: SpecialCases
) -> bool:
    """Return whether an overflow saturates in a format that has NaN."""
    return special.overflow == "satfinite" and bool(fmt.nan_codes)


def beyond_under_ieee(*modes: Rounding) -> Call:
    """Return whether a number overflows as in IEEE 754, by one of some modes if there are some."""

    def where(
        _code: int, _negative: bool, _fmt: Format, mode: Rounding, special: SpecialCases
    ) -> bool:
        return special.overflow == "ieee" and (not modes or mode in modes)

    return where


def beyond_to_nan(
    _code: int, _negative: bool, fmt: Format, _mode: Rounding, special: SpecialCases
) -> bool:
    """Return whether an overflow becomes a NaN with a sign."""
    return special.overflow == "ieee" and fmt.infinity_code is None and has_signed_nan(fmt)


def nan_in(test: Test) -> Call:
    """Return whether a NaN is encoded to a format of a kind."""
    return lambda _x, fmt, _: test(fmt)


def canonical(_x: float, fmt: Format, special: SpecialCases) -> bool:
    """Return whether a format with a sign has one code for NaN."""
    return special.nan == "canonical" and fmt.sign == "sign-magnitude"


def canonical_of_two(_x: float, fmt: Format, special: SpecialCases) -> bool:
    """Return whether the one code for NaN has a twin with the sign bit."""
    code = fmt.canonical_nan_code
    if code is None or code & fmt.sign_bit or special.nan != "canonical":
        return False
    return any(code | fmt.sign_bit in codes for codes in fmt.nan_codes)


def signed_of_two(_x: float, fmt: Format, special: SpecialCases) -> bool:
    """Return whether a NaN keeps its sign."""
    return special.nan == "signed" and has_signed_nan(fmt)


def nan_next_to_infinity(_x: float, fmt: Format, _: SpecialCases) -> bool:
    """Return whether a format has infinities and NaN with more than one bit of mantissa."""
    return fmt.infinity_code is not None and fmt.mantissa_bits > 1


def nan_in_a_narrow_float(_x: float, fmt: Format, _: SpecialCases) -> bool:
    """Return whether a narrow format has a sign bit."""
    return is_narrow(fmt) and fmt.sign == "sign-magnitude"


def codes_of(test: Test) -> Call:
    """Return whether a code of a format of a kind is decoded."""
    return lambda _code, fmt: test(fmt)
