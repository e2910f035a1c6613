"""Encoders that differ in rounding, with and without random bits."""

from collections.abc import Callable
from typing import Any

from mor_ref.definitions.encoding import Rounding
from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import IN_MX, ROUNDED, STOCHASTIC, STORED, is_narrow
from mor_ref.exact.encoding import code_goes_up, goes_up_at_random

Reference = Callable[..., Any]


def _to_nearest(fmt: Format, mode: Rounding, *_: Any, **__: Any) -> bool:
    return mode == "rne" and is_narrow(fmt)


def _to_nearest_bf16(fmt: Format, mode: Rounding, *_: Any, **__: Any) -> bool:
    return mode == "rne" and fmt.name == "bf16"


def _by_direction(fmt: Format, mode: Rounding, *_: Any, **__: Any) -> bool:
    return mode in ("rtp", "rtn") and fmt.sign != "none"


def _of_a_power_of_two(fmt: Format, *_: Any, **__: Any) -> bool:
    return fmt.is_power_of_two


def _rounding_as(
    mode: Rounding, reference: Reference, fmt: Format, _: Rounding, *rest: int, **known: Any
) -> bool:
    """Return the result of the step with another rounding."""
    return bool(reference(fmt, mode, *rest, **known))


def _ties(_: Reference, fmt: Format, mode: Rounding, rest: int, whole: int, *, go_up: bool) -> bool:
    """Return whether a number goes up: to the nearest, and ties if `go_up`."""
    del fmt, mode
    return 2 * rest > whole or (2 * rest == whole and go_up)


@deviation(code_goes_up, where=_to_nearest, rules=("ENC-003",), domain=ROUNDED)
def ties_away(*arguments: Any, **known: Any) -> bool:
    """Numbers halfway between two codes go away from zero, not to the even one."""
    return _rounding_as("rna", *arguments, **known)


@deviation(code_goes_up, where=_to_nearest, rules=("ENC-003",), domain=ROUNDED)
def truncation(*arguments: Any, **known: Any) -> bool:
    """Numbers are cut to the code below instead of rounded to the nearest."""
    return _rounding_as("rtz", *arguments, **known)


@deviation(code_goes_up, where=_to_nearest, rules=("ENC-003",), domain=ROUNDED)
def ties_toward_zero(*arguments: Any, **_: bool) -> bool:
    """Thresholds are compared with >, so ties take the code below."""
    return _ties(*arguments, go_up=False)


@deviation(code_goes_up, where=_to_nearest, rules=("ENC-003",), domain=ROUNDED)
def ties_to_odd(*arguments: Any, odd: bool, **_: bool) -> bool:
    """Ties take the odd code, not the even one."""
    return _ties(*arguments, go_up=not odd)


@deviation(code_goes_up, where=_to_nearest, rules=("ENC-003",), domain=ROUNDED)
def ties_toward_positive(*arguments: Any, negative: bool, **_: bool) -> bool:
    """Ties go up as in floor(x + 0.5): away from zero if positive, toward zero if negative."""
    return _ties(*arguments, go_up=not negative)


@deviation(code_goes_up, where=_by_direction, rules=("ENC-003",), domain=("encode",))
def directed_roundings_ignore_the_sign(
    reference: Reference, fmt: Format, mode: Rounding, *rest: int, odd: bool, negative: bool
) -> bool:
    """Rtp and rtn round magnitudes, whatever the sign."""
    del negative
    return bool(reference(fmt, mode, *rest, odd=odd, negative=mode == "rtn"))


@deviation(
    code_goes_up,
    where=_of_a_power_of_two,
    rules=("ENC-013",),
    domain=("encode", "encode_presets", *IN_MX),
)
def e8m0_rounds_down(*arguments: Any, **known: Any) -> bool:
    """The exponent of e8m0 is cut, even with rtp."""
    return _rounding_as("rtz", *arguments, **known)


@deviation(code_goes_up, where=_to_nearest_bf16, rules=("ENC-003", "QNT-003"), domain=STORED)
def bf16_truncated(*arguments: Any, **known: Any) -> bool:
    """bfloat16 is the upper half of binary32, without rounding."""
    return _rounding_as("rtz", *arguments, **known)


@deviation(code_goes_up, where=_to_nearest_bf16, rules=("ENC-003", "QNT-003"), domain=STORED)
def bf16_ties_away(*arguments: Any, **known: Any) -> bool:
    """bfloat16 is (bits + 0x8000) >> 16: ties go away from zero."""
    return _rounding_as("rna", *arguments, **known)


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_with_greater(_: Reference, rest: int, whole: int, word: int, n: int) -> bool:
    """F + r > 2^n rounds up, not F + r >= 2^n."""
    return (rest << n) // whole + word > 1 << n


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_fraction_rounded(_: Reference, rest: int, whole: int, word: int, n: int) -> bool:
    """F is the fraction rounded to n bits, not cut."""
    return (2 * (rest << n) + whole) // (2 * whole) + word >= 1 << n


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_word_at_the_wrong_end(
    _: Reference, rest: int, whole: int, word: int, _n: int
) -> bool:
    """The random bits are added at the lower end of a fraction of 32 bits."""
    return (rest << 32) // whole + word >= 1 << 32


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_below_the_fraction(_: Reference, rest: int, whole: int, word: int, n: int) -> bool:
    """A number goes up if its word is below F: as often as it should, but for other words."""
    return word < (rest << n) // whole


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
