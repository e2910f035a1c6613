"""The suites of FP8-LM, and the domains of the core that they join."""

FP8LM_CODES = ("fp8lm_casts", "fp8lm_recasts", "fp8lm_sums")
FP8LM_CAST = (*FP8LM_CODES, "fp8lm_steps")

JOINS = {
    "CAST": FP8LM_CAST,
    "ROUNDED": FP8LM_CAST,
    "OVERFLOWS": FP8LM_CODES,
    "CODES_ALONE": ("fp8lm_sums", "fp8lm_steps"),
    "NANS_IN_BINARY32": ("fp8lm_scales", "fp8lm_adam", "fp8lm_stored"),
    "NO_NAN_IN_STEPS": ("fp8lm_shared", "fp8lm_steps"),
    "COMPUTED": (
        *("fp8lm_scales", "fp8lm_casts", "fp8lm_adam", "fp8lm_mu", "fp8lm_rates"),
        *("fp8lm_shared", "fp8lm_stored", "fp8lm_recasts", "fp8lm_steps"),
    ),
}
EXEMPTIONS = {
    "AS_TORCH": {
        "fp8lm_steps": "In e4m3 torch differs only in the sign of NaN, which the suite has not.",
    },
}
