"""The suites of shared exponents, and the domains of the core that they join."""

SHARED = ("shared", "shared_large")
IN_SHARED = ("shared_blocks", *SHARED)

JOINS = {
    "LARGE": ("shared_large",),
    "TENSORS": SHARED,
    "RUNS": SHARED,
    "NANS_IN_BINARY32": ("shared_blocks", "shared"),
    "AMAX_ALONE": SHARED,
}
