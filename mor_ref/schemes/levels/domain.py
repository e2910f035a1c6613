"""The suites of levels, and the domains of the core that they join."""

LEVELS = ("levels", "levels_large")
IN_LEVELS = ("levels_steps", *LEVELS)

JOINS = {
    "LARGE": ("levels_large",),
    "IN_ROWS": LEVELS,
    "NANS_IN_BINARY32": IN_LEVELS,
    "COMPUTED": IN_LEVELS,
}
