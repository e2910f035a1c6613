"""MX that differs: other rules, other guards, other exponents."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import IN_MX, MX_DECODED
from mor_ref.deviations.flushing import flushed
from mor_ref.exact import mx
from mor_ref.exact.arithmetic import FLT_MAX, bits_of, product, quotient, rn32
from mor_ref.exact.encoding import floor_log2

Reference = Callable[..., Any]
_BIAS = 127
_ON_THE_WAY_BACK = (*MX_DECODED, *IN_MX)


def _mx_as(other: str) -> Deviation:
    """Return the deviation that takes one scale rule in place of every other."""

    def is_another(_numbers: list[float], _fmt: Format, rule: str) -> bool:
        return rule != other

    def swapped(reference: Reference, numbers: list[float], fmt: Format, _: str) -> Any:
        return reference(numbers, fmt, other)

    return Deviation(
        f"mx_as_{other}",
        f"The scales of MX follow {other}, whichever rule is asked for.",
        ("MXS-003", "MXS-004", "MXS-005", "MXS-006"),
        IN_MX,
        (Change(mx.scale_code, swapped, is_another),),
    )


@deviation(mx.scale_code, rules=("MXS-002",), domain=IN_MX)
def mx_zero_block_is_127(reference: Reference, numbers: list[float], *rest: Any) -> int:
    """A block of zeros has the scale 1, the code 127."""
    return int(reference(numbers, *rest)) if any(numbers) else 127


@deviation(mx.scale_code, rules=("MXS-002",), domain=IN_MX)
def mx_ignores_nan(reference: Reference, numbers: list[float], *rest: Any) -> int:
    """A NaN does not count in the scale of its block."""
    return int(reference([x for x in numbers if not math.isnan(x)], *rest))


@deviation(mx.scale_code, rules=("MXS-002",), domain=IN_MX)
def mx_infinity_is_nan(reference: Reference, numbers: list[float], *rest: Any) -> int:
    """A block with an infinity has the scale NaN."""
    return 0xFF if any(math.isinf(x) for x in numbers) else int(reference(numbers, *rest))


def by_rceil(_numbers: list[float], _fmt: Format, rule: str) -> bool:
    """Return whether the rule is rceil."""
    return rule == "rceil"


@deviation(mx.scale_code, where=by_rceil, rules=("MXS-006",), domain=IN_MX)
def mx_underflow_is_one(reference: Reference, numbers: list[float], fmt: Format, rule: str) -> int:
    """A quotient block_amax / largest that underflows to 0 is stored as the scale 1, code 127."""
    amax = mx.amax_of(numbers)
    underflows = amax > 0 and quotient(amax, fmt.largest) == 0
    return 127 if underflows else int(reference(numbers, fmt, rule))


@deviation(mx.scale_code, rules=("MXS-001", "MXS-008"), domain=IN_MX)
def mx_stores_the_inverse(reference: Reference, *arguments: Any) -> int:
    """254 - code is stored, the scale that numbers are multiplied by."""
    code = int(reference(*arguments))
    return code if code == 0xFF else 254 - code


def _by_floor(_amax: float, _fmt: Format, rule: str) -> bool:
    return rule == "floor"


@deviation(mx.shared_exponent, where=_by_floor, rules=("MXS-003",), domain=IN_MX)
def mx_log2_in_floating_point(reference: Reference, amax: float, *rest: Any) -> int:
    """The exponent is floor(log2(block_amax)) in binary32: too large just below powers of two."""
    return (
        math.floor(log2_in_binary32(amax)) if math.isfinite(amax) else int(reference(amax, *rest))
    )


def log2_in_binary32(x: float) -> float:
    """Return the logarithm of a positive number; binary64 has more bits than the rounding needs."""
    mantissa, exponent = math.frexp(x)
    return rn32(Fraction(math.log2(mantissa)) + exponent)


@deviation(mx.shared_exponent, rules=("MXS-002",), domain=IN_MX)
def mx_element_exponent_left_out(reference: Reference, amax: float, fmt: Format, rule: str) -> int:
    """The code follows from block_amax: the exponent of the largest number is not subtracted."""
    return int(reference(amax, fmt, rule)) + floor_log2(fmt.largest)


@deviation(mx.restored, rules=("MXS-008",), domain=_ON_THE_WAY_BACK)
def mx_scale_by_a_shift(reference: Reference, value: float, code: int) -> float:
    """Y has a scale whose bits are code << 23: code 0 is 0, and code 255 infinity."""
    if code not in (0, 0xFF):
        return float(reference(value, code))
    return product(value, math.inf if code else 0.0)


@deviation(mx.restored, rules=("MXS-009",), domain=_ON_THE_WAY_BACK)
def mx_products_saturate(reference: Reference, value: float, code: int) -> float:
    """A product above the range of binary32 is the largest number, not an infinity."""
    found = float(reference(value, code))
    is_beyond = math.isinf(found) and math.isfinite(value)
    return math.copysign(FLT_MAX, value) if is_beyond else found


def _of_two_s_complement(_element: int, _code: int, fmt: Format) -> bool:
    return fmt.sign == "twos-complement"


@deviation(mx.decoded, where=_of_two_s_complement, rules=("MXS-009",), domain=MX_DECODED)
def mx_lowest_integer_is_the_next(
    reference: Reference, element: int, code: int, fmt: Format
) -> float:
    """The lowest code of int8_mx, 0x80, stands for the number of 0x81."""
    return float(reference(element + (element == fmt.sign_bit), code, fmt))


def _has_specials(_element: int, _code: int, fmt: Format) -> bool:
    return fmt.specials == "ieee"


@deviation(mx.decoded, where=_has_specials, rules=("MXS-009",), domain=MX_DECODED)
def mx_infinite_elements_are_nan(
    reference: Reference, element: int, code: int, fmt: Format
) -> float:
    """An infinite element is NaN, because quantizers make none."""
    found = float(reference(element, code, fmt))
    return math.nan if math.isinf(fmt.value(element)) else found


def _has_nan(_element: int, _code: int, fmt: Format) -> bool:
    return fmt.specials in ("ieee", "fn")


@deviation(mx.decoded, where=_has_nan, rules=("MXS-009",), domain=MX_DECODED)
def mx_nan_elements_are_zero(reference: Reference, element: int, code: int, fmt: Format) -> float:
    """An element that is NaN with a finite scale is 0."""
    is_nan = math.isnan(fmt.value(element)) and code != 0xFF
    return 0.0 if is_nan else float(reference(element, code, fmt))


def _scale_of_flushed(reference: Reference, numbers: list[float], fmt: Format, rule: str) -> Any:
    return reference([flushed(x) for x in numbers], fmt, rule)


def _element_of_flushed(reference: Reference, x: float, code: int, fmt: Format, rule: str) -> Any:
    return reference(flushed(x), code, fmt, rule)


INPUTS_FLUSHED = Deviation(
    "mx_subnormal_inputs_are_zeros",
    "Subnormal inputs are zeros before the block is looked at, as OCP allows.",
    ("MXS-002", "MXS-007"),
    IN_MX,
    (Change(mx.scale_code, _scale_of_flushed), Change(mx.quantize_element, _element_of_flushed)),
)


def _by_even(_amax: float, _fmt: Format, rule: str) -> bool:
    return rule == "even"


@deviation(mx.shared_exponent, where=_by_even, rules=("MXS-005",), domain=IN_MX)
def mx_even_adds_to_subnormal_bits(
    reference: Reference, amax: float, fmt: Format, rule: str
) -> int:
    """With even, half of a step is added to the bits of block_amax, even if subnormal."""
    if math.isinf(amax):
        return int(reference(amax, fmt, rule))
    width = fmt.mantissa_bits - (fmt.sign == "twos-complement")
    return (bits_of(amax) + (1 << 22 - width) >> 23) - _BIAS


DEVIATIONS = (
    *(_mx_as(rule) for rule in SCALE_RULES.specified),
    *(value for value in tuple(globals().values()) if isinstance(value, Deviation)),
)
