"""The suites of integers, and the domains of the core that they join."""

AFFINE = ("affine", "affine_large")
ONE_BY_ONE = ("affine_steps", *AFFINE)  # the suites that have every profile
AFFINE_BLOCKS = ("affine_groups", *AFFINE)
IN_AFFINE = ("affine_steps", *AFFINE_BLOCKS)
FLOAT_ZEROS = ("affine_float_zeros",)

JOINS = {
    "LARGE": ("affine_large",),
    "IN_SUMS": AFFINE_BLOCKS,
    "TENSORS": AFFINE,
    "IN_ROWS": ("affine_groups",),
    "RUNS": AFFINE,
    "NANS_IN_BINARY32": (*FLOAT_ZEROS, *IN_AFFINE),
    "COMPUTED": (*IN_AFFINE, *FLOAT_ZEROS),
}
EXEMPTIONS = {
    "BETWEEN_ZERO_AND_TWICE_X": {
        "affine_groups": "The nearest integer to x / scale is never further from it than 0 is.",
    },
}
