"""Exemptions: why no input of a suite that reaches the step of a deviation can expose it."""

from mor_ref.deviations.domains import (
    COMPUTED_NANS,
    IN_NVFP4,
    MIXED_STEPS,
    MX,
    NVFP4_4OVER6,
    NVFP4_FOREIGN,
    NVFP4_TE,
    POLICY_SUITES,
    SHARED,
)

Reasons = dict[str, str]


# ---------------------------------------------------------------------- NaN and zeros

COMPUTED = dict.fromkeys(
    COMPUTED_NANS, "The suite encodes results: a NaN of a computation has no sign."
)
FALLS_BACK = dict.fromkeys(
    POLICY_SUITES, "A unit with a NaN falls back, and its error sums leave the NaN out."
)
WITHOUT_NAN = dict.fromkeys(NVFP4_FOREIGN, "These profiles are of tensors without NaN (NVF-002).")
NO_NAN_IN_POLICIES = dict.fromkeys(
    POLICY_SUITES, "Policies have no field in binary32 that can be NaN."
)
NO_NAN_IN_STEPS = dict.fromkeys(
    (*MIXED_STEPS, "fp8lm_shared", "fp8lm_steps"), "The suite has no field that can be NaN."
)
AS_TORCH = {
    **dict.fromkeys(
        (name for name in IN_NVFP4 if name not in POLICY_SUITES),
        "In e4m3 torch differs only in the sign of NaN. The suite encodes results: a NaN of a "
        "computation has no sign.",
    ),
    "fp8lm_steps": "In e4m3 torch differs only in the sign of NaN, which the suite has not.",
    **dict.fromkeys(
        POLICY_SUITES, "In e5m2 only an infinity overflows after scaling, and its unit falls back."
    ),
}
ZERO_SUMS = {
    "fp8lm_sums": "A sum is a whole number of the smallest numbers: +0, or it rounds to no zero."
}

# ---------------------------------------------------------------------- blocks and scales

AMAX_ALONE = {
    name: "A number that a block has twice changes neither the largest magnitude nor the codes."
    for name in (*NVFP4_TE, *NVFP4_FOREIGN, *MX, *SHARED)
    if name not in NVFP4_4OVER6
}
BETWEEN_ZERO_AND_TWICE_X = {
    "affine_groups": "The nearest integer to x / scale is never further from it than 0 is.",
}
NORMAL_SCALES = {
    "nvfp4_torchao": "The scale is always at least 2^-6 (NVF-007).",
}
SCALES_ABOVE_ZERO = {
    **NORMAL_SCALES,
    "nvfp4_modelopt": "The scale is always at least 2^-9 (NVF-008).",
}
SCALES_THAT_UNDERFLOW = {
    **SCALES_ABOVE_ZERO,
    **dict.fromkeys(
        POLICY_SUITES, "A number whose scale underflows is so small that it is 0 with the scale 1."
    ),
}
DIVIDED_FOR_DECODING = dict.fromkeys(
    ("nvfp4_torchao", "nvfp4_modelopt"), "S_dec is amax / Q (NVF-007, NVF-008)."
)
DIVIDED_FOR_ENCODING = dict.fromkeys(
    ("nvfp4_modelopt", "nvfp4_compressed_tensors"), "The profile divides numbers (NVF-010)."
)

# ---------------------------------------------------------------------- sums and decisions

SMALL_SUMS = {"quantize_blocks": "Sixteen terms of at most 2^23 fit 32 bits."}
