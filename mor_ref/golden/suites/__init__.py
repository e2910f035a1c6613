"""All suites, in the order of the specification."""

from mor_ref.golden.suite import Suite
from mor_ref.golden.suites import blocks, conversions, scaling, tensors

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (*conversions.SUITES, *scaling.SUITES, *tensors.SUITES, *blocks.SUITES)
}
