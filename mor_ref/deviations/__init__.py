"""Named wrong and foreign behaviours: each is a small replacement of one step of the exact model.

They show that suites can tell them from the reference, and name the mistake of what is verified.
"""

from mor_ref.deviations import (
    amax,
    decoding,
    encoding,
    errors,
    mx,
    nans,
    nvfp4,
    overflow,
    presets,
    rounding,
    torchao,
)
from mor_ref.deviations import blocks as cuts
from mor_ref.deviations import four_over_six as sums
from mor_ref.deviations import scales as scaling
from mor_ref.deviations.deviation import Deviation, applied

DEVIATIONS: dict[str, Deviation] = {
    deviation.name: deviation
    for deviation in (
        *rounding.DEVIATIONS,
        *overflow.DEVIATIONS,
        *encoding.DEVIATIONS,
        *presets.DEVIATIONS,
        *nans.DEVIATIONS,
        *decoding.DEVIATIONS,
        *amax.DEVIATIONS,
        *cuts.DEVIATIONS,
        *scaling.DEVIATIONS,
        *errors.DEVIATIONS,
        *nvfp4.DEVIATIONS,
        *mx.DEVIATIONS,
        *torchao.DEVIATIONS,
        *sums.DEVIATIONS,
    )
}

__all__ = ["DEVIATIONS", "Deviation", "applied"]
