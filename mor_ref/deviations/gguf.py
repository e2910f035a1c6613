"""MX and NVFP4 of gguf, the Python code of llama.cpp: scales at the ends of their range."""

import math
from collections.abc import Callable
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Change, Deviation, deviation
from mor_ref.deviations.domains import IN_MX, IN_NVFP4
from mor_ref.deviations.floating_point import log2_in_binary32
from mor_ref.exact import mx, nvfp4
from mor_ref.exact.arithmetic import difference, product
from mor_ref.exact.encoding import floor_log2
from mor_ref.exact.quantization import Element

Reference = Callable[..., Any]
_BIAS, _CODES = formats["e8m0"].bias, 256
_LARGEST_SCALE = 0x7E  # of e4m3: 448


def _by_exponent(_numbers: list[float], _fmt: Format, rule: str) -> bool:
    return rule != "rceil"


@deviation(mx.scale_code, where=_by_exponent, rules=("MXS-002",), domain=IN_MX)
def mx_scale_code_wraps(reference: Reference, numbers: list[float], fmt: Format, rule: str) -> int:
    """A scale code below 0 wraps around, as in gguf 0.19: -1 becomes 255."""
    code, amax = int(reference(numbers, fmt, rule)), mx.amax_of(numbers)
    if code or amax == 0:
        return code
    return (mx.shared_exponent(amax, fmt, rule) - floor_log2(fmt.largest) + _BIAS) % _CODES


@deviation(nvfp4.block_scale_code, rules=("NVF-002",), domain=IN_NVFP4)
def block_scale_saturates_from_248(reference: Reference, s: float) -> int:
    """The scale of a tile becomes 448 from 248 on, as in gguf 0.19: no e4m3 from 256 on is used."""
    return _LARGEST_SCALE if s >= 248 else int(reference(s))


def _is_mxfp4(*parameters: Any) -> bool:
    *_, fmt, rule = parameters
    return bool(fmt.name == "e2m1" and rule == "floor")


def _scale_code(_: Reference, numbers: list[float], fmt: Format, _rule: str) -> int:
    """Return a scale code of gguf: of 8 bits, and 0 for a block with a NaN or an infinity."""
    amax = max(map(abs, numbers), default=0.0)
    if amax == 0 or not all(map(math.isfinite, numbers)):
        return 0
    return (math.floor(log2_in_binary32(amax)) - floor_log2(fmt.largest) + _BIAS) % _CODES


def _element(_: Reference, x: float, code: int, fmt: Format, _rule: str) -> Element:
    """Return an element of gguf: the first of the nearest numbers, as distances are binary32.

    Numbers that the scale makes infinite are the farthest. A NaN or an infinity is 0.
    """
    scale = math.ldexp(1.0, code - _BIAS)
    codes = [k for k in range(fmt.code_count) if k != fmt.sign_bit]
    distance = {k: abs(difference(product(fmt.value(k), scale), x)) for k in codes}
    found = min(codes, key=distance.__getitem__) if math.isfinite(x) else 0
    return Element(product(x, 1 / scale), found, product(fmt.value(found), scale))


mx_as_gguf = Deviation(
    "mx_as_gguf",
    "MXFP4 with floor is computed as gguf 0.19 does: scale codes wrap, take a logarithm in "
    "binary32 and are 0 in a block with a NaN or an infinity; ties go down, and no code is -0.",
    ("MXS-002", "MXS-007"),
    IN_MX,
    (
        Change(mx.scale_code, _scale_code, _is_mxfp4),
        Change(mx.quantize_element, _element, _is_mxfp4),
    ),
)
DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
