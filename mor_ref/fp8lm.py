"""FP8-LM: scales, delayed scaling, all-reduce, automatic scaling, Adam and the partition.

Each step of a state is a function that returns a new record, and changes none.
"""

from mor_ref.schemes.fp8lm.functions import (
    AutoScale,
    Cast,
    History,
    Scale,
    auto_scale,
    cast,
    codes_and_y,
    history,
    next_mu,
    partition,
    scale,
)
from mor_ref.schemes.fp8lm.functions_steps import (
    AdamState,
    SharedScale,
    adam,
    begin_adam,
    shared_scale,
    shared_scales,
    stored_scales,
    sums_of,
)

__all__ = [
    "AdamState",
    "AutoScale",
    "Cast",
    "History",
    "Scale",
    "SharedScale",
    "adam",
    "auto_scale",
    "begin_adam",
    "cast",
    "codes_and_y",
    "history",
    "next_mu",
    "partition",
    "scale",
    "shared_scale",
    "shared_scales",
    "stored_scales",
    "sums_of",
]
