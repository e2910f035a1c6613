"""MX of torchao 0.18 on a CPU: each difference alone, and all together."""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import IN_MX
from mor_ref.deviations.floating_point import log2_in_binary32
from mor_ref.exact import mx
from mor_ref.exact.arithmetic import product, quotient
from mor_ref.exact.encoding import encode
from mor_ref.exact.quantization import Element

Reference = Callable[..., Any]
_NAN_CODE, _BIAS = 0xFF, 127
_MADE_BY_SHIFTS = {"e2m1": 0x3, "e2m3": 0x0C, "e3m2": 0x0E}  # codes for NaN


def _under_rceil(*arguments: Any) -> bool:
    return bool(arguments[-1] == "rceil")


def _under_another_rule(*arguments: Any) -> bool:
    return not _under_rceil(*arguments)


def _times(x: float, factor: float, code: int, fmt: Format) -> Element:
    """Return the element of a number that is multiplied by a factor other than its scale."""
    xs = product(x, factor)
    found = encode(xs, fmt, "rne")
    return Element(xs, found, product(fmt.value(found), math.ldexp(1.0, code - _BIAS)))


@deviation(mx.quantize_element, where=_under_another_rule, rules=("MXS-007",), domain=IN_MX)
def mx_divisor_at_least_smallest_normal(
    reference: Reference, x: float, code: int, fmt: Format, rule: str
) -> Element:
    """With floor, ceil and even, numbers are divided by at least 2^-126, not by 2^-127."""
    return reference(x, code, fmt, rule) if code else _times(x, 2.0 ** (_BIAS - 1), code, fmt)


@deviation(mx.quantize_element, where=_under_rceil, rules=("MXS-007",), domain=IN_MX)
def mx_rceil_leaves_code_0_unscaled(
    reference: Reference, x: float, code: int, fmt: Format, rule: str
) -> Element:
    """With rceil, numbers with the scale code 0 are multiplied by 1, not by 2^127."""
    return reference(x, code, fmt, rule) if code else _times(x, 1.0, code, fmt)


def _by_log2(reference: Reference, numbers: list[float], fmt: Format, rule: str) -> int:
    """Return ceil(log2(block_amax / largest)) in binary32 as a code: it can be 1 low."""
    if any(map(math.isnan, numbers)):
        return int(reference(numbers, fmt, rule))
    scale = quotient(mx.amax_of(numbers), fmt.largest)
    if scale == 0 or math.isinf(scale):
        return int(reference(numbers, fmt, rule))
    return min(max(math.ceil(log2_in_binary32(scale)), -_BIAS), _BIAS) + _BIAS


def _element(reference: Reference, x: float, code: int, fmt: Format, rule: str) -> Element:
    """Return an element of torchao, also in a block with a NaN."""
    if code == _NAN_CODE:
        xs = math.copysign(0.0, x) if rule != "rceil" and math.isfinite(x) else math.nan
        return Element(xs, _code(xs, x, fmt, rule), math.nan)
    if code == 0:
        return _times(x, 1.0 if rule == "rceil" else 2.0 ** (_BIAS - 1), code, fmt)
    found: Element = reference(x, code, fmt, rule)
    return found


def _code(xs: float, x: float, fmt: Format, rule: str) -> int:
    """Return the code of a NaN or a zero.

    A NaN of the input keeps its sign, but not with rceil. On x86, infinity divided by infinity is a
    NaN with a sign.
    """
    if not math.isnan(xs):
        return encode(xs, fmt, "rne")
    is_signed = math.isinf(x) or math.copysign(1.0, x) < 0
    code = _MADE_BY_SHIFTS.get(fmt.name)
    code = encode(math.nan, fmt, "rne") if code is None else code
    return code | (fmt.sign_bit if is_signed and rule != "rceil" else 0)


mx_as_torchao = Deviation(
    "mx_as_torchao",
    "MX is computed as torchao 0.18 does on a CPU: code 0 is not applied in full, rceil takes a "
    "logarithm in binary32, and numbers in a block with a NaN are divided by infinity.",
    ("MXS-006", "MXS-007"),
    IN_MX,
    (
        Change(mx.scale_code, _by_log2, _under_rceil),
        Change(mx.quantize_element, _element),
    ),
)
DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
