"""MX and NVFP4 of gguf, the Python code of llama.cpp: scales at the ends of their range."""

from collections.abc import Callable
from typing import Any

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.deviations.deviation import Deviation, deviation
from mor_ref.deviations.domains import IN_MX, IN_NVFP4
from mor_ref.deviations.mx import by_rceil
from mor_ref.exact import mx, nvfp4
from mor_ref.exact.encoding import floor_log2

Reference = Callable[..., Any]
_BIAS, _CODES = formats["e8m0"].bias, 256
_LARGEST_SCALE = 0x7E  # of e4m3: 448


def _by_exponent(numbers: list[float], fmt: Format, rule: str) -> bool:
    return not by_rceil(numbers, fmt, rule)


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


DEVIATIONS = tuple(value for value in globals().values() if isinstance(value, Deviation))
