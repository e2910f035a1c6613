"""Encoders that round otherwise, with and without random bits."""

from collections.abc import Callable
from typing import Any

from mor_ref.conventions import Rounding
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import (
    ELEMENTS,
    OUTPUT,
    STOCHASTIC,
    is_narrow,
)
from mor_ref.exact.conversions import (
    code_goes_up,
    goes_up_at_random,
)
from mor_ref.format import Format

Reference = Callable[..., Any]


def _rounding_as(
    mode: Rounding, reference: Reference, fmt: Format, given: Rounding, *rest: int, **known: bool
) -> bool:
    """The step with another rounding in place of rne, in the small formats."""
    chosen = mode if given == "rne" and is_narrow(fmt) else given
    return bool(reference(fmt, chosen, *rest, **known))


@deviation(code_goes_up, rules=("ENC-003",), domain=ELEMENTS)
def ties_away(*arguments: Any, **known: Any) -> bool:
    """Numbers halfway between two codes go away from zero, not to the even one."""
    return _rounding_as("rna", *arguments, **known)


@deviation(code_goes_up, rules=("ENC-003",), domain=ELEMENTS)
def truncation(*arguments: Any, **known: Any) -> bool:
    """Numbers are cut to the code below instead of rounded to the nearest."""
    return _rounding_as("rtz", *arguments, **known)


@deviation(code_goes_up, rules=("ENC-003",), domain=ELEMENTS)
def ties_toward_zero(
    reference: Reference, fmt: Format, mode: Rounding, rest: int, whole: int, **known: bool
) -> bool:
    """Thresholds are compared with > throughout, so that ties take the code below."""
    if mode == "rne" and is_narrow(fmt):
        return 2 * rest > whole
    return bool(reference(fmt, mode, rest, whole, **known))


@deviation(code_goes_up, rules=("ENC-003",), domain=ELEMENTS)
def ties_to_odd(
    reference: Reference,
    fmt: Format,
    mode: Rounding,
    rest: int,
    whole: int,
    *,
    odd: bool,
    negative: bool,
) -> bool:
    """Ties take the odd code: the last bit is looked at the wrong way round."""
    if mode == "rne" and is_narrow(fmt) and 2 * rest == whole:
        return not odd
    return bool(reference(fmt, mode, rest, whole, odd=odd, negative=negative))


@deviation(code_goes_up, rules=("ENC-003",), domain=ELEMENTS)
def ties_toward_positive(
    reference: Reference,
    fmt: Format,
    mode: Rounding,
    rest: int,
    whole: int,
    *,
    odd: bool,
    negative: bool,
) -> bool:
    """Ties go up as in floor(x + 0.5): away from zero for positive numbers, to it for negative."""
    if mode == "rne" and is_narrow(fmt) and 2 * rest == whole:
        return not negative
    return bool(reference(fmt, mode, rest, whole, odd=odd, negative=negative))


@deviation(code_goes_up, rules=("ENC-003",), domain=("encode",))
def directed_roundings_ignore_the_sign(
    reference: Reference, fmt: Format, mode: Rounding, *rest: int, odd: bool, negative: bool
) -> bool:
    """Rtp and rtn round magnitudes, whatever the sign."""
    del negative
    return bool(reference(fmt, mode, *rest, odd=odd, negative=mode == "rtn"))


@deviation(code_goes_up, rules=("ENC-013",), domain=("encode",))
def e8m0_rounds_down(
    reference: Reference, fmt: Format, mode: Rounding, *rest: int, **known: bool
) -> bool:
    """The exponent of e8m0 is taken as it is, under rtp too."""
    return bool(reference(fmt, "rtz" if fmt.is_power_of_two else mode, *rest, **known))


@deviation(code_goes_up, rules=("ENC-003", "QNT-003"), domain=("encode", *OUTPUT))
def bf16_truncated(
    reference: Reference, fmt: Format, mode: Rounding, *rest: int, **known: bool
) -> bool:
    """bfloat16 is the upper half of binary32, without rounding."""
    is_cut = fmt.name == "bf16" and mode == "rne"
    return bool(reference(fmt, "rtz" if is_cut else mode, *rest, **known))


@deviation(code_goes_up, rules=("ENC-003", "QNT-003"), domain=("encode", *OUTPUT))
def bf16_ties_away(
    reference: Reference, fmt: Format, mode: Rounding, *rest: int, **known: bool
) -> bool:
    """bfloat16 is (bits + 0x8000) >> 16: ties go away from zero."""
    is_rounded = fmt.name == "bf16" and mode == "rne"
    return bool(reference(fmt, "rna" if is_rounded else mode, *rest, **known))


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_with_greater(
    reference: Reference, rest: int, whole: int, word: int, n_random_bits: int
) -> bool:
    """F + r has to exceed 2^n: the boundary itself stays below."""
    del reference
    return (rest << n_random_bits) // whole + word > 1 << n_random_bits


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_fraction_rounded(
    reference: Reference, rest: int, whole: int, word: int, n_random_bits: int
) -> bool:
    """F is the fraction rounded to n bits, not cut."""
    del reference
    fraction = (2 * (rest << n_random_bits) + whole) // (2 * whole)
    return fraction + word >= 1 << n_random_bits


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_word_at_the_wrong_end(
    reference: Reference, rest: int, whole: int, word: int, n_random_bits: int
) -> bool:
    """The random bits are added at the lower end of a fraction of 32 bits."""
    del reference, n_random_bits
    return (rest << 32) // whole + word >= 1 << 32


@deviation(goes_up_at_random, rules=("ENC-005",), domain=STOCHASTIC)
def stochastic_below_the_fraction(
    reference: Reference, rest: int, whole: int, word: int, n_random_bits: int
) -> bool:
    """A number goes up if its word is below F: the right share, but for other words."""
    del reference
    return word < (rest << n_random_bits) // whole


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
