"""Exemptions: why no input of a suite that reaches the step of a deviation can expose it."""

from mor_ref.deviations.domains import (
    COMPUTED_NANS,
    ERRORS,
    GENERATED,
    IN_NVFP4,
    LARGE,
    MIXED_STEPS,
    MX,
    NVFP4_4OVER6,
    NVFP4_FOREIGN,
    NVFP4_TE,
    POLICY_SUITES,
    SHARED,
)

Reasons = dict[str, str]


def for_generated(domain: tuple[str, ...]) -> Reasons:
    """Return the large suites of a domain, whose numbers lack the inputs that a deviation needs."""
    reason = (
        "Numbers that are generated (VEC-009) have magnitudes of 0 or from 2^-24 to 2^20. A tensor "
        "has at most one infinity and one NaN, which is quiet, and no block that is all zeros."
    )
    return {name: reason for name in domain if name in GENERATED}


# ---------------------------------------------------------------------- NaN and zeros

COMPUTED = dict.fromkeys(
    COMPUTED_NANS, "The suite encodes results: a NaN of a computation has no sign."
)
FALLS_BACK = {"policies": "A unit with a NaN falls back, and its error sums leave the NaN out."}
WITHOUT_NAN = {
    **for_generated(("quantize_large", "policies_large")),
    **dict.fromkeys(NVFP4_FOREIGN, "These profiles are of tensors without NaN (NVF-002)."),
}
NO_NAN_IN_POLICIES = {"policies": "Policies have no field in binary32 that can be NaN."}
NO_NAN_IN_STEPS = dict.fromkeys(
    (*MIXED_STEPS, "fp8lm_shared", "fp8lm_steps"), "The suite has no field that can be NaN."
)
AS_TORCH = {
    **dict.fromkeys(
        (name for name in IN_NVFP4 if name not in POLICY_SUITES),
        "In e4m3 torch differs only in the sign of NaN. The suite encodes results: a NaN of a "
        "computation has no sign.",
    ),
    **for_generated(("quantize_large", "policies_large", "mixed_large")),
    "fp8lm_steps": "In e4m3 torch differs only in the sign of NaN, which the suite has not.",
    "policies": "In e5m2 only an infinity overflows after scaling, and its unit falls back.",
}
AS_ML_DTYPES = for_generated(("quantize_large", "policies_large"))
NO_NAN_IN_E5M2 = {
    "mixed_large": "No unit of its numbers has the least squared error under e5m2 (VEC-009)."
}
ZERO_SUMS = {
    "fp8lm_sums": "A sum is a whole number of the smallest numbers: +0, or it rounds to no zero."
}
ZEROS = {
    **for_generated(LARGE[:2]),
    "policies": "A zero is a zero with any finite scale, and policies have no field of scales.",
}

# ---------------------------------------------------------------------- blocks and scales

AMAX_ALONE = {
    name: "A number that a block has twice changes neither the largest magnitude nor the codes."
    for name in (*NVFP4_TE, *NVFP4_FOREIGN, *MX, *SHARED)
    if name not in NVFP4_4OVER6
}
BETWEEN_ZERO_AND_TWICE_X = {
    **for_generated(ERRORS),
    "affine_groups": "The nearest integer to x / scale is never further from it than 0 is.",
}
NOT_STORED = dict.fromkeys(POLICY_SUITES, "Policies have no field of stored exponents.")
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
    ("nvfp4_torchao", "nvfp4_modelopt"), "S_dec is tensor_max / Q (NVF-007, NVF-008)."
)
DIVIDED_FOR_ENCODING = dict.fromkeys(
    ("nvfp4_modelopt", "nvfp4_compressed_tensors"), "The profile divides numbers (NVF-010)."
)
LIKELY_NUMBERS = {"shared_large": "No number (VEC-009) is so near below a power of two."}

# ---------------------------------------------------------------------- sums and decisions

SMALL_SUMS = {"quantize_blocks": "Sixteen terms of at most 2^23 fit 32 bits."}
CLEAR_MEANS = {
    "policies_large": "No threshold is near the mean error of a unit of such numbers (VEC-009)."
}
CLEAR_RANGES = {
    "policies_large": "No ratio of amax to amin (VEC-009) is within a step of the range of e5m2."
}
