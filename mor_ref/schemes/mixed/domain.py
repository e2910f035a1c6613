"""The suites of mixtures, and the domains of the core that they join."""

MIXED = ("mixed", "mixed_large")
MIXED_STEPS = ("mixed_steps", "mixed_layers")
IN_MIXED = (*MIXED_STEPS, *MIXED)

JOINS = {
    "LARGE": ("mixed_large",),
    "OWN_SCALES": MIXED,
    "SCALED": MIXED,
    "TENSORS": MIXED,
    "AMAXES": IN_MIXED,
    "ROUNDED": MIXED,
    "ANY_OVERFLOWS": MIXED,
    "NO_NAN_IN_STEPS": MIXED_STEPS,
}
