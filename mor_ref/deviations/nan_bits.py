"""NaNs in binary32 whose bits come from an operand, as on processors.

No operator of the model makes them: an operation and the bits of its result differ at once, each
in another way, and neither makes sense without the other.
"""

import math
import struct
from collections.abc import Callable
from typing import Any

from mor_ref.deviations.deviation import Change, Deviation
from mor_ref.deviations.domains import NANS_IN_BINARY32, POLICY_SUITES
from mor_ref.deviations.exemptions import NO_NAN_IN_POLICIES, NO_NAN_IN_STEPS
from mor_ref.exact.arithmetic import nan_of
from mor_ref.exact.decoding import nan_bits

Reference = Callable[..., Any]
_QUIET, _SIGN = 0x7FC00000, 0x80000000
_PAYLOAD = 0x3FFFFF  # of a quiet NaN
_RULES = ("ART-003", "DEC-002")


def _bits(_: Reference, x: float) -> int:
    """Return a quiet NaN of binary32 with the sign and the payload of a NaN of binary64."""
    (word,) = struct.unpack(">Q", struct.pack(">d", x))
    return int(word >> 32 & _SIGN | _QUIET | word >> 29 & _PAYLOAD)


def _operand_kept(name: str, made: float, where: str) -> Deviation:
    """Return the deviation in which a NaN operand is the result; `made` is the NaN of numbers."""

    def kept(_: Reference, a: float, b: float) -> float:
        return next((x for x in (a, b) if math.isnan(x)), made)

    return Deviation(
        name,
        f"A NaN keeps the sign and payload of the operand that it comes from; {where}.",
        _RULES,
        (*NANS_IN_BINARY32, *POLICY_SUITES, *NO_NAN_IN_STEPS),
        (Change(nan_of, kept), Change(nan_bits, _bits)),
        {**NO_NAN_IN_POLICIES, **NO_NAN_IN_STEPS},
    )


DEVIATIONS = (
    _operand_kept("nan_payload_kept", math.nan, "one of numbers is 0x7FC00000, as on Arm"),
    _operand_kept(
        "nan_payload_kept_on_x86",
        math.copysign(math.nan, -1),
        "one of numbers is 0xFFC00000, as on x86",
    ),
)
