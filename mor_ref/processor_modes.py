"""Modes of the processor: whether it computes by IEEE 754. Other libraries can change them.

A library may set a thread to round in another direction, or to flush subnormal numbers. The modes
are those of binary32 and binary64 alike, so Python's own floats show them, in a tenth of a
microsecond.
"""

import functools
import struct
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _float_of(bits: int) -> float:
    """Return the binary64 number of these bits, which no mode changes on its way here."""
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


_ZERO, _HALF, _ONE = 0.0, 0.5, 1.0
_NEXT_TO_ONE = _float_of(0x3FF0000000000001)
_ABOVE_HALF_A_UNIT = _float_of(0x3CA0000000000001)
_BELOW_HALF_A_UNIT = _float_of(0x3C9FFFFFFFFFFFFF)
_SUBNORMAL = _float_of(0x0000000000000001)
_SMALLEST_NORMAL = _float_of(0x0010000000000000)
_LARGE = _float_of(0x7FE0000000000000)


def follows_ieee_754() -> bool:
    """Return whether this thread rounds to nearest, and does not flush subnormal numbers."""
    return (
        _ONE + _ABOVE_HALF_A_UNIT == _NEXT_TO_ONE  # neither down nor toward zero
        and _ONE + _BELOW_HALF_A_UNIT == _ONE  # not up
        and _SUBNORMAL * _LARGE > _ZERO
        and _SMALLEST_NORMAL * _HALF > _ZERO
    )


def check_processor() -> None:
    """Refuse to compute in a thread whose arithmetic is not that of IEEE 754."""
    if not follows_ieee_754():
        raise RuntimeError(
            "this thread flushes subnormal numbers or rounds in another direction, as some library "
            "in this process has set the processor to; undo that "
            "(torch.set_flush_denormal(False)) or call from another process"
        )


def in_usual_modes(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make a function refuse to begin in a thread whose arithmetic is not that of IEEE 754."""

    @functools.wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        check_processor()
        return function(*args, **kwargs)

    return checked
