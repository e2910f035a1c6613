"""Exemptions: why no input of a suite that reaches the step of a deviation can expose it."""

from mor_ref.deviations.domains import (
    IN_NVFP4,
    MX,
    NVFP4_4OVER6,
    NVFP4_FOREIGN,
    NVFP4_TE,
    POLICY_SUITES,
    joined,
)
from mor_ref.schemes import in_schemes

Reasons = dict[str, str]


def of_schemes(exemption: str) -> Reasons:
    """Return the reasons of the suites of schemes: `EXEMPTIONS` of their `domain`."""
    tables = [getattr(module, "EXEMPTIONS", {}) for module in in_schemes("domain")]
    return {name: why for table in tables for name, why in table.get(exemption, {}).items()}


# ---------------------------------------------------------------------- NaN and zeros

WITHOUT_NAN = dict.fromkeys(NVFP4_FOREIGN, "These profiles are of tensors without NaN (NVF-002).")
NO_NAN_IN_POLICIES = dict.fromkeys(
    POLICY_SUITES, "Policies have no field in binary32 that can be NaN."
)
NO_NAN_IN_STEPS = dict.fromkeys(
    joined("NO_NAN_IN_STEPS"), "The suite has no field that can be NaN."
)
AS_TORCH = {
    **dict.fromkeys(
        (name for name in IN_NVFP4 if name not in POLICY_SUITES),
        "In e4m3 torch differs only in the sign of NaN. The suite encodes results: a NaN of a "
        "computation has no sign.",
    ),
    **of_schemes("AS_TORCH"),
    **dict.fromkeys(
        POLICY_SUITES, "In e5m2 only an infinity overflows after scaling, and its unit falls back."
    ),
}

# ---------------------------------------------------------------------- blocks and scales

AMAX_ALONE = {
    name: "A number that a block has twice changes neither the largest magnitude nor the codes."
    for name in (*NVFP4_TE, *NVFP4_FOREIGN, *MX, *joined("AMAX_ALONE"))
    if name not in NVFP4_4OVER6
}
BETWEEN_ZERO_AND_TWICE_X = of_schemes("BETWEEN_ZERO_AND_TWICE_X")

# ---------------------------------------------------------------------- sums and decisions

SMALL_SUMS = {"quantize_blocks": "Sixteen terms of at most 2^23 fit 32 bits."}
