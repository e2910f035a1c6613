"""Encoders that differ in overflow."""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.encoding import Overflow, Rounding, SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import (
    ANY_OVERFLOWS,
    IN_MX,
    OVERFLOWS,
    POLICY_SUITES,
    STOCHASTIC,
    STORED,
    is_narrow,
)
from mor_ref.exact.encoding import encode, overflow_code

Reference = Callable[..., Any]
_DEFAULT = SpecialCases()


def _beyond_under_ieee(
    _code: int, _negative: bool, _fmt: Format, _mode: Rounding, special: SpecialCases
) -> bool:
    return special.overflow == "ieee"


def _beyond_under_satfinite(
    _code: int, _negative: bool, fmt: Format, _mode: Rounding, special: SpecialCases
) -> bool:
    return special.overflow == "satfinite" and bool(fmt.nan_codes)


def _beyond_by_direction(
    _code: int, _negative: bool, _fmt: Format, mode: Rounding, special: SpecialCases
) -> bool:
    return special.overflow == "ieee" and mode not in ("rne", "rna", "sr")


def _beyond_8_bits(_code: int, _negative: bool, fmt: Format, *_: Any) -> bool:
    return is_narrow(fmt) and fmt.bits == 8


def _beyond_int8(_code: int, _negative: bool, fmt: Format, *_: Any) -> bool:
    return fmt.sign == "twos-complement"


def _overflow_as(overflow: Overflow, reference: Reference, *step: Any) -> int:
    """Return the result of the step with another rule of overflow."""
    return int(reference(*step[:-1], SpecialCases(overflow=overflow)))


@deviation(
    overflow_code,
    where=_beyond_under_ieee,
    rules=("ENC-007",),
    domain=("encode", "encode_presets", "encode_stochastic", *POLICY_SUITES),
)
def saturates_in_every_mode(*arguments: Any) -> int:
    """An overflow becomes the largest number, even with ieee."""
    return _overflow_as("satfinite", *arguments)


@deviation(
    overflow_code, where=_beyond_under_satfinite, rules=("ENC-006", "ENC-007"), domain=ANY_OVERFLOWS
)
def no_saturation(*arguments: Any) -> int:
    """An overflow becomes infinity or NaN, even with satfinite, in formats that have one."""
    return _overflow_as("ieee", *arguments)


@deviation(overflow_code, where=_beyond_8_bits, rules=("ENC-007",), domain=OVERFLOWS)
def first_code_above_is_kept(
    reference: Reference, code: int, negative: bool, fmt: Format, *rest: Any
) -> int:
    """Only numbers above the next code saturate: 464 becomes NaN in e4m3, not 448."""
    if code == fmt.largest_code + 1:
        return code | (fmt.sign_bit if negative else 0)
    return int(reference(code, negative, fmt, *rest))


@deviation(overflow_code, where=_beyond_by_direction, rules=("ENC-007",), domain=("encode",))
def infinity_stops_at_the_largest(
    reference: Reference, code: int, negative: bool, fmt: Format, _: Rounding, *rest: Any
) -> int:
    """Overflow ignores the direction of a rounding: with ieee, even rtz goes to infinity."""
    return int(reference(code, negative, fmt, "rne", *rest))


@deviation(
    overflow_code,
    where=_beyond_int8,
    rules=("ENC-015",),
    domain=("encode", "encode_stochastic", *IN_MX),
)
def int8_reaches_128(
    reference: Reference, code: int, negative: bool, fmt: Format, *rest: Any
) -> int:
    """Negative numbers of int8_mx reach the code 0x80, which the reference never writes."""
    return fmt.largest_code + 1 if negative else int(reference(code, negative, fmt, *rest))


def _under_ieee(
    _x: float,
    fmt: Format,
    _rounding: Rounding | None = None,
    special: SpecialCases = _DEFAULT,
    **_: Any,
) -> bool:
    return special.overflow == "ieee" and fmt.sign == "sign-magnitude"


@deviation(
    encode,
    where=_under_ieee,
    rules=("ENC-007",),
    domain=(*STORED, *STOCHASTIC),
)
def overflow_before_rounding(
    reference: Reference, x: float, fmt: Format, *rest: Any, **known: Any
) -> int:
    """A number above the largest overflows, even if it would round to the largest."""
    beyond = math.copysign(2 * fmt.largest, x)
    is_above = math.isfinite(x) and abs(x) > fmt.largest
    return int(reference(beyond if is_above else x, fmt, *rest, **known))


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
